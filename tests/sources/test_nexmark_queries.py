"""The Nexmark queries: there is an oracle for each, and the generated events give it something to answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError
from laminar_jit.sources import nexmark
from laminar_jit.sources.nexmark_queries import NAMES, query_text, side_input

ORACLES = Path(__file__).parent / "nexmark_oracles"
EVENTS = 100_000
BIDS = EVENTS // 50 * 46

#: A hundred seconds of event time, so that windows and sessions of ten seconds close.
RATE = 1_000


@pytest.fixture(scope="module")
def data() -> nexmark.Nexmark:
    return nexmark.generate(EVENTS, seed=11, events_per_second=RATE, disorder="1s")


@pytest.fixture(scope="module")
def answers(data: nexmark.Nexmark) -> Iterator[dict[str, pa.Table]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in ("person", "auction", "bid"):
            connection.register(name, getattr(data, name))
        connection.register("side_input", side_input())
        yield {name: connection.sql((ORACLES / f"{name}.sql").read_text()).to_arrow_table() for name in NAMES}


def tens(column: pa.ChunkedArray) -> list[float]:
    """The number of the ten seconds each time is in."""
    return (seconds(column) // 10).tolist()


def seconds(column: pa.ChunkedArray) -> np.ndarray:
    return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6


def test_every_query_has_a_text_and_an_oracle_and_there_are_no_others() -> None:
    assert {path.stem for path in ORACLES.glob("*.sql")} == set(NAMES)
    folder = Path(nexmark.__file__).with_name("nexmark_sql")
    assert {path.stem for path in folder.glob("*.sql")} == set(NAMES)
    assert all(query_text(name).startswith("-- ") for name in NAMES)
    with pytest.raises(PlanError, match="q0 to q22"):
        query_text("q23")


#: Rows each answer must have at least and at most.
SIZES = {
    "q0": (BIDS, BIDS), "q1": (BIDS, BIDS), "q2": (100, BIDS // 20), "q3": (100, 2_000), "q4": (5, 5),
    "q5": (54, 200), "q6": (1_000, 6_000), "q7": (10, 30), "q8": (100, 2_000), "q9": (1_000, 6_000),
    "q10": (BIDS, BIDS), "q11": (1_500, BIDS), "q12": (1_500, BIDS), "q13": (BIDS, BIDS),
    "q14": (BIDS // 10, BIDS // 2), "q15": (1, 1), "q16": (9_000, 10_004), "q17": (5_000, 6_100),
    "q18": (10_000, BIDS), "q19": (30_000, BIDS), "q20": (BIDS // 20, BIDS // 2), "q21": (BIDS, BIDS),
    "q22": (BIDS, BIDS),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_has_a_sensible_size_and_no_nulls(name: str, answers: dict[str, pa.Table]) -> None:
    least, most = SIZES[name]
    assert least <= answers[name].num_rows <= most
    assert all(column.null_count == 0 for column in answers[name].columns)


def test_hot_items_are_those_that_counting_finds(data: nexmark.Nexmark, answers: dict[str, pa.Table]) -> None:
    times, auctions = seconds(data.bid["date_time"]), data.bid["auction"].to_numpy()
    starts = seconds(answers["q5"]["window_start"])
    for start in np.unique(starts)[::7]:
        counts = Counter(auctions[(times >= start) & (times < start + 10)].tolist())
        most = max(counts.values())
        rows = answers["q5"].filter(pa.array(starts == start))
        assert set(rows["auction"].to_pylist()) == {each for each, n in counts.items() if n == most}
        assert set(rows["num"].to_pylist()) == {most}


def test_sessions_are_those_that_a_loop_finds(data: nexmark.Nexmark, answers: dict[str, pa.Table]) -> None:
    last: dict[int, float] = {}
    sessions = 0
    order = np.argsort(seconds(data.bid["date_time"]), kind="stable")
    times, bidders = seconds(data.bid["date_time"])[order], data.bid["bidder"].to_numpy()[order]
    for when, bidder in zip(times.tolist(), bidders.tolist(), strict=True):
        sessions += when - last.get(bidder, -1e18) > 10
        last[bidder] = when
    assert answers["q11"].num_rows == sessions > len(last), "some bidders came back"


def test_new_sellers_are_those_that_sets_find(data: nexmark.Nexmark, answers: dict[str, pa.Table]) -> None:
    came = zip(data.person["id"].to_pylist(), tens(data.person["date_time"]), strict=True)
    sold = zip(data.auction["seller"].to_pylist(), tens(data.auction["date_time"]), strict=True)
    found = zip(answers["q8"]["id"].to_pylist(), tens(answers["q8"]["window_start"]), strict=True)
    assert sorted(found) == sorted(set(came) & set(sold))


COUNTED = [
    ("q11", "bid_count"),
    ("q12", "bid_count"),
    ("q15", "total_bids"),
    ("q16", "total_bids"),
    ("q17", "total_bids"),
]


@pytest.mark.parametrize(("name", "column"), COUNTED)
def test_every_bid_is_counted_once(name: str, column: str, answers: dict[str, pa.Table]) -> None:
    assert pc.sum(answers[name][column]).as_py() == BIDS


def test_all_channels_have_a_number(answers: dict[str, pa.Table]) -> None:
    numbers = answers["q21"]["channel_id"]
    assert pc.all(pc.utf8_is_digit(numbers)).as_py()
    assert {"0", "1", "2", "3"} < set(numbers.to_pylist())


def test_letters_are_counted(answers: dict[str, pa.Table]) -> None:
    rows = answers["q14"].slice(0, 500).to_pylist()
    assert [row["c_counts"] for row in rows] == [row["extra"].count("c") for row in rows]
    assert any(row["c_counts"] for row in rows)


#: What runs on the rings whole; the others run on DataFusion, at least in part.
ON_RINGS = {"q0", "q1", "q2", "q5", "q7", "q8", "q10", "q11", "q12"}
ON_RINGS |= {"q14", "q15", "q16", "q17", "q21", "q22"}


@pytest.mark.parametrize("name", NAMES)
def test_every_query_gives_what_the_oracle_gives(
    name: str, data: nexmark.Nexmark, answers: dict[str, pa.Table]
) -> None:
    text = query_text(name)
    tables = {"person": data.person, "auction": data.auction, "bid": data.bid, "side_input": side_input()}
    statement = re.sub("--.*", "", text)
    used = {
        table: rows
        for table, rows in tables.items()
        if re.search(rf"(FROM|JOIN|TABLE|\()\s+{table}\b|TABLE {table}\b|\({table}\b", statement)
    }
    assert lj.explain_sql(text, **used).startswith("query: rings (") == (name in ON_RINGS)
    expected = answers[name]
    result = lj.sql(text, **used).select(expected.column_names)
    assert rows_of(result) == rows_of(expected)


def rows_of(table: pa.Table) -> Counter:
    """DuckDB reads 0.908 as a decimal, we as a double: a price is compared to the tenth of a cent."""
    columns = [
        pc.round(column.cast(pa.float64()), 3) if name == "price" else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
