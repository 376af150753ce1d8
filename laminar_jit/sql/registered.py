"""Functions of users by the names they have in SQL.

``lj.register`` is for the whole process, ``Session.register`` for a session,
``lj.sql(…, udfs=[…])`` for one query; the nearest one counts. What a name means
is looked up when a query is planned: queries and streams planned before keep
what they found.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar

from ..errors import PlanError
from ..user_aggregates import UserAggregate
from ..user_functions import Udf

UserFunction = Udf | UserAggregate


class Functions:
    """User functions by name, regardless of case."""

    def __init__(self, given: Iterable[UserFunction] | Mapping[str, UserFunction] = ()) -> None:
        self._known: dict[str, UserFunction] = {}
        named = given.items() if isinstance(given, Mapping) else ((None, one) for one in given)
        for name, function in named:
            self.register(function, name)

    def register(
        self, function: UserFunction, name: str | None = None, *, replace: bool = False
    ) -> UserFunction:
        """Make *function* known under *name*, its own if none is given."""
        if not isinstance(function, UserFunction):
            raise PlanError(
                f"register was given {function!r}; expected what @lj.udf or @lj.aggregate made of a function."
            )
        called = function.name if name is None else name
        if not isinstance(called, str) or not re.fullmatch(r"[A-Za-z_]\w*", called):
            raise PlanError(f"{called!r} is no name for a function; give it one, as in register(f, 'fee').")
        if is_built_in(called):
            raise PlanError(f"{called} is a function of SQL already; give yours another name.")
        if called.lower() in self._known and not replace:
            raise PlanError(
                f"a function {called} is registered already; unregister it first, or say replace=True."
            )
        self._known[called.lower()] = function
        return function

    def unregister(self, name: str) -> None:
        """Forget the function called *name*."""
        if self._known.pop(str(name).lower(), None) is None:
            raise PlanError(
                f"no function {name!r} is registered; there are {', '.join(self._known) or 'none'}."
            )

    def get(self, name: str) -> UserFunction | None:
        """The function called *name*, in lower case."""
        return self._known.get(name)

    def contents(self) -> tuple[tuple[str, UserFunction], ...]:
        """All of them by name."""
        return tuple(self._known.items())


#: Of the whole process.
EVERYWHERE = Functions()

_in_use: ContextVar[tuple[Functions, ...]] = ContextVar("functions of users", default=(EVERYWHERE,))


@contextlib.contextmanager
def using(functions: Functions) -> Iterator[None]:
    """Plan with *functions* before all that are known already."""
    token = _in_use.set((functions, *_in_use.get()))
    try:
        yield
    finally:
        _in_use.reset(token)


def find(name: str) -> UserFunction | None:
    """What *name*, in lower case, means where a query is being planned."""
    for functions in _in_use.get():
        found = functions.get(name)
        if found is not None:
            return found
    return None


def known_udf(name: str) -> Udf | None:
    """The scalar function of a user that *name* is."""
    found = find(name)
    return found if isinstance(found, Udf) else None


def known_aggregate(name: str) -> UserAggregate | None:
    """The aggregate of a user that *name* is."""
    found = find(name)
    return found if isinstance(found, UserAggregate) else None


def in_use() -> tuple[tuple[str, UserFunction], ...]:
    """All functions that a query would find now."""
    return tuple(pair for functions in _in_use.get() for pair in functions.contents())


def is_built_in(name: str) -> bool:
    """Whether SQL has a function of that name itself."""
    from .aggregates import NAMES
    from .datafusion_aggregates import AGGREGATES, WINDOW_FUNCTIONS
    from .dialect import WINDOW_KINDS
    from .functions import FUNCTIONS
    from .windows import BOUNDS

    taken = {*FUNCTIONS, *NAMES, *AGGREGATES, *WINDOW_FUNCTIONS, "unnest"}
    return name.lower() in taken or name.upper() in (*BOUNDS, *WINDOW_KINDS)
