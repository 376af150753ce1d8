"""What a user aggregate computes, as it stood when a query was written.

The functions are taken by value, with the globals and closures they read: what
is hashed, checked, compiled here and compiled in a worker is the same thing,
whatever happens to the user's module afterwards.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numba
from numba.core import serialize
from numba.core import types as numba_types

from .errors import UdfRefused
from .fingerprints import function_fingerprint
from .kernels.state_views import state_dtype
from .runtime.operators.user_kernels import STEPS, load_steps
from .types import DataType
from .user_functions import _NUMBA_TYPES, _data_type, _reason, _widens


@dataclass(frozen=True)
class AggregateDefinition:
    """The four functions of an aggregate and their types, picklable and compared by content."""

    name: str
    arguments: tuple[DataType, ...]
    state: tuple[tuple[str, DataType], ...]
    returns: DataType
    #: Hash of all of the above and of what the functions compute.
    content: str
    #: Whether the hash would notice any change; if not, no machine code is kept on disk.
    traceable: bool
    #: The functions, pickled by value.
    functions: str = field(compare=False, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        steps: Mapping[str, Callable[..., Any]],
        arguments: tuple[DataType, ...],
        state: tuple[tuple[str, DataType], ...],
        returns: DataType,
    ) -> AggregateDefinition:
        """Take the functions as they are now."""
        try:
            packed = serialize.dumps({step: _by_value(steps[step]) for step in STEPS})
        except Exception as problem:  # a pickler meets any object, and any error
            raise UdfRefused(
                f"aggregate {name!r} refers to something that cannot be sent to a worker: {problem}. "
                "Take it out of the functions' globals and closures."
            ) from None
        prints = [function_fingerprint(steps[step]) for step in STEPS]
        traceable = None not in prints
        content = hashlib.sha256(repr((name, arguments, state, returns)).encode())
        content.update(repr(prints).encode() if traceable else packed)
        functions = base64.b64encode(packed).decode()
        return cls(name, arguments, state, returns, content.hexdigest()[:24], traceable, functions)

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Names of the state's fields and the kinds they are stored as."""
        return tuple((name, kind.row_kind) for name, kind in self.state)

    @functools.cached_property
    def words(self) -> int:
        """How many words the state takes in a group record."""
        return state_dtype(self.fields).itemsize // 8

    def check(self) -> None:
        """Refuse what Numba cannot compile for the declared types, or what returns another type."""
        if numba.config.DISABLE_JIT or self.content in _checked:
            return
        record = numba.from_dtype(state_dtype(self.fields))
        passed = tuple(_NUMBA_TYPES[kind.row_kind] for kind in self.arguments)
        signatures = {
            "init": (record,),
            "update": (record, *passed),
            "merge": (record, record),
            "finish": (record,),
        }
        for step in STEPS:
            returned = self._compile(step, signatures[step])
            if step == "finish":
                self._check_result(returned)
            elif not isinstance(returned, numba_types.NoneType):
                raise UdfRefused(
                    f"aggregate {self.name!r}: {step} returns {returned}; it must set fields of its state "
                    "and return nothing."
                )
        _checked.add(self.content)

    def _compile(self, step: str, signature: tuple[Any, ...]) -> Any:
        dispatcher = load_steps(self.functions)[step]
        try:
            dispatcher.compile(signature)
            return dispatcher.overloads[signature].signature.return_type
        except Exception as problem:  # Numba's analysis raises nearly anything
            given = ", ".join(f"{name} {kind}" for name, kind in self.state)
            taken = f" for ({', '.join(map(str, self.arguments))})" if step == "update" else ""
            raise UdfRefused(
                f"aggregate {self.name!r}: {step} cannot be compiled{taken} with the state ({given}):\n"
                f"{_reason(problem)}\nChange it to what Numba knows."
            ) from None

    def _check_result(self, returned: Any) -> None:
        plain = returned.type if isinstance(returned, numba_types.Optional) else returned
        own = _data_type(plain)
        if own is None or not _widens(own, DataType(self.returns.row_kind)):
            advice = f", or declare returns={str(own)!r}" if own is not None else ""
            raise UdfRefused(
                f"aggregate {self.name!r} is declared to return {self.returns}, but finish returns {plain}. "
                f"Convert the result inside finish{advice}."
            )


#: Content that has been compiled for its types in this process.
_checked: set[str] = set()


def _by_value(function: Callable[..., Any]) -> types.FunctionType:
    """A copy that no pickler takes for something to be imported."""
    assert isinstance(function, types.FunctionType)
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__ = "__main__"
    return copy
