"""Functions of users are called by name in SQL: compiled on the rings, and on DataFusion the same ones."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, UdfFailed, UnsupportedClause

TS = pa.array([1, 2, 11, 12], pa.timestamp("s")).cast(pa.timestamp("us"))
BIDS = pa.table({"ts": TS, "k": [1, 1, 2, 1], "price": [10.0, None, 30.0, 40.0]})
WINDOWED = "FROM bids GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"


@lj.udf(returns="float64")
def fee(price: float, percent: float = 10.0) -> float:
    return price * percent / 100


@lj.udf(mode="arrow", returns="string")
def shout(text: pa.Array) -> pa.Array:
    return pa.array([(each.as_py() or "nobody").upper() + "!" for each in text], pa.string())


@lj.udf(returns="float64")
def fails(price: float) -> float:
    if price > 20:
        raise ValueError("too much")
    return price


@lj.aggregate(arguments=("float64",), state={"total": "float64"}, returns="float64")
class squares:
    def init(state):
        state.total = 0.0

    def update(state, value):
        state.total += value * value

    def merge(state, other):
        state.total += other.total

    def finish(state):
        return state.total


@pytest.fixture
def registered() -> Iterator[None]:
    lj.register(fee)
    lj.register(squares)
    yield
    lj.unregister("FEE")
    lj.unregister("squares")


@pytest.mark.parametrize("order", ["", " ORDER BY f"])
def test_a_udf_on_both_routes(order: str, registered: None) -> None:
    query = f"SELECT Fee(price) AS f, fee(price, 50) + k AS h FROM bids{order}"
    ours = lj.sql(query, bids=BIDS)
    expected = [(1.0, 6.0), (None, None), (3.0, 17.0), (4.0, 21.0)]
    assert sorted(map(repr, (tuple(row.values()) for row in ours.to_pylist()))) == sorted(map(repr, expected))
    assert ("DataFusion" in lj.explain_sql(query, bids=BIDS)) == bool(order)


def test_udfs_in_every_clause(registered: None) -> None:
    query = f"SELECT sum(fee(price)) AS s, squares(price) AS q {WINDOWED} HAVING fee(max(price)) > 0.5"
    assert lj.sql(query, bids=BIDS).to_pylist() == [{"s": 1.0, "q": 100.0}, {"s": 7.0, "q": 2500.0}]
    query = "SELECT k FROM bids WHERE fee(price) > 2 GROUP BY k ORDER BY k"
    assert lj.sql(query, bids=BIDS)["k"].to_pylist() == [1, 2]


def test_functions_of_one_query() -> None:
    for text in ("SELECT shout(s) AS s FROM t", "SELECT shout(s) AS s FROM t ORDER BY s"):
        assert lj.sql(text, udfs=[shout], t={"s": ["a", None]})["s"].to_pylist() == ["A!", None]
        assert lj.sql(text.replace("shout", "cry"), udfs={"cry": shout}, t={"s": ["a"]})["s"].to_pylist() == [
            "A!"
        ]
        with pytest.raises(UnsupportedClause, match="function shout"):
            lj.sql(text, t={"s": ["a"]})
    assert "shout" in lj.explain_sql("SELECT shout(s) FROM t ORDER BY 1", udfs=[shout], t={"s": ["a"]})


def test_the_nearest_function_counts(registered: None) -> None:
    other = lj.udf(lambda price: price, returns="float64")
    text = "SELECT max(fee(price)) AS f FROM bids GROUP BY k"
    assert lj.sql(text, bids=BIDS)["f"].to_pylist() == [4.0, 3.0]
    assert lj.sql(text, udfs={"fee": other}, bids=BIDS)["f"].to_pylist() == [40.0, 30.0]
    assert lj.sql(text, bids=BIDS)["f"].to_pylist() == [4.0, 3.0]


def test_replacing(registered: None) -> None:
    with pytest.raises(PlanError, match="registered already"):
        lj.register(shout, "fee")
    with pytest.raises(PlanError, match="is a function of SQL"):
        lj.register(fee, "upper")
    with pytest.raises(PlanError, match="no function 'nobody'"):
        lj.unregister("nobody")
    with pytest.raises(PlanError, match="made of a function"):
        lj.register(len)
    text = "SELECT fee(price) AS f FROM bids WHERE k = 2"
    assert lj.sql(text, bids=BIDS)["f"].to_pylist() == [3.0]
    lj.register(lj.udf(lambda price: price + 1, returns="float64"), "fee", replace=True)
    assert lj.sql(text, bids=BIDS)["f"].to_pylist() == [31.0]


def test_a_user_aggregate_where_datafusion_is_needed_is_refused(registered: None) -> None:
    with pytest.raises(
        UnsupportedClause, match=r"(?i)squares.*user aggregate is not available on DataFusion"
    ):
        lj.sql("SELECT squares(price) FROM bids ORDER BY 1", bids=BIDS)
    # Windowed parts still run on the rings, under what DataFusion does.
    ours = lj.sql(f"SELECT squares(price) AS q {WINDOWED} ORDER BY q DESC LIMIT 1", bids=BIDS)
    assert ours["q"].to_pylist() == [2500.0]


@pytest.mark.parametrize("order", ["", " ORDER BY f"])
def test_what_a_function_raises_is_told(order: str) -> None:
    with pytest.raises(UdfFailed, match="too much"):
        lj.sql(f"SELECT fails(price) AS f FROM bids{order}", udfs=[fails], bids=BIDS)


def test_in_a_session() -> None:
    with lj.Session() as session:
        session.sql("CREATE SOURCE bids (k BIGINT, price DOUBLE PRECISION)")
        with pytest.raises(UnsupportedClause, match="function fee"):
            session.sql("CREATE STREAM fees AS SELECT fee(price) AS f FROM bids")
        session.register(fee)
        session.sql("CREATE STREAM fees AS SELECT fee(price) AS f FROM bids")
        session.register(lj.udf(lambda price: price, returns="float64"), "fee", replace=True)
        session.sql("CREATE STREAM whole AS SELECT fee(price) AS f FROM bids")
        session.unregister("fee")
        with pytest.raises(UnsupportedClause, match="function fee"):
            session.sql("EXPLAIN SELECT fee(price) FROM bids")
        session.insert("bids", [(1, 50.0)])
        session.tick()
        # A stream keeps the function it was created with.
        assert session.read("fees")["f"].to_pylist() == [5.0]
        assert session.read("whole")["f"].to_pylist() == [50.0]


def test_a_session_is_restored_with_its_functions(tmp_path) -> None:
    with lj.Session(checkpoint=tmp_path, udfs=[fee]) as session:
        session.sql("CREATE SOURCE bids (k BIGINT, price DOUBLE PRECISION)")
        session.sql("CREATE STREAM fees AS SELECT fee(price) AS f FROM bids")
        session.insert("bids", [(1, 50.0)])
        session.checkpoint()
    with pytest.raises(UnsupportedClause, match="function fee"):
        lj.Session.restore(tmp_path)
    with lj.Session.restore(tmp_path, udfs=[fee]) as session:
        session.tick()
        assert session.read("fees")["f"].to_pylist() == [5.0]
