"""The page of figures: refreshed by parts, honest about what is missed, drawn for light and dark."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import click
import pytest

from benchmarks import peers, records
from benchmarks.figures import Figure, figure, within_peer
from benchmarks.records import Record, Stamp

MISSED = Figure("bridge.drain.kernel", 7.0, "us", "C++ ring", 3.5, 0.5, ">= 0.9 x", False)
OLD = Figure("ring0.numeric", 3.0, "ns/event", "Polars", 6.0, 2.0, ">= 1 x", True)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "performance.md"
    path.write_text("before\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nafter\n")
    return path


@pytest.fixture
def taken(monkeypatch):
    """Measurements are not run: each gives what stands here under its name."""
    by_name: dict[str, list[Figure] | BaseException] = {}
    asked: list[str] = []

    def take(name, size):
        asked.append(name)
        found = by_name[name]
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(peers.figures, "take", take)
    monkeypatch.setattr(records, "revision", lambda: "abcdef")
    by_name["asked"] = asked
    return by_name


def run(page, *options: str) -> None:
    peers.main(["--quick", "--markdown", str(page), *options], standalone_mode=False)


def test_the_table_stands_between_the_marks(page, taken):
    taken["bridge.drain"] = [MISSED]
    for _ in range(2):
        run(page, "--only", "bridge.drain")
    text = page.read_text()
    assert "| bridge.drain.kernel | 7 us | C++ ring | 3.5 us | 0.5 | >= 0.9 x | NOT REACHED |" in text
    assert "1 have something to reach and 1 miss it\n(bridge.drain.kernel)." in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| bridge.drain.kernel") == 1


def test_a_part_is_refreshed_and_the_rest_keeps_its_stamp(page, taken):
    stamp = Stamp("2020-02-02", "an older machine", "abc", "full")
    records.replace(
        page.with_name("figures.jsonl"), [Record("ring0.numeric", 9.0, stamp, OLD)], ["ring0.numeric"]
    )
    taken["bridge.drain"] = [MISSED]
    run(page, "--only", "bridge.drain")
    text = page.read_text()
    assert "2020-02-02, revision abc, size full, on an older machine:" in text
    assert "| ring0.numeric | 3 ns/event | Polars |" in text
    assert "| bridge.drain.kernel |" in text
    assert text.index("### bridge") < text.index("### ring0")
    kept = {record.measure: record for record in records.read(page.with_name("figures.jsonl"))}
    assert kept["ring0.numeric"] == Record("ring0.numeric", 9.0, stamp, OLD)
    assert kept["bridge.drain"].stamp.size == "quick"


def test_what_is_no_longer_measured_leaves_the_page(page, taken):
    stamp = Stamp("2020-02-02", "a machine", "abc", "full")
    gone = Record("bridge.gone", 1.0, stamp, OLD)
    records.replace(page.with_name("figures.jsonl"), [gone], ["bridge.gone"])
    taken["bridge.drain"] = [MISSED]
    run(page, "--only", "bridge.drain")
    assert "ring0.numeric" not in page.read_text()


def test_a_run_that_was_cut_short_goes_on(page, taken):
    taken["ring0.numeric"] = [OLD]
    taken["ring0.string"] = KeyboardInterrupt()
    with pytest.raises(click.Abort):
        run(page, "--only", "ring0.")
    assert "| ring0.numeric |" in page.read_text()
    taken.update({name: [] for name in ("ring0.string", "ring0.udf", "ring0.chained", "ring0.allocations")})
    taken["asked"].clear()
    run(page, "--only", "ring0.", "--resume")
    assert "ring0.numeric" not in taken["asked"]
    assert "ring0.string" in taken["asked"]
    assert "| ring0.numeric |" in page.read_text()


def test_a_measurement_that_fails_is_said_and_the_others_are_taken(page, taken, capsys):
    taken["ring0.udf"] = AssertionError("laminar_jit and DuckDB differ")
    taken["ring0.allocations"] = [Figure("ring0.allocations.numeric", 0.0, "per batch")]
    taken.update({name: [OLD] for name in ("ring0.numeric", "ring0.string", "ring0.chained")})
    with pytest.raises(SystemExit) as ended:
        run(page, "--only", "ring0.")
    assert ended.value.code == 1
    text = page.read_text()
    assert (
        "| ring0.udf |  |  |  |  |  | NOT REACHED; failed: AssertionError: laminar_jit and DuckDB differ |"
        in text
    )
    assert "| ring0.allocations.numeric |" in text
    # It was not taken, so it is taken again.
    stamp = records.stamp_now(peers.SIZES["quick"])
    there = records.taken_already(page.with_name("figures.jsonl"), stamp, ["ring0.udf", "ring0.numeric"])
    assert there == {"ring0.numeric"}


def test_a_tree_with_changes_is_measured_again(tmp_path):
    path, stamp = (
        tmp_path / "figures.jsonl",
        Stamp("2020-02-02", "a machine", "abc" + records.CHANGED, "full"),
    )
    records.replace(path, [Record("ring0.numeric", 9.0, stamp, OLD)], ["ring0.numeric"])
    assert records.taken_already(path, stamp, ["ring0.numeric"]) == set()


def test_a_page_without_marks_is_refused_before_anything_is_measured(tmp_path, taken):
    page = tmp_path / "page.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="figures: begin"):
        run(page, "--only", "bridge.drain")
    assert taken["asked"] == []


def test_pictures_for_light_and_dark_are_drawn_and_drawn_alike(page, taken):
    beside = [
        figure(f"windows.tumbling.{keys}", 8.0, "ns/event", peer=peer, peer_value=16.0, reach=within_peer(1))
        for keys in (100, 10_000)
        for peer in ("Polars", "DuckDB", "DataFusion")
    ]
    taken["windows.tumbling"] = [*beside, MISSED]
    taken["streaming.tumbling"] = [
        figure("streaming.tumbling.x", 9.0, "ns/event", peer="X 1.0", peer_value=99.0)
    ]
    run(page, "--only", "tumbling")
    images = page.parent / "images"
    drawn = {path.name: path.read_text() for path in sorted(images.iterdir())}
    assert set(drawn) == {
        f"{name}-{theme}.svg" for name in ("windows", "streaming", "ratios") for theme in ("light", "dark")
    }
    for text in drawn.values():
        assert xml.etree.ElementTree.fromstring(text).tag.endswith("svg")
    assert drawn["windows-light.svg"] != drawn["windows-dark.svg"]
    run(page, "--draw")
    assert {path.name: path.read_text() for path in sorted(images.iterdir())} == drawn


def test_a_line_of_the_file_is_what_json_prints(page, taken):
    taken["bridge.drain"] = [MISSED]
    run(page, "--only", "bridge.drain")
    (line,) = page.with_name("figures.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert MISSED.to_json().items() <= found.items()
    assert {"measure", "seconds", "date", "machine", "revision", "size"} <= set(found)
