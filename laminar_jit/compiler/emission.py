"""The state of writing one kernel: lines, locals, constants, and what was emitted already."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .fragments import ZEROS, Value, comment_text, conjunction, local_kind
from .typed import Node

INDENT = "    "

#: One emitter an operation: writes the statements that compute a node, and says where the value is.
Emitter = Callable[["Emission", Node], Value]
EMITTERS: dict[str, Emitter] = {}

#: Stands for every operation that pyarrow computes.
LEFT = "left to pyarrow"

#: The kernel library, by the names generated code uses.
LIBRARY: dict[str, str] = {}


def library(module: str, *names: str) -> None:
    """Let generated code use *names* of a module of the kernel library."""
    for name in names:
        LIBRARY[name] = module


def emits(*operations: str) -> Callable[[Emitter], Emitter]:
    """Register the emitter of *operations*."""

    def register(emitter: Emitter) -> Emitter:
        for operation in operations:
            EMITTERS[operation] = emitter
        return emitter

    return register


library("selection", "choose")


class LiteralPool:
    """Constants that are not written into the source: bytes, found by their offset."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._offsets: dict[bytes, int] = {}

    def add(self, content: bytes) -> int:
        """The offset of *content*, which starts on a word."""
        if content not in self._offsets:
            self.data += b"\0" * (-len(self.data) % 8)
            self._offsets[content] = len(self.data)
            self.data += content
        return self._offsets[content]

    def add_words(self, words: list[int], format: str) -> int:
        """The offset of an array of numbers."""
        return self.add(struct.pack(f"<{len(words)}{format}", *words))


class Emission:
    """Writes the body of a kernel's row loop.

    *columns* numbers the columns of the input, *left* those pyarrow computes
    for the kernel; *dense* leaves out all that is about NULLs in them. Nodes
    are computed once: what was emitted is found again by their structure.
    """

    def __init__(
        self, columns: dict[str, int], left: dict[Node, int], pool: LiteralPool, *, dense: bool, depth: int
    ) -> None:
        self.columns = columns
        self.left = left
        self.pool = pool
        self.dense = dense
        self.lines: list[str] = []
        self.preamble: list[str] = []
        self.imports: set[str] = set()
        self.counters: set[str] = set()
        self.udfs: list[object] = []
        self.uses_scratch = False
        #: Only rows this holds for are counted; None while every row is.
        self.counted: str | None = None
        self._values: dict[Node, Value] = {}
        self._declared: set[str] = set()
        self._depth = depth
        self._calls = 0
        self._number = 0

    # Lines.

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self._depth + text)

    def comment(self, text: str) -> None:
        self.line(f"# {comment_text(text)}")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Statements under *header*, one step further in."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def before_loop(self, name: str, code: str) -> str:
        """A local that is set once, before the first row."""
        if name not in self._declared:
            self._declared.add(name)
            self.preamble.append(f"{name} = {code}")
        return name

    # Names.

    def name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def assign(self, code: str, prefix: str = "v") -> str:
        """A new local that holds *code*."""
        name = self.name(prefix)
        self.line(f"{name} = {code}")
        return name

    def call(self, function: str, *arguments: str) -> str:
        """A call of the kernel library."""
        self.imports.add(function)
        if function not in LIBRARY:
            raise KeyError(f"{function} is not a function generated code may call")
        return f"{function}({', '.join(arguments)})"

    def choose(self, condition: str, first: str, second: str) -> str:
        """One of two values, without a branch."""
        return self.call("choose", condition, first, second)

    def use(self, constant: str) -> str:
        """A constant of the kernel library."""
        self.imports.add(constant)
        return constant

    # Values.

    def value(self, node: Node) -> Value:
        """The value of *node*, computed here unless it was before."""
        if node not in self._values:
            operation = LEFT if node in self.left else node.operation
            self._values[node] = EMITTERS[operation](self, node)
        return self._values[node]

    def arguments(self, node: Node) -> tuple[list[Value], str | None]:
        """The arguments of *node*, and the condition that none of them is NULL."""
        values = [self.value(argument) for argument in node.arguments]
        return values, self.all_valid(values)

    def all_valid(self, values: list[Value]) -> str | None:
        """A local, or None when NULL is impossible."""
        condition = conjunction(*(value.valid for value in values))
        if condition is None or condition.isidentifier():
            return condition
        return self.assign(condition, "ok")

    def computed(self, node: Node, code: str, valid: str | None = None) -> Value:
        """A new value of *node*'s type.

        Called as plain Python, kernels return Python numbers. Those of int64
        and float64 are as good as numpy's; the others are told their type.
        """
        kind = local_kind(node.type)
        return Value(kind, self.assign(f"{kind}({code})" if kind in ("uint64", "float32") else code), valid)

    def converted(self, node: Node, code: str, valid: str | None = None) -> Value:
        """A value of another kind as one of *node*'s type."""
        return Value(local_kind(node.type), self.assign(f"{local_kind(node.type)}({code})"), valid)

    def or_zero(self, value: Value) -> str:
        """The value as it stands in a row: zero when it is NULL."""
        if value.valid is None:
            return value.code
        return self.choose(value.valid, value.code, ZEROS[value.kind])

    # User functions.

    def udf_number(self, function: object) -> int:
        """The number the source calls a user function by."""
        if function not in self.udfs:
            self.udfs.append(function)
        return self.udfs.index(function)

    def next_call(self) -> int:
        """The number of a place in which a user function is called."""
        self._calls += 1
        return self._calls - 1

    # Failures.

    def count(self, counter: str, failed: str, valid: str | None) -> None:
        """Count the rows in which *failed* holds although no argument is NULL."""
        self.counters.add(counter)
        self.line(f"{counter} += {conjunction(self.counted, valid, failed)}")

    def checked(self, node: Node, code: str, fits: str, valid: str | None, counter: str) -> Value:
        """A value that is NULL, and counted, unless *fits*, which is a local."""
        self.count(counter, f"(not {fits})", valid)
        value = self.computed(node, code)
        both = conjunction(valid, fits)
        return value.with_valid(fits if valid is None else self.assign(str(both), "ok"))
