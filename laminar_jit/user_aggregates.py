"""User aggregates: four plain Python functions over a typed state, compiled into the operator."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .aggregate_definition import AggregateDefinition
from .aggregates import Aggregate, _argument
from .errors import PlanError, TypeMismatch, UdfRefused, UnsupportedClause
from .expressions import Expr
from .runtime.operators.user_kernels import STEPS
from .types import DataType
from .user_functions import accepts


@dataclasses.dataclass(frozen=True, eq=False)
class UserAggregateCall(Aggregate):
    """A call of a user aggregate, as ``agg(...)`` takes it."""

    def unique(self) -> Aggregate:
        """Refused: the distinct rows of a group are not kept for user aggregates."""
        raise UnsupportedClause(
            f"{self.function}(…).unique(): DISTINCT is not available for user aggregates. "
            "Group by the values first, then aggregate."
        )


class UserAggregate:
    """A declared aggregate: call it with columns or expressions inside ``agg(...)``."""

    def __init__(
        self,
        name: str,
        steps: Mapping[str, Callable[..., Any]],
        arguments: tuple[DataType, ...],
        state: tuple[tuple[str, DataType], ...],
        returns: DataType,
        document: str | None = None,
    ) -> None:
        self.name = self.__name__ = name
        self.steps = dict(steps)
        self.arguments = arguments
        self.state = state
        self.returns = returns
        self.__doc__ = document

    def __call__(self, *expressions: Expr | str | int | float) -> Aggregate:
        """The aggregate over these arguments; rows in which one of them is NULL are left out."""
        if len(expressions) != len(self.arguments):
            declared = ", ".join(map(str, self.arguments))
            raise TypeMismatch(
                f"aggregate {self.name!r} takes {len(self.arguments)} argument(s) ({declared}), "
                f"{len(expressions)} given: {expressions!r}"
            )
        # Taken anew every time: a constant the functions read may have changed since the last query.
        definition = AggregateDefinition.of(self.name, self.steps, self.arguments, self.state, self.returns)
        definition.check()
        return UserAggregateCall(
            self.name, tuple(_argument(expression) for expression in expressions), parameters=(definition,)
        )

    def __repr__(self) -> str:
        return f"<aggregate {self.name}({', '.join(map(str, self.arguments))}) returning {self.returns}>"


def aggregate(
    declared: type | None = None,
    *,
    arguments: Sequence[Any],
    state: Mapping[str, Any],
    returns: Any,
    name: str | None = None,
    init: Callable[..., Any] | None = None,
    update: Callable[..., Any] | None = None,
    merge: Callable[..., Any] | None = None,
    finish: Callable[..., Any] | None = None,
) -> Any:
    """Declare an aggregate of your own, from a class or from four functions.

        @lj.aggregate(arguments=("float64",), state={"total": "float64"}, returns="float64")
        class plain_sum:
            def init(state):
                state.total = 0.0
            def update(state, value):
                state.total += value
            def merge(state, other):
                state.total += other.total
            def finish(state):
                return state.total

    *arguments* are the types update takes after the state, *state* the fields by
    name and type, *returns* the type of what finish returns; ``None`` is NULL.
    Bools, integers, floats, dates and times can be used; times are integers there.

    Fields are zero before init. merge adds *other* to *state*; it must not depend on
    which comes first, and a state fresh from init must add nothing. Rows with a NULL
    argument are left out.
    """
    given = {"init": init, "update": update, "merge": merge, "finish": finish}
    functions = {step: function for step, function in given.items() if function is not None}
    if declared is None and not functions:
        return functools.partial(aggregate, arguments=arguments, state=state, returns=returns, name=name)
    document = None
    if declared is not None:
        if not isinstance(declared, type):
            raise PlanError(
                f"lj.aggregate takes a class with {', '.join(STEPS)}, or these as named functions; "
                f"got {declared!r}"
            )
        name = name or declared.__name__
        document = declared.__doc__
        functions = {step: vars(declared)[step] for step in STEPS if step in vars(declared)} | functions
    name = name or getattr(functions.get("finish"), "__qualname__", "aggregate").partition(".")[0]
    kinds = _types(name, "argument", [(f"argument {n + 1}", kind) for n, kind in enumerate(arguments)])
    fields = _types(name, "state field", list(state.items()))
    if not fields:
        raise PlanError(f'aggregate {name!r} has no state; declare it, as in state={{"total": "float64"}}')
    for field, _ in fields:
        if not (isinstance(field, str) and field.isidentifier()):
            raise PlanError(f"aggregate {name!r}: state field {field!r} is no name that Python knows")
    result = _types(name, "result", [("returns", returns)])[0][1]
    steps = {step: _step(name, step, functions, len(kinds)) for step in STEPS}
    return UserAggregate(name, steps, tuple(kind for _, kind in kinds), tuple(fields), result, document)


def _types(name: str, what: str, declared: list[tuple[str, Any]]) -> list[tuple[str, DataType]]:
    """The declared types; refuses those that do not fit a word of the state or an argument."""
    found = []
    for label, given in declared:
        kind = DataType.parse(given)
        if not accepts(kind):
            shown = what if label == "returns" else f"{what} {label!r}" if what != "argument" else label
            advice = " Cast it to float64." if kind.is_decimal else ""
            raise UdfRefused(
                f"aggregate {name!r}: {shown} is {kind}, which compiled aggregates cannot hold. "
                f"Use a bool, an integer, a float, a date or a time.{advice}"
            )
        found.append((label, kind))
    return found


def _step(
    name: str, step: str, functions: Mapping[str, Callable[..., Any]], arguments: int
) -> Callable[..., Any]:
    function = functions.get(step)
    if isinstance(function, staticmethod):
        function = function.__func__
    function = getattr(function, "py_func", function)
    takes = {"init": 1, "update": 1 + arguments, "merge": 2, "finish": 1}[step]
    names = {"update": "state and its arguments", "merge": "state and other"}.get(step, "state")
    if not isinstance(function, types.FunctionType):
        raise PlanError(
            f"aggregate {name!r} has no function {step}; it needs {', '.join(STEPS)}"
            + (f", {function!r} given" if function is not None else "")
        )
    parameters = inspect.signature(function).parameters.values()
    plain = all(
        one.kind is one.POSITIONAL_OR_KEYWORD or one.kind is one.POSITIONAL_ONLY for one in parameters
    )
    if not plain or len(parameters) != takes:
        raise PlanError(
            f"aggregate {name!r}: {step}{inspect.signature(function)} must take {takes} parameter(s), "
            f"{names}, by position."
        )
    return function
