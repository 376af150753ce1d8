"""What cannot run is refused by name, with what would work."""

from __future__ import annotations

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, TypeMismatch, UnknownColumn, UnsupportedClause

BIDS = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "auction": [1, 2], "price": [1.0, 2.0]})
TEN = "INTERVAL '10' SECOND"


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("SELECT prise FROM bids", UnknownColumn, "price"),
        ("SELECT upper(prise) FROM bids ORDER BY 1", UnknownColumn, "prise.*bids.price"),
        ("SELECT price FROM bids ORDER BY prise", UnknownColumn, "prise.*bids.price"),
        ("SELECT x.price FROM bids", UnknownColumn, "no table 'x'"),
        ("SELECT price FROM bidz", PlanError, "not read|no input 'bidz'"),
        ("SELECT foo(price) FROM bids", UnsupportedClause, "function foo"),
        ("SELECT now() AS y FROM bids ORDER BY y", UnsupportedClause, "function now"),
        ("SELECT price + ts AS t FROM bids ORDER BY t", TypeMismatch, "ts"),
        (
            "SELECT price FROM bids WHERE auction IN (SELECT CAST(price AS TEXT) FROM bids)",
            TypeMismatch,
            "string",
        ),
        ("SELECT mode(price) FROM bids", UnsupportedClause, "mode"),
        ("SELECT first_value(price) FROM bids", UnsupportedClause, "needs an order"),
        ("SELECT sum(ts) FROM bids ORDER BY 1", UnsupportedClause, "sum of timestamp"),
        ("SELECT price FROM bids EMIT CHANGES", UnsupportedClause, "EMIT"),
        ("SELECT price FROM bids EMIT SOMETIMES", UnsupportedClause, "EMIT SOMETIMES"),
        ("SELECT price, count(*) FROM bids GROUP BY auction", PlanError, "neither in GROUP BY"),
        (f"SELECT * FROM SESSION(bids, ts, {TEN})", UnsupportedClause, "without GROUP BY window_start"),
        (f"SELECT HOP_START(ts, {TEN}) FROM bids GROUP BY TUMBLE(ts, {TEN})", PlanError, "GROUP BY HOP"),
        ("SELECT count(*) FROM bids GROUP BY HOP(ts, INTERVAL '1' SECOND)", PlanError, "slide, size"),
        (
            f"SELECT count(*) FROM bids a JOIN bids b ON a.ts = b.ts GROUP BY TUMBLE(a.ts, {TEN})",
            UnsupportedClause,
            "JOIN",
        ),
        (
            f"SELECT count(*) AS n FROM bids GROUP BY TUMBLE(ts, {TEN}) ORDER BY n EMIT CHANGES",
            UnsupportedClause,
            "EMIT ON WINDOW CLOSE",
        ),
        ("SELECT sum(sum(price)) FROM bids GROUP BY auction", PlanError, "inside an aggregate"),
        ("SELECT price FROM bids WHERE count(*) > 1", PlanError, "HAVING"),
        ("SELECT price FORM bids WHERE", PlanError, "line 1"),
        ("INSERT INTO bids VALUES (1)", UnsupportedClause, "INSERT"),
        ("", PlanError, "empty"),
    ],
)
def test_refusal(query: str, kind: type[PlanError], message: str) -> None:
    with pytest.raises(kind, match=message):
        lj.sql(query, bids=BIDS)


def test_the_package_is_called_and_imported_from() -> None:
    from laminar_jit.sql import explain_sql

    assert explain_sql is lj.explain_sql
    assert lj.sql("SELECT price FROM bids", bids=BIDS).num_rows == 2
