"""SQL aggregates as aggregates of the Python API."""

from __future__ import annotations

import decimal

from sqlglot import exp

from .. import aggregates as lj
from ..aggregates import Aggregate
from ..errors import PlanError
from .dialect import to_text
from .expressions import NotOnRings, Scope, translate
from .functions import constant_of
from .registered import known_aggregate

#: SQL name of every aggregate that takes plain expressions, and ours.
PLAIN = {
    **{
        name: name
        for name in (
            *("count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop"),
            *("covar_samp", "covar_pop", "corr", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx"),
            *("regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2", "bool_and", "bool_or"),
            *(
                "bit_and",
                "bit_or",
                "bit_xor",
                "approx_count_distinct",
                "median",
                "arg_min",
                "arg_max",
                "array_agg",
            ),
        )
    },
    "first_value": "first",
    "last_value": "last",
    "max_by": "arg_max",
    "mean": "avg",
    "min_by": "arg_min",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "bool_and",
}

ORDERED = ("percentile_cont", "percentile_disc", "mode")
NAMES = frozenset((*PLAIN, *ORDERED, "string_agg", "array_agg", "approx_percentile"))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether *node* is an aggregate call, FILTER and WITHIN GROUP included."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return is_aggregate(node.this)
    if not isinstance(node, exp.Anonymous):
        return False
    name = str(node.this).lower()
    return name in NAMES or known_aggregate(name) is not None


def translate_aggregate(node: exp.Expr, scope: Scope) -> Aggregate:
    """The aggregate call *node* over the columns of *scope*."""
    if isinstance(node, exp.Filter):
        condition = translate(node.expression.this, scope)
        return translate_aggregate(node.this, scope).filter(condition)
    if isinstance(node, exp.WithinGroup):
        return _ordered(node, scope)
    name = str(node.this).lower()
    arguments = list(node.expressions)
    if any(list(each.find_all(exp.Order)) for each in arguments):
        raise NotOnRings(f"{to_text(node)}: ORDER BY inside an aggregate is not available on the rings")
    if any(inner is not node and is_aggregate(inner) for each in arguments for inner in each.walk()):
        raise PlanError(f"{to_text(node)}: an aggregate cannot stand inside an aggregate.")
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return lj.count()
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    values = [translate(argument, scope) for argument in arguments]
    if name == "string_agg":
        if len(values) != 2:
            raise PlanError(f"{to_text(node)}: string_agg takes a value and a separator.")
        call = lj.string_agg(values[0], constant_of(values[1], "string_agg", "separator"))
    elif name == "approx_percentile":
        call = lj.approx_percentile(values[0], constant_of(values[1], name, "fraction"))
    elif name in PLAIN:
        if name == "count" and len(values) != 1:
            raise NotOnRings(
                f"{to_text(node)}: count over {len(values)} expressions is not available on the rings"
            )
        call = getattr(lj, PLAIN[name])(*values)
    elif (user := known_aggregate(name)) is not None:
        call = user(*values)
    else:
        raise NotOnRings(f"{to_text(node)} is not available on the rings")
    return call.unique() if distinct else call


def _ordered(node: exp.WithinGroup, scope: Scope) -> Aggregate:
    name = str(node.this.this).lower()
    keys = node.expression.expressions
    if name not in ORDERED or len(keys) != 1:
        raise PlanError(
            f"{to_text(node)}: WITHIN GROUP follows {', '.join(ORDERED)} and orders by one expression."
        )
    value = translate(keys[0].this, scope)
    if name == "mode":
        return lj.mode(value)
    given = node.this.expressions
    if len(given) != 1:
        raise PlanError(f"{to_text(node)}: {name} takes one fraction, as in {name}(0.5).")
    fraction = float(constant_of(translate(given[0], scope), name, "fraction"))
    if keys[0].args.get("desc"):
        if name == "percentile_disc":
            raise NotOnRings(f"{to_text(node)}: a descending order is not available on the rings")
        # Interpolation is the same from either end.
        fraction = float(1 - decimal.Decimal(repr(fraction)))
    return getattr(lj, name)(value, fraction)
