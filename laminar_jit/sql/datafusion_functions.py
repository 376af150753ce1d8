"""The scalar functions of the rings, as functions of DataFusion.

An expression that is bound for the rings is evaluated there by the reference
interpreter, over DataFusion's batches: it cannot mean anything else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..compiler.counters import Counters
from ..compiler.interpreter import Evaluator
from ..compiler.typed import Node, walk
from ..errors import ArithmeticRefused
from ..pipeline import Pipeline
from ..plan import Project, Source
from ..types import DataType
from ..user_functions import Udf

Compute = Callable[[pa.RecordBatch, Counters], pa.Array]


def _with_one_nan(array: pa.Array) -> pa.Array:
    """*array*, in which NaN has no sign: DataFusion groups, joins and sorts by it."""
    if not pa.types.is_floating(array.type):
        return array
    is_nan = pc.is_nan(array)
    return pc.if_else(is_nan, pa.scalar(float("nan"), array.type), array) if pc.any(is_nan).as_py() else array


def _interpreted(node: Node) -> Compute:
    return lambda batch, counters: Evaluator(batch, counters).array(node)


def _calls_compiled(node: Node) -> bool:
    """Whether a function of the user, compiled by Numba, stands in *node*."""
    return any(isinstance(part.value, Udf) and part.value.mode == "numba" for part in walk(node))


def _compiled(node: Node, schema: pa.Schema) -> Compute:
    """*node* through a kernel of its own: the interpreter would call the user's function row by row."""
    columns = tuple((field.name, DataType.from_arrow(field.type), True) for field in schema)
    pipeline = Pipeline(Project(Source("rows", columns, None, None), (("result", node),)))

    def compute(batch: pa.RecordBatch, counters: Counters) -> pa.Array:
        found = pa.Table.from_batches(
            pipeline.run({"rows": batch}), pa.schema([("result", node.type.to_arrow())])
        )
        for name in vars(counters):
            counters.add(name, pipeline.report.counters.get(name, 0))
        return found["result"].combine_chunks()

    return compute


class ScalarFunctions:
    """The functions of one query by name, equal ones once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Node, tuple[str, ...], tuple[pa.DataType, ...]], str] = {}
        self._functions: dict[str, Any] = {}
        self.shown: dict[str, str] = {}
        self._lock = threading.Lock()
        self._counters = Counters()
        self._problem: BaseException | None = None

    def name_of(self, node: Node, columns: Sequence[str], kinds: Sequence[pa.DataType]) -> tuple[str, bool]:
        """The function that gives *node* of arguments for *columns*, and whether it is a new one.

        Without columns it takes one argument, for the number of rows.
        """
        key = (node, tuple(columns), tuple(kinds))
        if key in self._known:
            return self._known[key], False
        import datafusion

        name = f"laminar_{len(self._known) + 1}"
        schema = pa.schema(list(zip(columns, kinds, strict=True)) or [("rows", pa.int64())])

        compute = _compiled(node, schema) if _calls_compiled(node) else _interpreted(node)

        def evaluate(*arrays: pa.Array) -> pa.Array:
            counters = Counters()
            try:
                found = compute(pa.record_batch(list(arrays), schema=schema), counters)
            except BaseException as problem:
                self._problem = problem
                raise
            if counters.any():
                with self._lock:
                    for counter, count in vars(counters).items():
                        self._counters.add(counter, count)
            return _with_one_nan(found)

        # The code of a user may give another answer each time; ours never does.
        steady = all(part.operation != "udf" for part in walk(node))
        self._functions[name] = datafusion.udf(
            evaluate, schema.types, node.type.to_arrow(), "immutable" if steady else "stable", name
        )
        self._known[key] = name
        self.shown[name] = repr(node)
        return name, True

    def function(self, name: str) -> Any:
        """What DataFusion registers."""
        return self._functions[name]

    def register_all(self, context: Any) -> None:
        """Make every function known to *context*, and forget what was counted."""
        self._problem, self._counters = None, Counters()
        for function in self._functions.values():
            context.register_udf(function)

    def counted(self) -> dict[str, int]:
        """What turned NULL in the last run, by reason."""
        return dict(vars(self._counters))

    def check(self, *, strict: bool) -> None:
        """Raise what a function raised, or in strict mode what was counted."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        failed = {name: count for name, count in self.counted().items() if count}
        if strict and failed:
            raise ArithmeticRefused(
                "strict mode: "
                + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in failed.items())
                + ". Filter such rows out, or run without strict=True to have NULL in their place."
            )
