"""Aggregates and window functions on DataFusion, in the types and with the meaning of the rings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ..errors import PlanError, UnsupportedClause
from ..types import BOOL, DataType
from .dialect import to_text

#: Aggregates whose arguments become float64 first: the rings compute them so, integers and decimals too.
_IN_FLOATS = frozenset(
    (
        *("avg", "mean", "median", "percentile_cont", "stddev", "stddev_samp", "stddev_pop"),
        *("variance", "var_samp", "var_pop", "covar_samp", "covar_pop", "corr"),
    )
)
_AS_THEY_ARE = frozenset(("count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"))

#: The rings leave NULL out of these, DataFusion does not; and they need an order to mean anything.
_WITHOUT_NULL = frozenset(("array_agg", "string_agg", "first_value", "last_value"))

AGGREGATES = frozenset((*_IN_FLOATS, *_AS_THEY_ARE, *_WITHOUT_NULL, "sum"))
_THEIR_NAMES = {"mean": "avg", "variance": "var_samp"}

#: Counts of rows, uint64 there.
_NUMBERS = frozenset(("row_number", "rank", "dense_rank", "ntile"))
WINDOW_FUNCTIONS = frozenset(
    (*_NUMBERS, "percent_rank", "cume_dist", "lag", "lead", "nth_value", "first_value", "last_value")
)

#: Digits that a sum has room for beyond those of its argument.
_SUM_DIGITS = 28


#: How the types of floats are called in arrow_cast.
FLOATS = {"double": "Float64", "float": "Float32"}


def arrow_cast(node: exp.Expr, kind: str) -> exp.Expr:
    """*node* in the Arrow type *kind*, as DataFusion spells it."""
    return exp.Anonymous(this="arrow_cast", expressions=[node, exp.Literal.string(kind)])


def in_types(
    name: str, arguments: Sequence[exp.Expr], kind_of: Callable[[int], DataType]
) -> tuple[list[exp.Expr], DataType | None]:
    """The *arguments* of an aggregate, cast, and the type its result must be checked into, if any."""
    if name in _IN_FLOATS:
        return [_in_floats(name, argument, kind_of(at)) for at, argument in enumerate(arguments)], None
    if name != "sum":
        return list(arguments), None
    kind = kind_of(0)
    if kind.is_float:
        return [arrow_cast(arguments[0], "Float64")], None
    if kind.is_decimal:
        digits = min(_SUM_DIGITS, kind.precision + 10)
        if kind.precision > digits:
            raise UnsupportedClause(
                f"sum of {kind} is not available on DataFusion; cast to at most {_SUM_DIGITS} digits first."
            )
        return [arrow_cast(arguments[0], f"Decimal128({digits}, {kind.scale})")], None
    if kind.is_integer:
        # DataFusion's sum of integers wraps; one of decimals has room, and its result is then checked.
        result = DataType("uint64") if kind.name == "uint64" else DataType("int64")
        return [arrow_cast(arguments[0], "Decimal128(20, 0)")], result
    raise UnsupportedClause(f"sum of {kind} is not available on DataFusion; cast to a number first.")


def _in_floats(name: str, argument: exp.Expr, kind: DataType) -> exp.Expr:
    if not kind.is_numeric:
        raise UnsupportedClause(f"{name} of {kind} is not available on DataFusion; cast to a number first.")
    return argument if kind.name == "float64" else arrow_cast(argument, "Float64")


def check_conditions(name: str, kinds: Sequence[DataType]) -> None:
    """Refuse what DataFusion would convert without a word."""
    if name in ("bool_and", "bool_or") and kinds[0] != BOOL:
        raise PlanError(f"{name} of {kinds[0]}; expected a bool.")


def renamed(name: str) -> str:
    """DataFusion's name of an aggregate."""
    return _THEIR_NAMES.get(name, name)


def needs_order(name: str, node: exp.Expr, *, over: bool) -> None:
    """Refuse the first of rows without an order: on the rings it is by event time, here there is none."""
    if name in ("first_value", "last_value") and not over and node.find(exp.Order) is None:
        raise UnsupportedClause(
            f"{to_text(node)} needs an order on DataFusion, where rows have no event time; write "
            f"{name}(x ORDER BY ts)."
        )


def leaves_null_out(name: str) -> bool:
    return name in _WITHOUT_NULL


def counts_rows(name: str) -> bool:
    """Whether a window function gives uint64 there, and int64 here."""
    return name in _NUMBERS


def _plain_argument(call: exp.Expr) -> exp.Expr:
    first = call.expressions[0]
    first = first.expressions[0] if isinstance(first, exp.Distinct) else first
    return first.this if isinstance(first, exp.Order) else first


def extreme(found: exp.Expr, name: str, kind: str) -> exp.Expr:
    """min or max of floats: NaN is the greatest of all on the rings; DataFusion passes over it, or not."""
    is_any, numbers = (_changed(found, name, change) for change in (_is_nan, _number))
    nan = arrow_cast(exp.Literal.string("NaN"), kind)
    if name == "max":
        return exp.Case(ifs=[exp.If(this=is_any, true=nan)], default=numbers)
    only = exp.Case(ifs=[exp.If(this=is_any, true=nan)])
    return exp.Anonymous(this="coalesce", expressions=[numbers, only])


def _changed(found: exp.Expr, name: str, change: Callable[[exp.Expr, exp.Expr], None]) -> exp.Expr:
    changed = found.copy()
    call = next(each for each in changed.find_all(exp.Anonymous) if str(each.this).lower() == name)
    change(call, _plain_argument(call).copy())
    return changed


def _is_nan(call: exp.Expr, argument: exp.Expr) -> None:
    call.set("this", "bool_or")
    call.set("expressions", [exp.Anonymous(this="isnan", expressions=[argument])])


def _number(call: exp.Expr, argument: exp.Expr) -> None:
    is_nan = exp.Anonymous(this="isnan", expressions=[argument.copy()])
    number = exp.Case(ifs=[exp.If(this=exp.Not(this=is_nan), true=argument)])
    call.set("expressions", [number])


def without_null(found: exp.Expr) -> exp.Expr:
    """*found*, a call with or without FILTER, over the rows where its argument is not NULL."""
    call = found.this if isinstance(found, exp.Filter) else found
    present = exp.Not(this=exp.Is(this=_plain_argument(call).copy(), expression=exp.Null()))
    if isinstance(found, exp.Filter):
        condition = found.expression.this
        found.expression.set("this", exp.And(this=exp.Paren(this=condition.copy()), expression=present))
        return found
    return exp.Filter(this=found, expression=exp.Where(this=present))
