"""``laminar run``: killed, stopped and followed runs leave in the sink what one undisturbed run would."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from laminar_jit.cli.main import laminar
from laminar_jit.cli.stopping import Interrupted, stopping
from laminar_jit.runtime import failpoints

QUERY = """SELECT k, TUMBLE_START(ts, INTERVAL '1' SECOND) AS since, count(*) AS n, sum(x) AS total
           FROM events GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND) EMIT ON WINDOW CLOSE"""

ORACLE = "SELECT k, time_bucket(INTERVAL '1' SECOND, ts) AS since, count(*) AS n, sum(x)::BIGINT AS total"

ROWS = 3_000


def make_file(path: Path, seed: int, part: int) -> None:
    """Three seconds of events, a little out of order; moved into place whole."""
    generator = random.Random(f"{seed} {part}")
    times = [part * 3_000_000 + at * 1_000 + generator.randrange(50_000) for at in range(ROWS)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": [generator.choice("abc") for _ in times],
            "x": [generator.randrange(100) for _ in times],
        }
    )
    half = path.with_name(f".{path.name}")
    pyarrow.parquet.write_table(table, half, row_group_size=500)
    half.rename(path)


def expected(folder: Path, before: str = "infinity") -> list[tuple]:
    with duckdb.connect() as connection:
        return connection.sql(
            f"SELECT * FROM ({ORACLE} FROM '{folder}/*.parquet' GROUP BY k, since) "
            f"WHERE since < TIMESTAMP '{before}' ORDER BY ALL"
        ).fetchall()


def found(sink: Path) -> list[tuple]:
    parts = sorted(sink.glob("part-*")) if sink.is_dir() else [sink]
    with duckdb.connect() as connection:
        return connection.sql(
            f"SELECT k, since, n, total FROM read_parquet({[str(each) for each in parts]}) ORDER BY ALL"
        ).fetchall()


@pytest.fixture
def place(tmp_path: Path, random_seed) -> Path:
    (tmp_path / "query.sql").write_text(QUERY)
    (tmp_path / "in").mkdir()
    for part in range(3):
        make_file(tmp_path / "in" / f"{part}.parquet", random_seed, part)
    return tmp_path


def command(place: Path, *options: str) -> list[str]:
    return [
        *(sys.executable, "-m", "laminar_jit.cli", "run", str(place / "query.sql")),
        *("--source", f"events={place}/in/*.parquet", "--watermark", "events.ts=60ms"),
        *("--sink", str(place / "out.parquet"), *options),
    ]


def wait_for(condition, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)  # another process is waited for


def test_killed_at_a_commit_and_started_again(place: Path) -> None:
    options = ["--checkpoint", str(place / "c"), "--every", "1ms", "--json"]
    for step in ("sink.pending:2:kill", "sink.shown:2:kill", "checkpoint.complete:1:kill"):
        killed = subprocess.run(
            command(place, *options), env={**os.environ, failpoints.VARIABLE: step}, capture_output=True
        )
        assert killed.returncode == -signal.SIGKILL, killed
    ended = subprocess.run(command(place, *options), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["restored_epoch"] >= 2 and report["rows_in"] == 3 * ROWS
    assert ended.stderr == "", "no bar where there is no terminal"
    assert found(place / "out.parquet") == expected(place / "in")


def test_a_followed_folder_killed_and_stopped_gives_each_window_once(place: Path, random_seed) -> None:
    options = ["--checkpoint", str(place / "c"), "--follow", "--poll", "20ms", "--every", "1ms"]
    sink = place / "out.parquet"

    def seconds_shown() -> int:
        return len({since for _, since, *_ in found(sink)}) if list(sink.glob("part-*")) else 0

    first = subprocess.Popen(command(place, *options), stderr=subprocess.PIPE)
    wait_for(lambda: seconds_shown() >= 8, first)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    first.stderr.close()
    # Its name sorts before those that were read, and its events come after theirs.
    make_file(place / "in" / "00.parquet", random_seed, 3)
    second = subprocess.Popen(command(place, *options), stderr=subprocess.PIPE)
    wait_for(lambda: seconds_shown() >= 11, second)
    make_file(place / "in" / "5.parquet", random_seed, 4)
    wait_for(lambda: seconds_shown() >= 14, second)
    second.send_signal(signal.SIGTERM)
    _, said = second.communicate(timeout=30)
    assert second.returncode == 0, said
    assert found(sink) == expected(place / "in", before="1970-01-01 00:00:14")
    (place / "in" / "0.parquet").unlink()
    third = subprocess.run(command(place, *options), capture_output=True, text=True)
    assert third.returncode == 2
    assert "0.parquet' was read before and is gone" in third.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_followed_folder_without_a_checkpoint_leaves_the_closed_windows(place: Path, number: int) -> None:
    process = subprocess.Popen(
        command(place, "--follow", "--poll", "20ms"),
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: any(each.stat().st_size > 4 for each in place.glob(".writing-*")), process)
    # Files are read in their order, so that the last is open when nothing new was seen for a while.
    wait_for(lambda: _descriptors(process, "/in/") == 0, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    rows = found(place / "out.parquet")
    assert rows and rows == [row for row in expected(place / "in") if row[1] <= max(each[1] for each in rows)]
    assert not list(place.glob(".writing-*"))


def _descriptors(process: subprocess.Popen, part: str) -> int:
    folder = Path(f"/proc/{process.pid}/fd")
    return sum(part in os.readlink(each) for each in folder.iterdir() if each.is_symlink())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_without_follow_ends_as_shells_expect(number: int) -> None:
    with pytest.raises(Interrupted) as raised, stopping(gently=False):
        os.kill(os.getpid(), number)
    assert raised.value.exit_code == 128 + number
    with stopping(gently=True) as stop:
        os.kill(os.getpid(), number)
        assert stop.is_set()
        with pytest.raises(Interrupted):  # asked twice
            os.kill(os.getpid(), number)


def test_rows_are_printed_without_a_sink(place: Path) -> None:
    runner = CliRunner()
    given = ["run", "-", "--source", f"events={place}/in/*.parquet"]
    text = "SELECT k, count(*) AS n FROM events GROUP BY k"
    answer = runner.invoke(laminar, [*given, "--json"], input=text, catch_exceptions=False)
    assert answer.exit_code == 0
    rows = {row["k"]: row["n"] for row in map(json.loads, answer.stdout.splitlines())}
    with duckdb.connect() as connection:
        assert rows == dict(
            connection.sql(f"SELECT k, count(*) FROM '{place}/in/*.parquet' GROUP BY k").fetchall()
        )
    answer = runner.invoke(laminar, given, input=f"{text} ORDER BY n LIMIT 1", catch_exceptions=False)
    least = min(rows, key=rows.get)
    assert answer.stdout.split() == ["k", "n", least, str(rows[least])]


@pytest.mark.parametrize(
    ("options", "text", "said"),
    [
        (["--checkpoint", "c"], "SELECT 1 AS a FROM events", "--checkpoint needs --sink"),
        (["--sink", "x.txt"], "SELECT k FROM events", "cannot tell the format"),
        (["--watermark", "ts=2s"], "SELECT k FROM events", "expected SOURCE.COLUMN=DELAY"),
        (["--watermark", "bids.ts=2s"], "SELECT k FROM events", "names source 'bids'"),
        (["--follow"], "SELECT k FROM events ORDER BY k", "--follow needs a query that runs on the rings"),
        (
            ["--follow"],
            "SELECT k, count(*) FROM events GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)",
            "declare",
        ),
        (["--source", "bids"], "SELECT k FROM events", "expected NAME=VALUE"),
        ([], "SELECT no FROM events", "no"),
        ([], "SELEC k FROM events", "cannot be read at line 1"),
    ],
)
def test_errors_help_and_show_no_traceback(place: Path, options: list[str], text: str, said: str) -> None:
    given = ["run", "-", "--source", f"events={place}/in/*.parquet", *options]
    answer = CliRunner().invoke(laminar, given, input=text)
    assert answer.exit_code == 2, answer.output
    assert said.lower() in answer.stderr.lower()
    assert "Traceback" not in answer.stderr


def test_a_file_that_is_not_what_its_ending_says(place: Path) -> None:
    (place / "in" / "1.parquet").write_text("no parquet")
    answer = CliRunner().invoke(
        laminar, ["run", "-", "--source", f"events={place}/in/1.parquet"], input="SELECT k FROM events"
    )
    assert answer.exit_code == 2 and "cannot read or write" in answer.stderr


def test_explain_names_routes_and_shows_the_kernel(place: Path) -> None:
    given = ["explain", str(place / "query.sql"), "--source", f"events={place}/in/*.parquet"]
    runner = CliRunner()
    text = runner.invoke(laminar, given, catch_exceptions=False).stdout
    assert text.startswith("query: rings (a windowed aggregate)") and "def ring0_" not in text
    assert "def ring0_" in runner.invoke(laminar, [*given, "--codegen"], catch_exceptions=False).stdout
    (place / "query.sql").write_text("SELECT k FROM events ORDER BY k")
    answer = runner.invoke(laminar, [*given, "--json"], catch_exceptions=False)
    [part] = json.loads(answer.stdout)
    assert part["route"] == "DataFusion" and "ORDER BY" in part["reason"]


def test_nexmark_says_where_each_query_runs() -> None:
    runner = CliRunner()
    answer = runner.invoke(laminar, ["nexmark", "--all", "--events", "3k", "--json"], catch_exceptions=False)
    assert answer.exit_code == 0
    said = {each["query"]: each for each in json.loads(answer.stdout)["queries"]}
    assert list(said) == [f"q{number}" for number in range(23)]
    assert said["q0"]["route"] == "rings" and said["q0"]["rows_out"] == said["q0"]["rows_in"] == 2_760
    assert "DataFusion" in said["q20"]["route"] and said["q20"]["events_per_second"] > 0
    assert all(each["reason"] for each in said.values())
    answer = runner.invoke(laminar, ["nexmark", "q0", "--events", "10X"])
    assert answer.exit_code == 2 and "such as 100k or 10M" in answer.stderr
    answer = runner.invoke(laminar, ["nexmark", "q99"])
    assert answer.exit_code == 2 and "q0 to q22" in answer.stderr
