"""The reference interpreter: typed trees over record batches, with numpy and pyarrow.compute.

Batches run through it while their kernel compiles, and what a kernel cannot
express is computed here; so it gives exactly what ``docs/semantics.md`` says,
counters included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ..errors import SchemaMismatch, UnknownColumn
from .counters import Counters
from .interpret_arithmetic import ARITHMETIC
from .interpret_casts import CAST
from .interpret_hash import HASH
from .interpret_logic import LOGIC
from .interpret_strings import STRINGS
from .interpret_time import TIME
from .interpret_udf import USER_FUNCTIONS
from .typed import Node, walk
from .vectors import Array, Vector, constant_vector, from_arrow, to_arrow

Implementation = Callable[["Context", Node, tuple[Vector, ...]], Vector]

#: Every operation with arguments; columns and literals are leaves.
IMPLEMENTATIONS: dict[str, Implementation] = {
    **ARITHMETIC,
    **CAST,
    **HASH,
    **LOGIC,
    **STRINGS,
    **TIME,
    **USER_FUNCTIONS,
}


class Context:
    """What an operation needs besides its arguments: the number of rows, and the counters."""

    def __init__(self, rows: int, counters: Counters) -> None:
        self.rows = rows
        self.counters = counters

    def fail(self, counter: str, failed: Array, valid: Array | None) -> Array | None:
        """Count where *failed* holds for values that are not NULL; the mask without them."""
        if valid is not None:
            failed = failed & valid
        count = int(np.count_nonzero(failed))
        if count == 0:
            return valid
        # A constant stands for every row.
        self.counters.add(counter, count * self.rows if len(failed) == 1 else count)
        return ~failed if valid is None else valid & ~failed


class Evaluator:
    """Evaluates nodes over one batch; a common subexpression is computed, and counted, once."""

    def __init__(
        self, batch: pa.RecordBatch, counters: Counters, memo: dict[Node, Vector] | None = None
    ) -> None:
        self.batch = batch
        self.counters = counters
        self.memo = {} if memo is None else memo
        self._context = Context(batch.num_rows, counters)

    def array(self, node: Node) -> pa.Array:
        """The values of *node*, one a row, in the Arrow type of its type."""
        if node.type.is_list:
            return self.batch.column(str(node.value))
        return to_arrow(self.vector(node), self.batch.num_rows)

    def holds(self, predicate: Node) -> Array:
        """The rows for which *predicate* is true, not false and not NULL."""
        vector = self.vector(predicate).spread(self.batch.num_rows)
        return vector.values if vector.valid is None else vector.values & vector.valid

    def keep(self, mask: Array) -> Evaluator:
        """An evaluator for the rows where *mask* holds, with what was computed so far."""
        rows = self.batch.num_rows
        memo = {node: found if len(found) != rows else found.take(mask) for node, found in self.memo.items()}
        return Evaluator(self.batch.filter(pa.array(mask)), self.counters, memo)

    def vector(self, node: Node) -> Vector:
        """The values of *node*, or the one value of a constant."""
        if node not in self.memo:
            with np.errstate(all="ignore"):
                for part in walk(node):
                    if part not in self.memo:
                        self.memo[part] = self._compute(part)
        return self.memo[node]

    def _compute(self, node: Node) -> Vector:
        if node.operation == "column":
            return self._column(node)
        if node.operation == "literal":
            return constant_vector(node.value, node.type)
        arguments = tuple(self.memo[argument] for argument in node.arguments)
        return IMPLEMENTATIONS[node.operation](self._context, node, arguments)

    def _column(self, node: Node) -> Vector:
        name = str(node.value)
        index = self.batch.schema.get_field_index(name)
        if index < 0:
            raise UnknownColumn(f"column {name!r} is not in the batch, which has {self.batch.schema.names}")
        vector = from_arrow(self.batch.column(index), node.type, name)
        if not node.nullable and vector.valid is not None:
            raise SchemaMismatch(
                f"column {name!r} is declared without NULL, but the batch holds "
                f"{int(np.count_nonzero(~vector.valid))} NULLs. Declare it nullable."
            )
        return vector


def evaluate(
    node: Node, batch: pa.RecordBatch, counters: Counters, memo: dict[Node, Vector] | None = None
) -> pa.Array:
    """The values of *node* over *batch*. Calls with the same *memo* share what they compute."""
    return Evaluator(batch, counters, memo).array(node)
