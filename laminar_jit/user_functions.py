"""User functions: plain Python compiled into the kernel, or run per batch on Arrow arrays."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba.core import types as numba_types

from .errors import PlanError, TypeMismatch, UdfRefused
from .expressions import Expr, lift
from .fingerprints import function_fingerprint
from .kernels.jit import kernel
from .types import DataType

MODES = ("numba", "arrow")
ON_NULL = ("skip", "call")

#: How values reach a compiled function, by the kind they have in a row.
_NUMBA_TYPES: dict[str, Any] = {
    "bool": numba_types.boolean,
    **{
        name: getattr(numba_types, name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    "float32": numba_types.float32,
    "float64": numba_types.float64,
}


class Udf:
    """A user function that can stand in expressions: call it with expressions."""

    def __init__(
        self,
        function: Callable[..., Any],
        returns: DataType | None,
        mode: str,
        on_null: str,
        argument_types: tuple[DataType | None, ...] | None,
    ) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.returns = returns
        self.mode = mode
        self.on_null = on_null
        self.argument_types = argument_types
        self._return_types: dict[tuple[DataType, ...], Any] = {}
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Expr:
        """The expression that calls this function on every row; defaults become constants."""
        try:
            call = inspect.signature(self.function).bind(*arguments, **named)
        except TypeError as problem:
            raise TypeMismatch(
                f"udf {self.name!r}: {problem}; it takes {_parameters(self.function)}"
            ) from None
        call.apply_defaults()
        if call.kwargs:
            raise TypeMismatch(
                f"udf {self.name!r} has parameters that can only be named ({', '.join(call.kwargs)}); "
                "compiled code calls by position. Take the * out of its definition."
            )
        if not call.args:
            raise TypeMismatch(f"udf {self.name!r} is called without arguments; give it at least one column")
        return Expr("udf", tuple(lift(argument) for argument in call.args), self)

    def __repr__(self) -> str:
        return f"<udf {self.name}>"

    @functools.cached_property
    def fingerprint(self) -> str | None:
        """Hash of all that decides what the function computes; None when that cannot be told."""
        return function_fingerprint(self.function)

    @property
    def _identity(self) -> tuple[Any, ...]:
        content = self.fingerprint or id(self.function)
        return (content, self.name, self.mode, self.on_null, self.returns, self.argument_types)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Udf) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code stays behind; the fingerprint is taken anew from the function that arrives.
        left_behind = ("dispatcher", "fingerprint", "_return_types", "__wrapped__")
        return {name: value for name, value in self.__dict__.items() if name not in left_behind}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._return_types = {}

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The compiled function (``mode="numba"``), as generated kernels call it."""
        return kernel(self.function, cached=False)

    def may_return_null(self, argument_types: tuple[DataType, ...]) -> bool:
        """Whether a call on non-NULL arguments can give NULL."""
        if self.mode == "arrow":
            return True
        found = self.compiled_return_type(argument_types)
        return found is None or isinstance(found, numba_types.Optional)

    def return_type(self, argument_types: tuple[DataType, ...]) -> DataType:
        """The type of a call; refuses a function that does not return what it declares."""
        if self.mode == "arrow" or numba.config.DISABLE_JIT:
            assert self.returns is not None
            return self.returns
        found = self.compiled_return_type(argument_types)
        plain = found.type if isinstance(found, numba_types.Optional) else found
        own = _data_type(plain)
        if self.returns is None:
            if own is None:
                raise UdfRefused(
                    f"udf {self.name!r} returns {plain}, which is no column type. "
                    "Return a bool, an integer or a float, or declare returns=…"
                )
            return own
        if own is None or not _widens(own, DataType(self.returns.row_kind)):
            given = ", ".join(map(str, argument_types))
            raise UdfRefused(
                f"udf {self.name!r} is declared to return {self.returns}, "
                f"but for ({given}) it returns {plain}. "
                f"Convert the result inside the function, or declare returns={str(own or 'float64')!r}."
            )
        return self.returns

    def compiled_return_type(self, argument_types: tuple[DataType, ...]) -> Any:
        """Numba's type of a call, compiling it if need be; None where the JIT is switched off."""
        if numba.config.DISABLE_JIT:
            return None
        if argument_types not in self._return_types:
            self._return_types[argument_types] = self._compile(argument_types)
        return self._return_types[argument_types]

    def numba_arguments(self, argument_types: tuple[DataType, ...]) -> tuple[Any, ...]:
        """Numba's types of the arguments; pairs (value, is_null) when NULLs are passed."""
        plain = [_NUMBA_TYPES[kind.row_kind] for kind in argument_types]
        if self.on_null == "call":
            return tuple(numba_types.Tuple((kind, numba_types.boolean)) for kind in plain)
        return tuple(plain)

    def _compile(self, argument_types: tuple[DataType, ...]) -> Any:
        signature = self.numba_arguments(argument_types)
        try:
            self.dispatcher.compile(signature)
            return self.dispatcher.overloads[signature].signature.return_type
        except Exception as problem:  # Numba's analysis raises nearly anything
            given = ", ".join(map(str, argument_types))
            raise UdfRefused(
                f"udf {self.name!r} cannot be compiled for ({given}):\n{_reason(problem)}\n"
                'Change it to what Numba knows, or run it per batch on Arrow arrays with @udf(mode="arrow").'
            ) from None


