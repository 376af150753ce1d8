"""A session gives, tick by tick, what the same query gives over the same rows at once."""

from __future__ import annotations

import datetime
import itertools
import random
from types import SimpleNamespace
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import LaminarError, PlanError, SchemaMismatch, UnknownColumn, UnsupportedClause

SOURCE = """
    CREATE SOURCE bids (
        auction BIGINT NOT NULL, price DOUBLE PRECISION, channel VARCHAR, ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"""
TUMBLING = """
    SELECT auction, window_start, window_end, count(*) AS n, sum(price) AS total
    FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end"""
HOPPING = """
    SELECT auction, window_start, window_end, max(price) AS top
    FROM HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end"""
PLAIN = "SELECT auction, channel, price * 2 AS twice FROM bids WHERE price > 20"

# Every window up to the oracle's last watermark; session input is in order, so no row is late.
ORACLE = """
    WITH windows AS (
        SELECT *, time_bucket(INTERVAL '{slide} seconds', ts) - to_seconds({slide} * back) AS window_start
        FROM bids, range({size} // {slide}) AS steps(back))
    SELECT auction, window_start, window_start + to_seconds({size}) AS window_end, {aggregates}
    FROM windows WHERE window_end <= (SELECT max(ts) FROM bids) - to_seconds(2)
    GROUP BY ALL ORDER BY ALL"""


def make_bids(seed: int, rows: int) -> pa.Table:
    """Bids in the order of their times, a hundred milliseconds apart on average."""
    drawn = random.Random(seed)
    times = sorted(drawn.randrange(rows * 100_000) for _ in range(rows))
    return pa.table(
        {
            "auction": pa.array([drawn.randrange(5) for _ in times], pa.int64()),
            # Halves, so that sums are the same in any order.
            "price": [None if drawn.random() < 0.1 else drawn.randrange(100) / 2 for _ in times],
            "channel": [drawn.choice(["web", "app", "a channel with a long name", None]) for _ in times],
            "ts": pa.array(times, pa.timestamp("us")),
        }
    )


def pieces(table: pa.Table, seed: int) -> list[pa.Table]:
    """*table* cut at random places."""
    drawn = random.Random(seed)
    cuts = sorted({0, len(table), *(drawn.randrange(len(table)) for _ in range(12))})
    return [table.slice(begin, end - begin) for begin, end in itertools.pairwise(cuts)]


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(map(tuple, (row.values() for row in table.to_pylist())), key=repr)


