"""A plan's Ring 0 stage as a program: its source, its compiled form, and which of them runs.

A new program starts *interpreted*: batches are evaluated by pyarrow and written
by a library kernel. Its own kernel is compiled in a thread after the first
batch is out, and takes over between two batches. A program whose machine code
is in the cache starts *compiled*.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types

from ..kernels.ring0 import DELAY, FUTURE_LIMIT, MAX_TS, NO_FUTURE_LIMIT, NO_TIME, STATE_WORDS
from ..runtime.rows import RowLayout
from .code_cache import fingerprint, load_module
from .emission import LiteralPool
from .left_to_arrow import LeftExpression, evaluated, left_expressions, left_reason
from .ring0_run import Ring0Run
from .ring0_source import NAME, PARAMETERS, branch_free, kernel_source
from .ring0_spec import Ring0Spec

__all__ = ["Ring0Program", "Ring0Run", "Ring0Spec"]

#: What every Ring 0 kernel is compiled for, whatever the plan.
SIGNATURE = tuple(
    types.Array(types.int64, 2, "C")
    if name == "columns"
    else types.Array(types.int64, 1, "C")
    if name == "state"
    else types.int64
    for name in PARAMETERS
)


class Ring0Program:
    """The fused stage of one plan. Run it with ``Ring0Run``."""

    def __init__(self, spec: Ring0Spec) -> None:
        self.spec = spec
        self._pool = LiteralPool()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._general: Callable[..., None] | None = None
        self._dense: Callable[..., None] | None = None
        self._finished = threading.Event()
        self._looked_in_cache = False

    @property
    def layout(self) -> RowLayout:
        """The rows this program writes."""
        return self.spec.layout

    @functools.cached_property
    def arrow_expressions(self) -> tuple[LeftExpression, ...]:
        """What the kernel cannot express: computed per batch by pyarrow into columns behind the others."""
        return left_expressions(self.spec)

    @functools.cached_property
    def _text(self) -> str:
        columns = {field.name: number for number, field in enumerate(self.spec.fields)}
        left = {found.node: len(columns) + number for number, found in enumerate(self.arrow_expressions)}
        return kernel_source(self.spec, columns, left, self._pool)

    @functools.cached_property
    def udfs(self) -> tuple[Any, ...]:
        """The user functions compiled into the kernel, by the number the source calls them by."""
        calls = [node for node in evaluated(*self.spec.roots) if node.operation == "udf"]
        return tuple(dict.fromkeys(node.value for node in calls if left_reason(node) is None))

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides what this program computes and compiles to."""
        described = [f"{name}:{kind}:{nullable}" for name, (kind, nullable) in self.spec.schema.items()]
        functions = [str(udf.fingerprint) for udf in self.udfs]
        return fingerprint(self._text, bytes(self._pool.data).hex(), *described, *functions)

    @property
    def name(self) -> str:
        """The name of the generated function, and of its file."""
        return f"ring0_{self.fingerprint}"

    @functools.cached_property
    def source(self) -> str:
        """The generated source, as it stands in the cache."""
        return self._text.replace(NAME, self.name)

    @functools.cached_property
    def literals(self) -> np.ndarray[Any, Any]:
        """The plan's constants that do not stand in the source."""
        self._text  # noqa: B018 - fills the pool
        return np.frombuffer(bytes(self._pool.data) or b"\0", dtype=np.uint8)

    @functools.cached_property
    def _module(self) -> Any:
        names = {f"udf_{number}": udf.dispatcher for number, udf in enumerate(self.udfs)}
        # Without a fingerprint nobody can tell whether a stored function is still the user's.
        known = all(udf.fingerprint is not None for udf in self.udfs)
        return load_module(self.name, self.source, names, cached=known)

    def function(self, *, dense: bool = False) -> Any:
        """The kernel as Numba holds it; ``py_func`` of it is the plain Python function."""
        name = f"{self.name}_dense"
        return getattr(self._module, name if dense and hasattr(self._module, name) else self.name)

    def state_words(self, *, delay: int = 0, future_limit: int | None = None) -> np.ndarray[Any, Any]:
        """The words a run begins with: no event time seen, nothing counted."""
        state = np.zeros(STATE_WORDS, dtype=np.int64)
        state[MAX_TS] = NO_TIME
        state[DELAY] = delay
        state[FUTURE_LIMIT] = NO_FUTURE_LIMIT if future_limit is None else future_limit
        return state

    # Which form runs.

    @property
    def mode(self) -> str:
        """``compiled``, or ``interpreted`` while the kernel is not ready. Raises what compiling raised."""
        self._raise_error()
        return "compiled" if self._general is not None else "interpreted"

    def kernel(self, *, dense: bool) -> Callable[..., None]:
        """The kernel for batches without a NULL, or for any; compiled here if nobody did."""
        if dense and self._dense is not None:
            return self._dense
        if self._general is not None:
            return self._general
        function = self.function(dense=dense)
        if not numba.config.DISABLE_JIT:
            function.compile(SIGNATURE)
        return function

    def load_cached(self) -> bool:
        """Take the kernel from the cache if it is there. Looks once."""
        with self._lock:
            if not self._looked_in_cache:
                self._looked_in_cache = True
                if numba.config.DISABLE_JIT:
                    self._compile()
                else:
                    self._load()
        return self._general is not None

    def _load(self) -> None:
        found = []
        for dense in (False, True):
            dispatcher = self.function(dense=dense)
            if SIGNATURE not in dispatcher.overloads and not _load_overload(dispatcher):
                return
            found.append(dispatcher)
        self._general, self._dense = found
        self._finished.set()

    def compile_in_background(self) -> None:
        """Begin compiling in a thread, unless that is done or under way."""
        with self._lock:
            if self._finished.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(
                target=self._compile_quietly, name=f"compile {self.name}", daemon=True
            )
            self._thread.start()

    def _compile_quietly(self) -> None:
        try:
            self._compile()
        except BaseException as error:
            # Raised again by whoever uses the program next.
            self._error = error
            self._finished.set()

    def _compile(self) -> None:
        general = self.function()
        dense = self.function(dense=True)
        if not numba.config.DISABLE_JIT:
            general.compile(SIGNATURE)
            self._general = general
            dense.compile(SIGNATURE)
        self._general, self._dense = general, dense
        self._finished.set()

    def wait_compiled(self, timeout: float | None = None) -> bool:
        """Wait until every form of the kernel is compiled; compiles now if nobody does."""
        if not self.load_cached():
            self.compile_in_background()
        done = self._finished.wait(timeout)
        self._raise_error()
        return done

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def explain_lines(self) -> list[str]:
        """What runs where, for ``explain``."""
        layout = self.layout
        selection = "branch-free" if branch_free(self.spec) else "with a branch"
        lines = [
            f"ring 0: {self.mode}, kernel {self.name}",
            f"  reads {len(self.spec.fields)} columns, writes rows of {layout.row_bytes} bytes",
        ]
        if self.spec.predicates:
            lines.append(f"  selects {selection}")
        lines += [f"  compiled in: udf {udf.name}" for udf in self.udfs]
        lines += [
            f"  by pyarrow, per batch: {found.text}: {found.reason}" for found in self.arrow_expressions
        ]
        return lines


def _load_overload(dispatcher: Any) -> bool:
    """Load the kernel from Numba's cache; False when it is not there."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        if SIGNATURE in dispatcher.overloads:
            return True
        found = dispatcher._cache.load_overload(SIGNATURE, dispatcher.targetctx)
        if found is None:
            return False
        dispatcher.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        dispatcher.add_overload(found)
        return True
