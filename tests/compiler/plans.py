"""A dozen plans as users would write them, whose generated sources are kept as golden files."""

from __future__ import annotations

from collections.abc import Mapping

from laminar_jit import functions as lj
from laminar_jit import types
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.ring0 import Ring0Spec
from laminar_jit.expressions import Expr, col, when
from laminar_jit.types import DataType, decimal
from laminar_jit.user_functions import udf

SCHEMA = {
    "price": (types.FLOAT64, True),
    "quantity": (types.INT32, False),
    "fee": (types.FLOAT64, False),
    "symbol": (types.STRING, True),
    "customer": (types.INT64, False),
    "amount": (decimal(12, 2), True),
    "flag": (types.BOOL, True),
    "time": (types.TIMESTAMP, False),
    "day": (types.DATE, True),
    "total": (decimal(30, 4), True),
}


@udf(returns="float64")
def discounted(price: float, quantity: int):
    return price * 0.9 if quantity > 10 else price


def plan(
    outputs: Mapping[str, Expr],
    *predicates: Expr,
    keys: tuple[str, ...] = (),
    time: Expr | None = None,
    watermarked: bool = False,
    schema: Mapping[str, tuple[DataType, bool]] = SCHEMA,
) -> Ring0Spec:
    """A spec from expressions."""
    names = list(outputs)
    return Ring0Spec(
        schema,
        tuple(bind(predicate, schema) for predicate in predicates),
        tuple((name, bind(expression, schema)) for name, expression in outputs.items()),
        tuple(names.index(key) for key in keys),
        None if time is None else bind(time, schema),
        watermarked,
    )


PLANS: dict[str, Ring0Spec] = {
    "pass_through": plan({"customer": col("customer"), "fee": col("fee")}),
    "filter_project_hash": plan(
        {"customer": col("customer"), "value": col("fee") * col("quantity"), "quantity": col("quantity")},
        col("fee") > 0.3,
        keys=("customer",),
    ),
    "event_time": plan(
        {"customer": col("customer"), "price": col("price")},
        col("price") > 100,
        keys=("customer",),
        time=col("time"),
        watermarked=True,
    ),
    "nullable_event_time": plan(
        {"quantity": col("quantity")}, time=col("day").cast("timestamp") + "1h", watermarked=True
    ),
    "string_predicate_and_key": plan(
        {"symbol": col("symbol"), "fee": col("fee")}, col("symbol") != "MSFT", keys=("symbol",)
    ),
    "like_and_in": plan(
        {"customer": col("customer")},
        col("symbol").str.like("A%") | col("symbol").str.like("%_X%") | col("symbol").is_in(["B", "C", None]),
    ),
    "checked_integers": plan(
        {
            "sum": col("quantity") + 1,
            "product": col("customer") * col("quantity"),
            "quotient": col("customer") // col("quantity"),
            "rest": col("customer") % 7,
        }
    ),
    "three_valued_logic": plan(
        {"customer": col("customer")}, ~(col("flag") & (col("price") > 1.0)) | (col("quantity") == 3)
    ),
    "case_and_coalesce": plan(
        {
            "kind": when(col("price") > 10).then("dear").when(col("price") > 1).then("fair").otherwise(None),
            "price": lj.coalesce(col("price"), col("fee"), 0.0),
            "most": lj.greatest(col("price"), col("fee")),
        }
    ),
    "built_strings": plan(
        {
            "label": col("symbol") + "-" + col("quantity").cast("string"),
            "first": col("symbol").str.substr(1, 3),
            "loud": col("symbol").str.upper(),
        },
        keys=("label",),
    ),
    "decimals": plan(
        {
            "double": col("amount") * 2,
            "rounded": col("amount").round(1),
            "total": col("total"),
            "more": col("total") + 1,
        },
        keys=("total",),
    ),
    "calendar": plan(
        {
            "month": col("time").dt.month(),
            "hour": col("time").dt.truncate("hour"),
            "later": col("day") + lj.months(1),
            "week": col("day").dt.truncate("week"),
        }
    ),
    "user_function": plan(
        {"customer": col("customer"), "price": discounted(col("price"), col("quantity"))},
        discounted(col("price"), col("quantity")) > 5.0,
        keys=("customer",),
    ),
    "shared_subexpressions": plan(
        {
            "a": col("price") * col("fee") + 1.0,
            "b": col("price") * col("fee") - 1.0,
            "c": col("price") * col("fee"),
        },
        col("price") * col("fee") > 2.0,
    ),
}