def asked_of_duckdb(bids: pa.Table, text: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("bids", bids)
        return sorted(connection.sql(text).fetchall(), key=repr)


def test_streams_over_one_source_give_what_duckdb_gives(random_seed: int) -> None:
    bids = make_bids(random_seed, 600)
    found: dict[str, list[pa.Table]] = {"tumbling": [], "hopping": [], "plain": []}
    with lj.Session() as session:
        session.sql(SOURCE)
        for name, query in zip(found, (TUMBLING, HOPPING, PLAIN), strict=True):
            session.sql(f"CREATE STREAM {name} AS {query}")
        for piece in pieces(bids, random_seed):
            session.insert("bids", piece)
            session.tick()
            for name, tables in found.items():
                tables.append(session.read(name))
    results = {name: rows_of(pa.concat_tables(tables)) for name, tables in found.items()}
    tumbling = ORACLE.format(size=10, slide=10, aggregates="count(*), sum(price)")
    assert results["tumbling"] == asked_of_duckdb(bids, tumbling)
    assert results["hopping"] == asked_of_duckdb(
        bids, ORACLE.format(size=10, slide=5, aggregates="max(price)")
    )
    assert results["plain"] == asked_of_duckdb(bids, PLAIN)


def test_streams_that_ask_the_same_of_a_row_share_ring_0(random_seed: int) -> None:
    bids = make_bids(random_seed, 400)
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM tumbling AS {TUMBLING}")
        session.sql(f"CREATE STREAM hopping AS {HOPPING}")
        session.sql(f"CREATE STREAM plain AS {PLAIN}")
        groups = [[stream.name for stream in group.streams] for group in session._groups]
        assert groups == [["tumbling", "hopping"], ["plain"]]
        session.insert("bids", bids)
        session.tick()
        # Written once for both.
        assert session._groups[0].driver.rows == len(bids)
        # One more of the same begins at another row, so it has a Ring 0 of its own.
        session.sql(f"CREATE STREAM later AS {TUMBLING}")
        assert len(session._groups) == 3
        session.sql("DROP STREAM tumbling")
        session.insert("bids", [{"auction": 1, "ts": datetime.datetime(2001, 1, 1)}])
        session.tick()
        hopping = rows_of(session.read("hopping"))
        assert session.read("later").num_rows == 0
    everything = pa.concat_tables(
        [
            bids,
            pa.table({"auction": [1], "ts": pa.array([datetime.datetime(2001, 1, 1)], pa.timestamp("us"))}),
        ],
        promote_options="default",
    )
    oracle = ORACLE.format(size=10, slide=5, aggregates="max(price)")
    assert hopping == asked_of_duckdb(everything, oracle)


def test_each_row_is_read_once() -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM all_bids AS SELECT auction FROM bids")
        session.sql("INSERT INTO bids (auction) VALUES (1), (2)")
        assert session.read("all_bids").num_rows == 0
        session.tick()
        assert session.read("all_bids")["auction"].to_pylist() == [1, 2]
        assert session.read("all_bids").num_rows == 0
        session.tick()
        session.sql("INSERT INTO bids (auction) VALUES (3)")
        session.tick()
        assert session.read("ALL_BIDS")["auction"].to_pylist() == [3]


def test_values_have_the_types_of_their_columns() -> None:
    with lj.Session() as session:
        session.sql(
            "CREATE SOURCE kinds (i INT, f REAL, d DECIMAL(10, 2), s TEXT, b BOOLEAN, ts TIMESTAMP, day DATE)"
        )
        session.sql("CREATE STREAM out AS SELECT * FROM kinds")
        session.sql(
            "INSERT INTO kinds VALUES (-5, 2.5, 1.25, 'it''s', TRUE, TIMESTAMP '2026-01-02 03:04:05', "
            "DATE '2026-01-02'), (NULL, 7, -3, '', false, '2026-01-02 03:04:05.5', NULL)"
        )
        session.tick()
        first, second = (list(row.values()) for row in session.read("out").to_pylist())
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert [first[0], first[1], str(first[2]), *first[3:]] == [
        *(-5, 2.5, "1.25", "it's", True),
        *(moment, moment.date()),
    ]
    later = moment + datetime.timedelta(milliseconds=500)
    assert [second[0], second[1], str(second[2]), *second[3:]] == [None, 7, "-3.00", "", False, later, None]


@pytest.mark.parametrize(
    "rows",
    [
        [{"k": 1, "s": "a"}, {"k": 2}],
        [(1, "a"), (2, None)],
        [[1, "a"], [2, None]],
        pa.table({"k": [1, 2], "s": ["a", None]}),
        pa.record_batch({"s": ["a", None], "more": [0, 0], "k": [1, 2]}),
        iter(
            [
                pa.record_batch({"k": [1], "s": ["a"]}),
                pa.record_batch({"k": [2], "s": pa.nulls(1, pa.string())}),
            ]
        ),
        [pa.record_batch({"k": [1], "s": ["a"]}), pa.record_batch({"k": [2], "s": pa.nulls(1, pa.string())})],
        polars.DataFrame({"k": [1, 2], "s": ["a", None]}),
        {"k": [1, 2], "s": ["a", None]},
    ],
    ids=["dicts", "tuples", "lists", "table", "batch", "iterator", "batches", "polars", "columns"],
)
def test_rows_come_in_any_form(rows: object) -> None:
    with lj.Session() as session:
        session.sql("CREATE SOURCE t (k BIGINT, s TEXT)")
        session.sql("CREATE STREAM out AS SELECT * FROM t")
        session.insert("t", rows)
        assert session.inserted == {"t": 2}
        session.insert("t", [])
        session.tick()
        assert session.read("out").to_pylist() == [{"k": 1, "s": "a"}, {"k": 2, "s": None}]


def test_statements_may_have_comments() -> None:
    with lj.Session() as session:
        session.sql("""-- where bids come in
            CREATE SOURCE t (
                k BIGINT NOT NULL, -- who, and what
                "of when" TIMESTAMP, /* UTC */
                amount DECIMAL(10, 2),
                WATERMARK FOR "of when" AS "of when" - INTERVAL '1' MINUTE);""")
        session.sql("/* all */ CREATE STREAM out AS SELECT k -- only these\nFROM t;")
        session.sql("INSERT INTO t VALUES (1, '2026-01-01', 1.5) -- one")
        session.tick()
        assert session.read("out").to_pylist() == [{"k": 1}]
        source = session._sources["t"].plan
        assert (source.time, source.delay) == ("of when", 60_000_000)


def test_times_ahead_of_the_clock_do_not_close_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by pytest.warns: what it catches warnings with is taken down by a thread that compiles meanwhile.
    warned: list[tuple[str, type[Warning]]] = []
    monkeypatch.setattr(
        "laminar_jit.session_streams.warnings",
        SimpleNamespace(warn=lambda message, category, stacklevel: warned.append((message, category))),
    )
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def run(**options: Any) -> tuple[int, int]:
        with lj.Session(clock=now.timestamp, **options) as session:
            session.sql(SOURCE)
            session.sql(f"CREATE STREAM s AS {TUMBLING}")
            session.sql("INSERT INTO bids (auction, ts) VALUES (1, '2026-01-01'), (1, '2026-01-01 00:06:00')")
            session.tick()
            return session.read("s").num_rows, session.counters("s")["far_future"]

    assert run() == (0, 1)
    ((message, category),) = warned
    assert category is RuntimeWarning
    assert "ahead of the clock" in message
    assert run(future_limit="6m") == (1, 0)
    assert run(future_limit=None) == (1, 0)
    assert len(warned) == 1


def test_explain_analyze_tells_what_a_stream_has_done() -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM s AS {TUMBLING}")
        session.sql(f"CREATE STREAM h AS {HOPPING}")
        session.sql("INSERT INTO bids (auction, ts) VALUES (1, '2026-01-01'), (1, '2026-01-01 00:06:02')")
        session.tick()
        plain = session.sql("EXPLAIN STREAM s")["plan"].to_pylist()
        assert "Ring 0 shared with h" in plain and "So far" not in plain
        analyzed = session.sql("EXPLAIN ANALYZE STREAM s")["plan"].to_pylist()
        assert analyzed[: len(plain)] == plain
        assert {"  rows_in: 2", "  windows_closed: 1", "  watermark: 2026-01-01 00:06:00"} <= set(analyzed)


def test_a_stream_that_fails_says_so_until_it_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(rows: object) -> None:
        raise MemoryError("not three")

    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM s AS {TUMBLING}")
        session.sql("CREATE STREAM t AS SELECT auction FROM bids")
        monkeypatch.setattr(session._streams["s"].ring1, "process", fails)
        session.insert("bids", [{"auction": 3, "ts": datetime.datetime(2026, 1, 1)}])
        for _ in range(2):
            with pytest.raises(MemoryError, match="not three") as problem:
                session.tick()
        assert any("in stream s" in note for note in problem.value.__notes__)
        assert session.read("t").num_rows == 1
        session.sql("DROP STREAM s")
        session.tick()


def test_an_interrupted_tick_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(batch: object) -> None:
        raise KeyboardInterrupt

    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")
        session.sql(f"CREATE STREAM t AS {TUMBLING}")
        monkeypatch.setattr(session._groups[1], "take", interrupted)
        session.insert("bids", [{"auction": 3}])
        with pytest.raises(KeyboardInterrupt):
            session.tick()
        with pytest.raises(PlanError, match="interrupted half-way"):
            session.read("s")


def test_a_subscriber_may_insert_but_not_tick() -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids WHERE auction < 3")
        session.sql("CREATE STREAM t AS SELECT auction FROM bids")
        session.subscribe(
            "s", lambda batch: session.insert("bids", [{"auction": batch["auction"][0].as_py() + 1}])
        )
        session.insert("bids", [{"auction": 1}])
        for _ in range(3):
            session.tick()
        assert session.read("t")["auction"].to_pylist() == [1, 2, 3]
        session.subscribe("t", lambda batch: session.tick())
        session.insert("bids", [{"auction": 9}])
        with pytest.raises(PlanError, match="called by a subscriber"):
            session.tick()


def test_subscribers_get_what_is_unread_and_what_comes() -> None:
    taken: list[int] = []
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")

        def insert(number: int) -> None:
            session.insert("bids", [{"auction": number}])
            session.tick()

        insert(1)
        called = session.subscribe("s", lambda batch: taken.extend(batch["auction"].to_pylist()))
        insert(2)
        assert taken == [1, 2]
        iterated = session.subscribe("s")
        insert(3)
        assert [batch["auction"].to_pylist() for batch in iterated] == [[3]]
        assert list(iterated) == []
        with pytest.raises(PlanError, match="subscribed to"):
            session.read("s")
        called.close()
        insert(4)
        iterated.close()
        insert(5)
        assert session.read("s")["auction"].to_pylist() == [4, 5]
    assert taken == [1, 2, 3]


def test_a_callback_that_raises_gets_its_batch_again() -> None:
    seen: list[int] = []

    def callback(batch: pa.RecordBatch) -> None:
        seen.append(batch["auction"][0].as_py())
        if len(seen) == 1:
            raise ValueError("not now")

    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")
        session.subscribe("s", callback)
        session.insert("bids", [{"auction": 7}])
        with pytest.raises(ValueError, match="not now"):
            session.tick()
        session.tick()
    assert seen == [7, 7]


def test_late_rows_are_a_stream_of_their_own() -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM s AS {TUMBLING} LATE DATA TO late_bids")
        session.sql("INSERT INTO bids (auction, ts) VALUES (1, '2026-01-01 00:01:00'), (2, '2026-01-01')")
        session.tick()
        assert session.read("late_bids")["auction"].to_pylist() == [2]


def test_show_and_drop() -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql(f"CREATE STREAM s AS {PLAIN};")
        assert session.sql("SHOW SOURCES")["name"].to_pylist() == ["bids"]
        assert session.sql("show streams").to_pylist() == [{"name": "s", "definition": PLAIN}]
        plan = "\n".join(session.sql(f"EXPLAIN {TUMBLING}")["plan"].to_pylist())
        assert "WindowAggregate" in plan or "tumble" in plan
        assert session.sql(f"EXPLAIN CREATE STREAM t AS {PLAIN}").num_rows
        assert session.sql("SHOW STREAMS").num_rows == 1
        with pytest.raises(PlanError, match="drop the streams first"):
            session.sql("DROP SOURCE bids")
        session.sql("DROP STREAM s")
        session.sql("DROP SOURCE bids")
        assert session.sql("SHOW SOURCES").num_rows == 0
    with pytest.raises(PlanError, match="closed"):
        session.tick()


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("SELECT auction FROM bids", UnsupportedClause, "CREATE STREAM"),
        ("UPDATE bids SET auction = 1", UnsupportedClause, "expected CREATE SOURCE"),
        ("CREATE SOURCE bids (x INT)", PlanError, "already"),
        ("CREATE SOURCE t (x INT, x INT)", PlanError, "twice"),
        ("CREATE SOURCE t (x INT, WATERMARK FOR y AS y)", PlanError, "names no one column"),
        (
            "CREATE SOURCE t (ts TIMESTAMP, WATERMARK FOR ts AS ts + INTERVAL '1' SECOND)",
            PlanError,
            "watermark",
        ),
        ("CREATE SOURCE t (x)", PlanError, "a name and a type"),
        ("CREATE STREAM t AS SELECT nothing FROM bids", UnknownColumn, "nothing"),
        ("CREATE STREAM t AS SELECT auction FROM s", PlanError, "stream over a stream"),
        ("CREATE STREAM t AS SELECT auction FROM bids ORDER BY auction", UnsupportedClause, "ORDER BY"),
        ("CREATE STREAM t AS SELECT auction, count(*) FROM bids GROUP BY auction", PlanError, "a window"),
        (
            "CREATE STREAM t AS SELECT k, count(*) FROM timeless GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)",
            PlanError,
            "WATERMARK FOR",
        ),
        ("INSERT INTO nowhere VALUES (1)", PlanError, "no source"),
        ("INSERT INTO bids (auction) VALUES (1, 2)", PlanError, "does not fit"),
        ("INSERT INTO bids (auction) VALUES ('one')", SchemaMismatch, "auction"),
        ("INSERT INTO bids (auction) VALUES (NULL)", SchemaMismatch, "NOT NULL"),
        ("INSERT INTO bids (auction) VALUES (1 + 1)", UnsupportedClause, "constant"),
        ("INSERT INTO bids SELECT 1", UnsupportedClause, "VALUES"),
        ("DROP STREAM nothing", PlanError, "no stream"),
        ("EXPLAIN ANALYZE SELECT auction FROM bids", UnsupportedClause, "EXPLAIN ANALYZE STREAM"),
        ("EXPLAIN STREAM nothing", PlanError, "no stream"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    statement: str, error: type[LaminarError], message: str
) -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE SOURCE timeless (k INT, ts TIMESTAMP)")
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")
        with pytest.raises(error, match=message):
            session.sql(statement)
        assert session.sql("SHOW SOURCES").num_rows == 2
        assert session.sql("SHOW STREAMS").num_rows == 1
        session.tick()
        assert session.read("s").num_rows == 0


@pytest.mark.parametrize(
    "rows", [[{"auction": 1, "prize": 2.0}], [{"auction": "one"}], [{"price": 1.0}], {"auction": ["x"]}]
)
def test_rows_that_do_not_fit_are_refused_whole(rows: object) -> None:
    with lj.Session() as session:
        session.sql(SOURCE)
        session.sql("CREATE STREAM s AS SELECT auction FROM bids")
        with pytest.raises(LaminarError):
            session.insert("bids", rows)
        session.tick()
        assert session.read("s").num_rows == 0
