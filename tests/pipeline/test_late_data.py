"""Late rows through the query API: dropped, reassigned or read as a stream, each counted by its reason."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, UnsupportedClause
from tests.windows.oracle import grouped, sessions
from tests.windows.support import with_watermarks

SECOND = 1_000_000
DELAY, LATENESS = 3 * SECOND, 2 * SECOND
SCHEMA = {
    "user": "string",
    "note": "string",
    "amount": "decimal(9, 2)",
    "day": "date",
    "seen": "timestamp[ms, UTC]",
    "ok": "bool",
    "value": "int32",
    "ts": "timestamp[us]",
}
WINDOWS = {
    "tumble": (lj.tumble("10s"), {"kind": "tumble", "size": 10 * SECOND}),
    "hop": (lj.hop("10s", every="4s"), {"kind": "hop", "size": 10 * SECOND, "slide": 4 * SECOND}),
    "session": (lj.session("2s"), {"kind": "session", "gap": 2 * SECOND}),
}
LONG = "a note that is longer than twelve bytes, "


def make_rows(seed: int, count: int = 600) -> list[dict[str, Any]]:
    """Rows in rough order of time: some come far too late; every column but the time has NULLs."""
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.2 else value

    rows = []
    for number in range(count):
        late = draw.choice([0, 0, 0, 2, 5, 15, 30])
        rows.append(
            {
                "user": maybe(draw.choice(["ada", "grace", "", "a user with a long name"])),
                "note": maybe(LONG + str(number)),
                "amount": maybe(decimal.Decimal(draw.randrange(-(10**6), 10**6)) / 100),
                "day": maybe(datetime.date(2024, 1, 1) + datetime.timedelta(days=number)),
                "seen": maybe(datetime.datetime(2024, 1, 1, 0, 0, number % 60, tzinfo=datetime.UTC)),
                "ok": maybe(draw.random() < 0.5),
                "value": maybe(draw.randrange(-100, 100)),
                "ts": (number // 4 - late) * SECOND + draw.choice([0, 0, 1, 999_999]),
            }
        )
    return rows


def to_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, lj.source("s", SCHEMA).schema)


def cut(table: pa.Table, seed: int) -> list[pa.RecordBatch]:
    """*table* in batches cut anywhere."""
    draw = random.Random(seed)
    places = sorted(draw.sample(range(table.num_rows + 1), 12))
    pieces = zip([0, *places], [*places, table.num_rows], strict=True)
    return [
        table.slice(first, last - first).combine_chunks().to_batches()[0]
        for first, last in pieces
        if last > first
    ]


def events(delay: str = "3s") -> lj.Query:
    return lj.source("events", SCHEMA, time="ts", delay=delay)


def per_user(window: Any, policy: Any, lateness: str = "0s") -> lj.Query:
    grouped_by = events().group_by("user", window=window)
    return grouped_by.agg(n=lj.count(), total=lj.sum("value")).allow_lateness(lateness).late(policy)


def expected(
    rows: list[dict[str, Any]], window: dict[str, Any], lateness: int
) -> tuple[list[tuple], list[dict]]:
    """Result rows and late rows, by plain Python."""
    stamped = with_watermarks(rows, DELAY)
    if window["kind"] == "session":
        groups, late = sessions(stamped, window["gap"], ["user"], lateness)
    else:
        groups, late = grouped(stamped, window, ["user"], lateness)
    results = []
    for (start, end), (user,), members in groups:
        known = [row["value"] for row in members if row["value"] is not None]
        results.append((start, end, user, len(members), sum(known) if known else None))
    return results, [{name: row[name] for name in SCHEMA} for row in late]


def result_rows(table: pa.Table) -> list[tuple]:
    columns = [
        table[name].cast(pa.int64()) if name.startswith("window") else table[name]
        for name in table.schema.names
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def late_rows(table: pa.Table) -> list[dict]:
    assert table["event_time"].equals(table["ts"])
    return [
        row | {"ts": ts}
        for row, ts in zip(
            table.drop_columns(["event_time"]).to_pylist(),
            table["ts"].cast(pa.int64()).to_pylist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("lateness", ["0s", "2s"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_late_rows_are_read_whole_and_in_order_whatever_the_batches(
    kind: str, lateness: str, ring1: str, random_seed: int
) -> None:
    window, described = WINDOWS[kind]
    rows = make_rows(random_seed)
    results, late = expected(rows, described, LATENESS if lateness == "2s" else 0)
    query = per_user(window, lj.side_output("too late"), lateness)
    table = query.run(events=cut(to_table(rows), random_seed), ring1=ring1)
    side = query.pipeline.report.side_outputs["too late"]
    side.validate(full=True)
    assert side.schema == pa.schema([("event_time", pa.timestamp("us")), *to_table([]).schema])
    assert late_rows(side) == late
    assert len(late) > 20
    assert result_rows(table) == results
    counters = query.pipeline.report.counters
    assert counters["late_side_output"] == len(late)
    assert counters["late_dropped"] == counters["late_reassigned"] == 0
    assert counters["behind"] >= len(late)


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_dropped_rows_are_counted(kind: str, ring1: str, random_seed: int) -> None:
    window, described = WINDOWS[kind]
    rows = make_rows(random_seed)
    results, late = expected(rows, described, 0)
    query = per_user(window, lj.drop())
    assert result_rows(query.run(events=to_table(rows), ring1=ring1)) == results
    assert query.pipeline.report.counters["late_dropped"] == len(late)
    assert query.pipeline.report.side_outputs == {}


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("kind", ["tumble", "hop"])
def test_reassigned_rows_count_at_the_watermark(kind: str, ring1: str, random_seed: int) -> None:
    window, described = WINDOWS[kind]
    rows = make_rows(random_seed)
    stamped = with_watermarks(rows, DELAY)
    late = {id(row) for row in grouped(stamped, described, ["user"])[1]}
    moved = [
        row | {"ts": row["watermark"]}
        for row in stamped
        if id(row) in late and row["watermark"] - row["ts"] <= 12 * SECOND
    ]
    kept = iter(moved)
    shifted = [
        next(kept) if id(row) in late and row["watermark"] - row["ts"] <= 12 * SECOND else row
        for row in stamped
    ]
    groups, dropped = grouped(shifted, described, ["user"])
    query = per_user(window, lj.reassign("12s"))
    table = query.run(events=cut(to_table(rows), random_seed), ring1=ring1)
    assert [row[:4] for row in result_rows(table)] == [
        (*bounds, user, len(members)) for bounds, (user,), members in groups
    ]
    counters = query.pipeline.report.counters
    assert (counters["late_reassigned"], counters["late_dropped"]) == (len(moved), len(dropped))
    assert moved and dropped


def test_reassigned_rows_of_sessions_are_counted(random_seed: int) -> None:
    rows = make_rows(random_seed)
    query = per_user(lj.session("2s"), lj.reassign("12s"))
    counted = sum(query.run(events=to_table(rows))["n"].to_pylist())
    counters = query.pipeline.report.counters
    assert counted + counters["late_dropped"] == len(rows)
    assert counters["late_reassigned"] > 0 and counters["late_dropped"] > 0


@pytest.mark.parametrize("strategy", ["changes", "on update", "on watermark", "every 5s"])
@pytest.mark.parametrize("kind", ["tumble", "hop"])
def test_late_rows_are_the_same_under_every_strategy(kind: str, strategy: str, random_seed: int) -> None:
    window, described = WINDOWS[kind]
    rows = make_rows(random_seed)
    query = per_user(window, lj.side_output("late")).emit(strategy)
    query.run(events=cut(to_table(rows), random_seed))
    assert late_rows(query.pipeline.report.side_outputs["late"]) == expected(rows, described, 0)[1]


@pytest.mark.parametrize("ring1", ["inline", "process"])
def test_a_stream_hands_late_rows_to_its_sink(ring1: str, random_seed: int) -> None:
    rows = make_rows(random_seed)
    results, late = expected(rows, WINDOWS["tumble"][1], 0)
    query = per_user(lj.tumble("10s"), lj.side_output("late"))
    taken: list[pa.RecordBatch] = []
    stream = query.stream(
        events=iter(cut(to_table(rows), random_seed)), ring1=ring1, side={"late": taken.append}
    )
    assert result_rows(pa.Table.from_batches(stream, query.schema)) == results
    assert late_rows(pa.Table.from_batches(taken)) == late
    assert query.pipeline.report.side_outputs == {}


def test_late_rows_show_the_columns_as_they_stood_before_group_by() -> None:
    query = (
        events("0s")
        .filter(lj.col("value") > 0)
        .select("user", doubled=lj.col("value") * 2, event_time=lj.lit("mine"))
        .group_by(window=lj.tumble("10s"))
        .agg(n=lj.count())
        .late(lj.side_output("late"))
    )
    rows = [{"user": "ada", "value": v, "ts": ts * SECOND} for v, ts in [(1, 5), (2, 25), (3, 6), (-4, 7)]]
    query.run(events=to_table(rows))
    side = query.pipeline.report.side_outputs["late"]
    # A column of the user's own called event_time stands for itself.
    assert side.to_pylist() == [{"event_time": "mine", "user": "ada", "doubled": 6}]


def test_without_a_late_row_the_side_output_is_an_empty_table() -> None:
    query = per_user(lj.tumble("10s"), lj.side_output("late"))
    query.run(events=to_table([]))
    side = query.pipeline.report.side_outputs["late"]
    assert side.num_rows == 0 and side.schema.names == ["event_time", *SCHEMA]


def test_an_error_of_a_sink_reaches_the_reader() -> None:
    def full(batch: pa.RecordBatch) -> None:
        raise OSError("disk full")

    query = per_user(lj.tumble("10s"), lj.side_output("late"))
    for ring1 in ("inline", "process"):
        with pytest.raises(OSError, match="disk full"):
            query.run(events=to_table(make_rows(1)), ring1=ring1, side={"late": full})


def test_what_cannot_be_is_refused_by_name() -> None:
    query = per_user(lj.tumble("10s"), lj.side_output("late"))
    with pytest.raises(PlanError, match="nobody reads side output 'late'"):
        query.stream(events=iter([]))
    with pytest.raises(PlanError, match=r"'lat'.*'late'"):
        query.run(events=to_table([]), side={"lat": print})
    with pytest.raises(PlanError, match="FINAL drops late rows"):
        query.emit("final")
    with pytest.raises(PlanError, match="needs a window"):
        events().group_by("user").agg(n=lj.count()).late(lj.reassign("5s"))
    with pytest.raises(PlanError, match="positive duration"):
        lj.reassign("0s")
    with pytest.raises(PlanError, match="expected a name"):
        lj.side_output("")
    with pytest.raises(PlanError, match=r"lj\.side_output"):
        query.late("drop")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedClause, match="mapInArrow"):
        query.map_in_arrow  # noqa: B018


def test_the_plan_says_what_becomes_of_late_rows() -> None:
    assert "late rows: side output 'late'" in repr(per_user(lj.tumble("10s"), lj.side_output("late")))
    assert "late rows: reassign up to 5s" in per_user(lj.tumble("10s"), lj.reassign("5s")).explain()
