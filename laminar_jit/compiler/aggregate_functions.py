"""The aggregate functions: which accumulators each needs, how it is finished, and its result type.

A function is a row of ``FUNCTIONS``. It is built from *components*, the
accumulators of ``kernels/accumulators.py``; equal components of different
aggregates are stored and updated once (``avg(x)`` beside ``sum(x)`` is free).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..aggregate_definition import AggregateDefinition
from ..errors import TypeMismatch, UnsupportedClause
from ..kernels.accumulators import WORDS
from ..types import BOOL, DataType
from .user_aggregate_source import user_arguments

TIME = ("time", -1)


@dataclass(frozen=True)
class Component:
    """One accumulator: its kind, what is added for a row, and which rows are added.

    *arguments* are (form, field) pairs: ``int``, ``float``, ``word``, ``order``
    and ``string`` are ways to read the field, ``as float64`` and the like what a
    user aggregate takes, ``time`` is the row's event time.
    A row counts if none of *fields* is NULL and *condition*, a bool field, is true.
    """

    kind: str
    arguments: tuple[tuple[str, int], ...]
    fields: tuple[int, ...]
    condition: int | None
    #: The aggregate whose state this is, where it is the user's own.
    user: AggregateDefinition | None = None

    @property
    def words(self) -> int:
        """Words in a group record."""
        return WORDS[self.kind] if self.user is None else self.user.words


@dataclass(frozen=True)
class Recipe:
    """How one aggregate call is computed: named components, and the finishing step of the runtime."""

    components: dict[str, Component]
    finish: str
    options: dict[str, Any]
    result: pa.DataType


@dataclass(frozen=True)
class _Call:
    function: str
    fields: tuple[int, ...]
    types: tuple[DataType, ...]
    condition: int | None
    parameters: tuple[Any, ...]

    def component(self, kind: str, *arguments: tuple[str, int]) -> Component:
        return Component(kind, arguments, tuple(sorted(set(self.fields))), self.condition)

    @property
    def count(self) -> Component:
        return self.component("count")

    def refuse(self, expected: str) -> TypeMismatch:
        given = ", ".join(str(one) for one in self.types)
        return TypeMismatch(f"{self.function}({given}): expected {expected}. Cast the argument first.")


def _count(call: _Call) -> Recipe:
    return Recipe({"count": call.count}, "count", {}, pa.int64())


def _sum_kind(call: _Call, which: int = 0) -> tuple[str, str]:
    kind = call.types[which]
    if kind.is_float:
        return "sum_float64", "float"
    if kind.name == "uint64":
        return "sum_uint64", "int"
    if kind.is_integer or (kind.is_decimal and not kind.is_wide) or kind.name == "duration":
        return "sum_int64", "int"
    raise call.refuse("a number, a decimal of up to 18 digits or a duration")


def _sum(call: _Call) -> Recipe:
    kind, form = _sum_kind(call)
    given = call.types[0]
    if given.is_decimal:
        result, finish = pa.decimal128(min(38, given.precision + 20), given.scale), "sum_decimal"
    else:
        finish = kind
        result = {"sum_float64": pa.float64(), "sum_uint64": pa.uint64(), "sum_int64": pa.int64()}[kind]
        if given.name == "duration":
            result = given.to_arrow()
    total = call.component(kind, (form, call.fields[0]))
    return Recipe({"count": call.count, "sum": total}, finish, {}, result)


def _avg(call: _Call) -> Recipe:
    kind, form = _sum_kind(call)
    if call.types[0].name == "duration":
        raise call.refuse("a number or a decimal of up to 18 digits")
    total = call.component(kind, (form, call.fields[0]))
    options = {"sum": kind, "scale": call.types[0].scale}
    return Recipe({"count": call.count, "sum": total}, "avg", options, pa.float64())


def _extreme(call: _Call) -> Recipe:
    given = call.types[0]
    if given.is_wide:
        raise call.refuse("any type but a decimal of more than 18 digits")
    parts = {"count": call.count}
    if given.is_text:
        parts["value"] = call.component(f"{call.function}_string", ("string", call.fields[0]))
        return Recipe(parts, "string", {}, given.to_arrow())
    parts["value"] = call.component(f"{call.function}_word", ("order", call.fields[0]))
    return Recipe(parts, "order", {"kind": given.row_kind}, given.to_arrow())


def _by_time(call: _Call) -> Recipe:
    return _kept_value(call, (TIME,))


def _by_value(call: _Call) -> Recipe:
    order = call.types[1]
    if order.is_text or order.is_wide:
        raise call.refuse("a number, bool or time to order by as second argument")
    return _kept_value(call, (("order", call.fields[1]), TIME))


def _kept_value(call: _Call, leading: tuple[tuple[str, int], ...]) -> Recipe:
    given = call.types[0]
    if given.is_wide:
        raise call.refuse("any type but a decimal of more than 18 digits")
    form = "string" if given.is_text else "word"
    kept = call.component(f"{call.function}_{form}", *leading, (form, call.fields[0]))
    # The value stands behind the words it is ordered by.
    options = {"value_at": 8 * len(leading)}
    return Recipe({"count": call.count, "value": kept}, form, options, given.to_arrow())


def _moments(call: _Call) -> Recipe:
    """Variances from sums of values and products in double-double: merging does not change them."""
    parts = {"count": call.count}
    names = "x" if len(call.fields) == 1 else "yx"
    for which, (field, given) in enumerate(zip(call.fields, call.types, strict=True)):
        if not (given.is_integer or given.is_float or (given.is_decimal and not given.is_wide)):
            raise call.refuse("numbers")
        name, value = names[which], ("float", field)
        parts[f"s{name}"] = call.component("pair_sum", value)
        parts[f"s{name}{name}"] = call.component("pair_product", value, value)
        # Equal values have no variance at all, whatever the sums round to.
        parts[f"min{name}"] = call.component("min_word", ("order", field))
        parts[f"max{name}"] = call.component("max_word", ("order", field))
    if len(call.fields) == 2:
        parts["sxy"] = call.component("pair_product", ("float", call.fields[1]), ("float", call.fields[0]))
    scales = {f"scale_{name}": given.scale for name, given in zip(names, call.types, strict=True)}
    result = pa.int64() if call.function == "regr_count" else pa.float64()
    return Recipe(parts, "moments", {"function": call.function, **scales}, result)


def _logical(call: _Call) -> Recipe:
    if call.types[0] != BOOL:
        raise call.refuse("a bool")
    kind = "min_word" if call.function == "bool_and" else "max_word"
    parts = {"count": call.count, "value": call.component(kind, ("order", call.fields[0]))}
    return Recipe(parts, "order", {"kind": "bool"}, pa.bool_())


def _bits(call: _Call) -> Recipe:
    if not call.types[0].is_integer:
        raise call.refuse("an integer")
    parts = {"count": call.count, "value": call.component(call.function, ("word", call.fields[0]))}
    return Recipe(parts, "word", {}, call.types[0].to_arrow())


def _approx_distinct(call: _Call) -> Recipe:
    if call.types[0].is_wide:
        raise call.refuse("any type but a decimal of more than 18 digits")
    form = "hashed_string" if call.types[0].is_text else "hashed"
    sketch = call.component("distinct_sketch", (form, call.fields[0]))
    return Recipe({"sketch": sketch}, "sketch", {}, pa.int64())


def _collect(call: _Call, function: str, result: pa.DataType, **options: Any) -> Recipe:
    """From a log of all values; the group keeps nothing but their count."""
    given = call.types[0]
    if given.is_wide:
        raise call.refuse("any type but a decimal of more than 18 digits")
    form = "string" if given.is_text else "order"
    parts = {"count": call.count, "log": call.component("log", (form, call.fields[0]))}
    more = {"function": function, "kind": given.row_kind, "scale": given.scale, "distinct": False}
    return Recipe(parts, "collect", more | options, result)


def _percentile(call: _Call) -> Recipe:
    given = call.types[0]
    if call.function == "median":
        fraction: Any = 0.5
    elif len(call.parameters) == 1:
        fraction = call.parameters[0]
    else:
        raise TypeMismatch(f"{call.function} takes one fraction between 0 and 1, {call.parameters!r} given")
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise TypeMismatch(f"{call.function} takes a fraction between 0 and 1, {fraction!r} given")
    if call.function in ("percentile_disc",):
        return _collect(call, "percentile_disc", given.to_arrow(), fraction=float(fraction))
    if not given.is_numeric:
        raise call.refuse("a number")
    return _collect(call, "percentile_cont", pa.float64(), fraction=float(fraction))


def _array_agg(call: _Call) -> Recipe:
    return _collect(call, "array_agg", pa.list_(call.types[0].to_arrow()))


def _string_agg(call: _Call) -> Recipe:
    if call.types[0].name != "string":
        raise call.refuse("a string")
    separator = call.parameters[0] if call.parameters else ","
    if len(call.parameters) > 1 or not isinstance(separator, str):
        raise TypeMismatch(f"string_agg takes one separator text, {call.parameters!r} given")
    return _collect(call, "string_agg", pa.string(), separator=separator)


def _mode(call: _Call) -> Recipe:
    return _collect(call, "mode", call.types[0].to_arrow())


def _distinct(call: _Call, plain: Recipe) -> Recipe:
    """An aggregate over the distinct values only."""
    if plain.finish == "collect":
        return Recipe(plain.components, "collect", plain.options | {"distinct": True}, plain.result)
    if call.function in ("count", "sum", "avg") and len(call.fields) == 1:
        return _collect(call, call.function, plain.result, distinct=True)
    raise UnsupportedClause(
        f"{call.function}(DISTINCT …) is not available over windows; count, sum, avg, array_agg, string_agg "
        "and percentiles are. Group by the value first, then aggregate."
    )


@dataclass(frozen=True)
class _Function:
    build: Callable[[_Call], Recipe]
    arguments: tuple[int, ...]
    #: Whether DISTINCT changes nothing.
    ignores_duplicates: bool = False
    #: How many parameters beside the arguments.
    parameters: tuple[int, ...] = (0,)


FUNCTIONS: dict[str, _Function] = {
    "count": _Function(_count, (0, 1)),
    "sum": _Function(_sum, (1,)),
    "avg": _Function(_avg, (1,)),
    "min": _Function(_extreme, (1,), True),
    "max": _Function(_extreme, (1,), True),
    "first": _Function(_by_time, (1,), True),
    "last": _Function(_by_time, (1,), True),
    "arg_min": _Function(_by_value, (2,), True),
    "arg_max": _Function(_by_value, (2,), True),
    "bool_and": _Function(_logical, (1,), True),
    "bool_or": _Function(_logical, (1,), True),
    "bit_and": _Function(_bits, (1,), True),
    "bit_or": _Function(_bits, (1,), True),
    "bit_xor": _Function(_bits, (1,)),
    "approx_count_distinct": _Function(_approx_distinct, (1,), True),
    "median": _Function(_percentile, (1,), parameters=(0,)),
    "percentile_cont": _Function(_percentile, (1,), parameters=(1,)),
    "percentile_disc": _Function(_percentile, (1,), parameters=(1,)),
    "approx_percentile": _Function(_percentile, (1,), parameters=(1,)),
    "array_agg": _Function(_array_agg, (1,)),
    "string_agg": _Function(_string_agg, (1,), parameters=(0, 1)),
    "mode": _Function(_mode, (1,)),
    **{name: _Function(_moments, (1,)) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")},
    **{
        name: _Function(_moments, (2,))
        for name in (
            "covar_samp",
            "covar_pop",
            "corr",
            "regr_count",
            "regr_avgx",
            "regr_avgy",
            "regr_sxx",
            "regr_syy",
            "regr_sxy",
            "regr_slope",
            "regr_intercept",
            "regr_r2",
        )
    },
}

ALIASES = {
    "count_star": "count",
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "first_value": "first",
    "last_value": "last",
    "any_value": "first",
    "min_by": "arg_min",
    "max_by": "arg_max",
    "argmin": "arg_min",
    "argmax": "arg_max",
    "every": "bool_and",
    "approx_distinct": "approx_count_distinct",
    "quantile_cont": "percentile_cont",
    "quantile_disc": "percentile_disc",
    "collect_list": "array_agg",
    "listagg": "string_agg",
    "logical_and": "bool_and",
    "logical_or": "bool_or",
}


def recipe(
    function: str,
    fields: Sequence[int],
    types: Sequence[DataType | pa.DataType | str],
    condition: int | None = None,
    distinct: bool = False,
    parameters: Sequence[Any] = (),
) -> Recipe:
    """How to compute one aggregate call; raises a ``PlanError`` that names what does not fit."""
    if parameters and isinstance(parameters[0], AggregateDefinition):
        return _user(parameters[0], fields, types, condition, distinct)
    name = ALIASES.get(function.lower(), function.lower())
    entry = FUNCTIONS.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, [*FUNCTIONS, *ALIASES], n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnsupportedClause(
            f"aggregate function {function!r} is not available; there are {', '.join(FUNCTIONS)}.{hint}"
        )
    if len(fields) not in entry.arguments or len(types) != len(fields):
        wanted = " or ".join(str(one) for one in entry.arguments)
        raise TypeMismatch(f"{function} takes {wanted} argument(s), {len(fields)} given")
    if len(parameters) not in entry.parameters:
        wanted = " or ".join(str(one) for one in entry.parameters)
        raise UnsupportedClause(f"{function} takes {wanted} parameter(s); {tuple(parameters)!r} given")
    parsed = tuple(DataType.parse(one) for one in types)
    call = _Call(name, tuple(fields), parsed, condition, tuple(parameters))
    plain = entry.build(call)
    return _distinct(call, plain) if distinct and not entry.ignores_duplicates else plain


def _user(
    definition: AggregateDefinition,
    fields: Sequence[int],
    types: Sequence[DataType | pa.DataType | str],
    condition: int | None,
    distinct: bool,
) -> Recipe:
    """A user aggregate: one component, its state; finish has the last word over NULL."""
    parsed = tuple(DataType.parse(one) for one in types)
    arguments = user_arguments(definition, fields, parsed, distinct)
    state = Component("user", arguments, tuple(sorted(set(fields))), condition, definition)
    return Recipe({"state": state}, "user", {}, definition.returns.to_arrow())


def result_type(
    function: str, types: Sequence[DataType | pa.DataType | str], parameters: Sequence[Any] = ()
) -> pa.DataType:
    """The Arrow type of an aggregate's result."""
    return recipe(function, tuple(range(len(types))), types, parameters=parameters).result
