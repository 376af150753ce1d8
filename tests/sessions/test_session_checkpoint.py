"""A session that is restored goes on as one that was never stopped."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ForeignState, PlanError

from .test_session import HOPPING, PLAIN, SOURCE, TUMBLING, make_bids, pieces, rows_of

STREAMS = {
    "tumbling": f"{TUMBLING} LATE DATA TO late_bids",
    "hopping": HOPPING,
    "plain": PLAIN,
    "changes": f"{TUMBLING} EMIT CHANGES",
    "sessions": """SELECT auction, channel, SESSION_START(ts, INTERVAL '3' SECOND) AS since, count(*) AS n
                   FROM bids GROUP BY auction, channel, SESSION(ts, INTERVAL '3' SECOND)""",
}


def shuffled_bids(seed: int) -> pa.Table:
    """Bids of which some come five seconds late."""
    bids = make_bids(seed, 500)
    drawn = random.Random(seed)
    order = sorted(range(len(bids)), key=lambda at: at + (60 if drawn.random() < 0.05 else 0))
    return bids.take(order)


def read_all(session: lj.Session, found: dict[str, list[pa.Table]]) -> None:
    for name, tables in found.items():
        tables.append(session.read(name))


def test_a_restored_session_goes_on_as_if_never_stopped(tmp_path: Path, random_seed: int) -> None:
    bids = shuffled_bids(random_seed)
    undisturbed: dict[str, list[pa.Table]] = {name: [] for name in [*STREAMS, "late_bids"]}
    with lj.Session() as session:
        session.sql(SOURCE)
        for name, query in STREAMS.items():
            session.sql(f"CREATE STREAM {name} AS {query}")
        session.insert("bids", bids)
        session.tick()
        counters = {name: rows_by_reason(session, name) for name in STREAMS}
        read_all(session, undisturbed)
    assert counters["tumbling"]["late_side_output"] > 0

    found: dict[str, list[pa.Table]] = {name: [] for name in undisturbed}
    drawn = random.Random(random_seed)
    session = lj.Session(checkpoint=tmp_path)
    session.sql(SOURCE)
    for name, query in STREAMS.items():
        session.sql(f"CREATE STREAM {name} AS {query}")
    for piece in pieces(bids, random_seed):
        session.insert("bids", piece)
        # Rows that wait for a tick, and results that nobody has read, are part of the epoch.
        if drawn.random() < 0.7:
            session.tick()
        if drawn.random() < 0.5:
            read_all(session, found)
        epoch = session.checkpoint()
        # What happens after the epoch is lost with the session, and comes again.
        session.insert("bids", bids.slice(0, 20))
        session.tick()
        session.close()
        session = lj.Session.restore(tmp_path)
        assert epoch >= 1
    assert session.inserted == {"bids": len(bids)}
    session.tick()
    read_all(session, found)
    assert {name: rows_by_reason(session, name) for name in STREAMS} == counters
    for name in set(found) - {"changes"}:
        assert rows_of(pa.concat_tables(found[name])) == rows_of(pa.concat_tables(undisturbed[name])), name
    # A changelog depends on how rows were cut into batches, its sum does not.
    assert net(found["changes"]) == net(undisturbed["changes"])
    session.close()


def rows_by_reason(session: lj.Session, stream: str) -> dict[str, int]:
    """All counters, with those added up that tell whether a row or a mark closed a session."""
    closed = ("sessions_closed_by_watermark", "sessions_closed_by_timer")
    counters = session.counters(stream)
    total = sum(counters.pop(name, 0) for name in closed)
    return counters | {"sessions_closed": total}


def net(tables: list[pa.Table]) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in pa.concat_tables(tables).to_pylist():
        weight = row.pop("weight")
        total[repr(row)] = total.get(repr(row), 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def test_what_is_there_is_restored(tmp_path: Path) -> None:
    with lj.Session(checkpoint=tmp_path) as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM tumbling AS {TUMBLING}")
        session.sql(f"CREATE STREAM plain AS {PLAIN}")
        session.sql(f"CREATE STREAM hopping AS {HOPPING}")
        shown = [session.sql("SHOW SOURCES"), session.sql("SHOW STREAMS")]
        assert session.checkpoint() == 1
        assert session.checkpoint() == 2
    with lj.Session.restore(tmp_path) as session:
        assert [session.sql("SHOW SOURCES"), session.sql("SHOW STREAMS")] == shown
        groups = [[stream.name for stream in group.streams] for group in session._groups]
        assert groups == [["tumbling", "hopping"], ["plain"]]
        assert session.checkpoint() == 3


def test_what_subscribers_had_not_taken_can_be_read(tmp_path: Path) -> None:
    with lj.Session(checkpoint=tmp_path) as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")
        subscription = session.subscribe("s")
        for number in range(3):
            session.insert("bids", [{"auction": number}])
            session.tick()
        next(subscription)
        session.checkpoint()
    with lj.Session.restore(tmp_path) as session:
        assert session.read("s")["auction"].to_pylist() == [1, 2]


def test_a_checkpoint_needs_a_folder_of_its_own(tmp_path: Path) -> None:
    with lj.Session() as session, pytest.raises(PlanError, match="checkpoint=…"):
        session.checkpoint()
    with pytest.raises(PlanError, match="no session was written"):
        lj.Session.restore(tmp_path)
    with lj.Session(checkpoint=tmp_path) as session:
        session.checkpoint()
    with lj.Session(checkpoint=tmp_path) as session, pytest.raises(ForeignState, match=r"Session\.restore"):
        session.checkpoint()


def test_the_checkpoint_of_a_run_is_no_session(tmp_path: Path) -> None:
    query = lj.source("bids", {"x": "int64"}).select(y=lj.col("x") + 1)
    query.run(bids={"x": [1]}, checkpoint=tmp_path)
    with pytest.raises(ForeignState, match="another plan"):
        lj.Session.restore(tmp_path)