def udf(
    function: Callable[..., Any] | None = None,
    *,
    returns: Any = None,
    mode: str = "numba",
    on_null: str = "skip",
) -> Any:
    """Declare a user function: ``@udf(returns="float64")``.

    mode ``numba`` compiles it into the kernel and calls it for every row;
    ``arrow`` calls it once a batch with Arrow arrays, and needs *returns*.
    on_null ``skip``: NULL in, NULL out; ``call``: each argument is a pair
    ``(value, is_null)`` (``arrow``: the arrays as they are).
    """
    if function is None:
        return functools.partial(udf, returns=returns, mode=mode, on_null=on_null)
    if mode not in MODES:
        raise PlanError(f"udf mode is {mode!r}; expected one of {', '.join(MODES)}")
    if on_null not in ON_NULL:
        raise PlanError(f"udf on_null is {on_null!r}; expected one of {', '.join(ON_NULL)}")
    if not callable(function):
        raise PlanError(f"udf takes a function, got {function!r}; write @udf(returns=…) above a def")
    function = getattr(function, "py_func", function)
    assert function is not None
    declared = None if returns is None else DataType.parse(returns)
    if declared is None and (mode == "arrow" or numba.config.DISABLE_JIT):
        raise PlanError(
            f"udf {getattr(function, '__name__', function)!r} needs the type of its result, "
            'as in @udf(returns="float64")'
        )
    argument_types = _annotated(function) if mode == "numba" else None
    if mode == "numba" and declared is not None and declared.row_kind not in _NUMBA_TYPES:
        raise UdfRefused(
            f"a compiled udf cannot return {declared}; return a number, bool or time, "
            'or use @udf(mode="arrow", returns=…)'
        )
    return Udf(function, declared, mode, on_null, argument_types)


def _parameters(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function)).partition(" -> ")[0]


def accepts(kind: DataType) -> bool:
    """Whether a compiled function can take values of this type."""
    return kind.row_kind in _NUMBA_TYPES and not kind.is_decimal


def _annotated(function: Callable[..., Any]) -> tuple[DataType | None, ...] | None:
    """Types of the arguments as annotated, None where they are to be inferred."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # names that do not resolve
        hints = dict(getattr(function, "__annotations__", {}))
    names = code.co_varnames[: code.co_argcount]
    return tuple(_annotation(function, name, hints.get(name)) for name in names)


def _annotation(function: Callable[..., Any], name: str, hint: Any) -> DataType | None:
    if hint is None or hint is Any:
        return None
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return DataType.from_arrow(pa.from_numpy_dtype(hint))
    if typing.get_origin(hint) is tuple:
        # A pair (value, is_null) of a function that takes NULLs.
        return _annotation(function, name, typing.get_args(hint)[0])
    try:
        return DataType.parse(hint)
    except TypeMismatch as problem:
        raise TypeMismatch(
            f"udf {function.__name__!r}: the annotation of argument {name!r} is no type: {problem}"
        ) from None


def _data_type(numba_type: Any) -> DataType | None:
    plain = numba.types.unliteral(numba_type)
    for name, known in _NUMBA_TYPES.items():
        if plain == known:
            return DataType(name)
    return None


def _widens(source: DataType, target: DataType) -> bool:
    """Whether every value of *source* has its place in *target*."""
    if source == target:
        return True
    if source.is_integer and target.is_integer:
        return target.minimum <= source.minimum and source.maximum <= target.maximum
    return (source.is_integer or source.is_float) and target == DataType("float64")


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
    r"^(Failed in nopython mode|During:|File \"|<source elided>|def |\s*\^|This error|To see"
    r"|There are \d+ cand|- Of which|Overload|With argument|>>>|Rejected|\* |Enable"
    r"|Unsupported functionality|Invalid use of|No implementation of function|The error|Please report"
    r"|https?://|raised from)",
)


def _reason(problem: Exception) -> str:
    """Numba's reason in two lines."""
    lines = [line.strip() for line in _COLOUR.sub("", str(problem)).splitlines()]
    lines = [line for line in lines if line]
    telling = [line for line in lines if not _NOISE.match(line)] or lines or [type(problem).__name__]
    location = next((line.rstrip(":") for line in lines if line.startswith('File "')), "")
    chosen = [telling[0], location or (telling[1] if len(telling) > 1 else "")]
    return "\n".join(f"  {line}" for line in chosen if line)
