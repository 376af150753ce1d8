"""Assembles the source of a Ring 0 kernel from what the emitters wrote."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from . import (  # noqa: F401 - they register emitters
    emit_arithmetic,
    emit_casts,
    emit_columns,
    emit_hash,
    emit_logic,
    emit_math,
    emit_strings,
    emit_time,
    emit_udf,
)
from .emission import INDENT, LIBRARY, Emission, LiteralPool, library
from .emit_logic import truth
from .emit_row import emit_row
from .fragments import Value
from .left_to_arrow import evaluated, left_reason
from .ring0_spec import Ring0Spec
from .typed import COUNTERS, Node, format_node
from .udf_purity import only_computes

library(
    "ring0",
    *(
        "MAX_TS",
        "DELAY",
        "FUTURE_LIMIT",
        "NEXT_ROW",
        "WRITTEN",
        "HEAP_POSITION",
        "STOP",
        "CURRENT_ROW",
        "CURRENT_UDF",
    ),
)
library(
    "ring0", *("FILTERED", "NULL_TIME", "FAR_FUTURE", "OVERFLOWS", "DIVISIONS_BY_ZERO", "BAD_CASTS", "BEHIND")
)
library("ring0", *("DONE", "ROWS_FULL", "HEAP_FULL", "SCRATCH_FULL"))

PARAMETERS = (
    "columns",
    "first",
    "last",
    "literals",
    "scratch",
    "scratch_bytes",
    "rows",
    "position",
    "room",
    "mask",
    "heap",
    "heap_position",
    "heap_room",
    "heap_mask",
    "state",
)

_LINE_LENGTH = 110

_NUMPY_SCALARS = (
    *("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

#: Stands for the name of the function until its hash is known.
NAME = "ring0_name"

#: Operations that cost too much to be computed for a row that is then thrown away.
_DEAR = frozenset(
    (
        "sqrt",
        "ln",
        "exp",
        "power",
        "modulo",
        "integer_divide",
        "extract",
        "date_trunc",
        "add_months",
        "round",
    )
)
#: More operations than this behind a predicate are not worth computing for every row.
_FEW_OPERATIONS = 24


@dataclass(frozen=True)
class KernelText:
    """The source of one function, with NAME for its name, and what it needs."""

    body: str
    imports: frozenset[str]


class KernelWriter:
    """Writes one kernel: *dense* is the variant for batches without a NULL."""

    def __init__(
        self,
        spec: Ring0Spec,
        columns: dict[str, int],
        left: dict[Node, int],
        pool: LiteralPool,
        *,
        dense: bool,
    ) -> None:
        self.spec = spec
        self.branch_free = branch_free(spec)
        # Without strings every row fits its slot, so rows are written in runs of slots that lie side by
        # side: no look at the room, and no wrapping around, within a run.
        self.in_runs = not handles_text(spec)
        self.emission = Emission(columns, left, pool, dense=dense, depth=3 if self.in_runs else 2)

    def write(self) -> KernelText:
        emission = self.emission
        self._time()
        selected = self._predicates()
        self._outputs()
        if self.in_runs:
            taken = self.spec.layout.row_bytes
            step = emission.choose(selected, str(taken), "0") if selected else str(taken)
            emission.line(f"slot += {step}")
        else:
            emission.line("written += 1")
        lines = [*self._head(), *emission.lines, *self._tail()]
        return KernelText("\n".join(lines) + "\n", frozenset(emission.imports))

    @property
    def _timed(self) -> bool:
        return self.spec.time is not None

    @property
    def _may_stop_within_row(self) -> bool:
        return self._has_heap or self.emission.uses_scratch

    @property
    def _has_heap(self) -> bool:
        return self.spec.layout.has_heap

    def evaluate(self, node: Node) -> Value:
        """The value of *node*; arguments first, so that deep trees need no deep recursion."""
        for inner in evaluated(node):
            self.emission.value(inner)
        return self.emission.value(node)

    def _time(self) -> None:
        spec, emission = self.spec, self.emission
        if spec.time is None:
            return
        emission.comment(f"event time: {format_node(spec.time)}")
        time = self.evaluate(spec.time)
        if time.valid is not None:
            with emission.block(f"if not {time.valid}:"):
                emission.line("null_time += 1")
                emission.line("continue")
        emission.line(f"ts = {time.code}")
        if spec.watermarked:
            emission.line("watermark = next_watermark")
            emission.line("behind += ts < watermark")
        with emission.block("if ts > future_limit:"):
            emission.line("far_future += 1")
        with emission.block("elif ts > max_ts:"):
            emission.line("max_ts = ts")
            if spec.watermarked:
                emission.line("next_watermark = max(max_ts, lowest) - delay")

    def _predicates(self) -> str | None:
        """The local that tells whether the row is taken, or None when it is by now."""
        emission = self.emission
        for predicate in dict.fromkeys(self.spec.predicates):
            emission.comment(f"filter: {format_node(predicate)}")
            value = self.evaluate(predicate)
            if self.branch_free:
                taken = truth(value)
                if emission.counted is not None:
                    taken = f"{emission.counted} & {taken}"
                emission.counted = emission.assign(taken, "selected")
            else:
                taken = truth(value)
                with emission.block(f"if not {taken if taken.isidentifier() else f'({taken})'}:"):
                    emission.line("continue")
        return emission.counted

    def _outputs(self) -> None:
        emission = self.emission
        values = []
        for number, (name, node) in enumerate(self.spec.outputs):
            key = " (key)" if number in self.spec.keys else ""
            emission.comment(f"field {number}{key}: {name} = {format_node(node)}")
            values.append(self.evaluate(node))
        emission.comment("row")
        if not self.in_runs:
            emission.line(f"slot = rows + ((position + written) & mask) * {self.spec.layout.row_bytes}")
        emit_row(emission, self.spec.layout, values, self.spec.keys, self._timed)

    def _counted(self) -> list[str]:
        """The locals that count something, beside rows."""
        names = [counter for counter in COUNTERS if counter in self.emission.counters]
        if self._timed:
            names += ["null_time", "far_future"]
        return names + (["behind"] if self.spec.watermarked else [])

    def _carried(self) -> list[str]:
        """The locals to be taken back when a row is not finished."""
        names = self._counted()
        if self._timed:
            names.append("max_ts")
        if self._has_heap:
            names.append("heap_position")
        return names + (["next_watermark"] if self.spec.watermarked else [])

    def _head(self) -> list[str]:
        emission, spec = self.emission, self.spec
        use = emission.use
        body = [*emission.preamble]
        if self._timed:
            body += [f"max_ts = state[{use('MAX_TS')}]", f"future_limit = state[{use('FUTURE_LIMIT')}]"]
        if spec.watermarked:
            body += [
                f"delay = state[{use('DELAY')}]",
                f"lowest = {use('INT64_MIN')} + delay",
                "next_watermark = max(max_ts, lowest) - delay",
            ]
        body += [f"{name} = 0" for name in self._counted()]
        if self._has_heap:
            body.append("heap_limit = heap_position + heap_room")
        body += ["written = 0", f"stop = {use('DONE')}", "next_row = last"]
        if self._may_stop_within_row:
            body += [f"{name}_before = {name}" for name in self._carried()]
        body += self._loop_of_runs() if self.in_runs else self._loop_of_rows()
        head = [f"def {NAME}(", *(f"{INDENT}{name}," for name in PARAMETERS), "):"]
        return head + [INDENT + line for line in body]

    def _full(self) -> list[str]:
        return [
            f"{INDENT}if written == room:",
            f"{INDENT * 2}stop = {self.emission.use('ROWS_FULL')}",
            f"{INDENT * 2}next_row = row",
            f"{INDENT * 2}break",
        ]

    def _loop_of_rows(self) -> list[str]:
        lines = ["for row in range(first, last):", *self._full()]
        if self._may_stop_within_row:
            lines += [f"{INDENT}{name}_before = {name}" for name in self._carried()]
        if self.emission.uses_scratch:
            lines.append(f"{INDENT}scratch_used = 0")
        return lines

    def _loop_of_runs(self) -> list[str]:
        return [
            "row = first",
            "while row < last:",
            *self._full(),
            f"{INDENT}# As many rows as have their slots side by side.",
            f"{INDENT}place = (position + written) & mask",
            f"{INDENT}count = min(last - row, min(room - written, mask + 1 - place))",
            f"{INDENT}run = rows + place * {self.spec.layout.row_bytes}",
            f"{INDENT}slot = run",
            f"{INDENT}for row in range(row, row + count):",
        ]

    def _tail(self) -> list[str]:
        emission, spec = self.emission, self.spec
        use = emission.use
        lines = []
        if self.in_runs:
            lines += [
                f"{INDENT}row += 1",
                f"{INDENT}written += (slot - run) // {spec.layout.row_bytes}",
            ]
        if self._may_stop_within_row and self._carried():
            codes = ["HEAP_FULL"] * self._has_heap + ["SCRATCH_FULL"] * emission.uses_scratch
            lines.append(f"if {' or '.join(f'stop == {use(code)}' for code in codes)}:")
            lines.append(f"{INDENT}# The row it stopped at is read again: nothing of it may count twice.")
            lines += [f"{INDENT}{name} = {name}_before" for name in self._carried()]
        if self._timed:
            lines.append(f"state[{use('MAX_TS')}] = max_ts")
        lines += [
            f"state[{use('NEXT_ROW')}] = next_row",
            f"state[{use('WRITTEN')}] = written",
            f"state[{use('HEAP_POSITION')}] = heap_position",
            f"state[{use('STOP')}] = stop",
        ]
        dropped = "next_row - first - written" + (" - null_time" if self._timed else "")
        lines.append(f"state[{use('FILTERED')}] += {dropped}")
        lines += [f"state[{use(name.upper())}] += {name}" for name in self._counted()]
        return [INDENT + line for line in lines]


def handles_text(spec: Ring0Spec) -> bool:
    """Whether the kernel meets a string anywhere, written to the row or not."""
    return any(node.type.is_text for node in evaluated(*spec.roots))


def branch_free(spec: Ring0Spec) -> bool:
    """Whether to write every row and keep only those selected, instead of branching on the predicate."""
    if not spec.predicates or handles_text(spec):
        return False
    nodes = list(evaluated(*spec.predicates, *(node for _, node in spec.outputs)))
    if any(node.operation in _DEAR for node in nodes):
        return False
    if not all(
        only_computes(node) for node in nodes if node.operation == "udf" and left_reason(node) is None
    ):
        return False
    return sum(bool(node.arguments) for node in nodes) <= _FEW_OPERATIONS


def _udf_calls(roots: tuple[Node, ...]) -> list[Node]:
    """The calls of user functions that are compiled into the kernel."""
    return [node for node in evaluated(*roots) if node.operation == "udf" and left_reason(node) is None]


def kernel_source(spec: Ring0Spec, columns: dict[str, int], left: dict[Node, int], pool: LiteralPool) -> str:
    """The source of a plan's kernels as one readable module, NAME standing for the name."""
    general = KernelWriter(spec, columns, left, pool, dense=False).write()
    dense = KernelWriter(spec, columns, left, pool, dense=True).write()
    texts = [general]
    if dense.body != general.body:
        texts.append(KernelText(dense.body.replace(f"def {NAME}(", f"def {NAME}_dense(", 1), dense.imports))
    by_module: dict[str, set[str]] = {"jit": {"kernel"}}
    for text in texts:
        for name in text.imports:
            by_module.setdefault(LIBRARY[name], set()).add(name)
    lines = [
        '"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""',
        "",
    ]
    lines += [*_numpy_lines("".join(text.body for text in texts)), ""]
    for module in sorted(by_module):
        lines += _import_lines(module, sorted(by_module[module]))
    # A user function that does more than compute may make strings or arrays.
    allocates = not all(only_computes(node) for node in _udf_calls(spec.roots))
    decorator = "@kernel(allocates=True)" if allocates else "@kernel"
    for text in texts:
        lines += ["", "", decorator, text.body.rstrip("\n")]
    return "\n".join(lines) + "\n"


def _numpy_lines(code: str) -> list[str]:
    """The imports of what *code* uses of numpy."""
    called = set(re.findall(r"\b([a-z]+[0-9]+)\(", code))
    scalars = [name for name in _NUMPY_SCALARS if name in called]
    lines = ["import numpy as np"] if "np." in code else []
    return lines + ([f"from numpy import {', '.join(scalars)}"] if scalars else [])


def _import_lines(module: str, names: list[str]) -> list[str]:
    line = f"from laminar_jit.kernels.{module} import {', '.join(names)}"
    if len(line) <= _LINE_LENGTH:
        return [line]
    wrapped = textwrap.wrap(
        ", ".join(names) + ",", _LINE_LENGTH, initial_indent=INDENT, subsequent_indent=INDENT
    )
    return [f"from laminar_jit.kernels.{module} import (", *wrapped, ")"]
