"""Atomic operations on 64-bit words of an int64 array.

Each name states its ordering. Plain array accesses may be moved or merged by
the optimiser and must never be used to talk to another process.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .lowering import WORD, lowered_by

_ALIGN = 8


def _is_words(words: Any, *, written: bool = False) -> bool:
    return (
        isinstance(words, types.Array)
        and words.dtype == types.int64
        and words.ndim == 1
        # The address is computed from the index alone, so a strided view would be read wrongly.
        and words.layout == "C"
        and (words.mutable or not written)
    )


def _are_integers(*given: Any) -> bool:
    # Mixed signed and unsigned arithmetic gives floats, which would be truncated without a word.
    return all(isinstance(one, types.Integer) for one in given)


def _word_pointer(context: Any, builder: Any, words_type: Any, words: Any, index: Any) -> Any:
    array = context.make_array(words_type)(context, builder, words)
    data = builder.bitcast(array.data, ir.PointerType(WORD))
    return builder.gep(data, [index])


def _load(ordering: str) -> Any:
    def typer(typing_context: Any, words: Any, index: Any) -> Any:
        if not _is_words(words) or not _are_integers(index):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _word_pointer(context, builder, signature.args[0], *args)
            return builder.load_atomic(pointer, ordering, _ALIGN)

        return types.int64(words, types.int64), generate

    return typer


def _store(ordering: str) -> Any:
    def typer(typing_context: Any, words: Any, index: Any, value: Any) -> Any:
        if not _is_words(words, written=True) or not _are_integers(index, value):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _word_pointer(context, builder, signature.args[0], args[0], args[1])
            builder.store_atomic(args[2], pointer, ordering, _ALIGN)
            return context.get_dummy_value()

        return types.void(words, types.int64, types.int64), generate

    return typer


def _read_modify_write(operation: str) -> Any:
    def typer(typing_context: Any, words: Any, index: Any, value: Any) -> Any:
        if not _is_words(words, written=True) or not _are_integers(index, value):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _word_pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw(operation, pointer, args[2], "seq_cst")

        return types.int64(words, types.int64, types.int64), generate

    return typer


def _compare_exchange(typing_context: Any, words: Any, index: Any, expected: Any, value: Any) -> Any:
    if not _is_words(words, written=True) or not _are_integers(index, expected, value):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _word_pointer(context, builder, signature.args[0], args[0], args[1])
        outcome = builder.cmpxchg(pointer, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 0)

    return types.int64(words, types.int64, types.int64, types.int64), generate


def _fence(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def _pause(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine() == "x86_64":
            # Inline assembly is refused by Numba; the intrinsic is the same instruction.
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause"
            )
            builder.call(hint, [])
        return context.get_dummy_value()

    return types.void(), generate


@lowered_by(_load("acquire"))
def load_acquire(words, index):
    """Read a word; nothing after this is read or written before it."""
    return words[index]


@lowered_by(_load("monotonic"))
def load_relaxed(words, index):
    """Read a word whole, with no order towards other words."""
    return words[index]


@lowered_by(_load("seq_cst"))
def load_ordered(words, index):
    """Read a word in the one total order of all sequentially consistent accesses."""
    return words[index]


@lowered_by(_store("release"))
def store_release(words, index, value):
    """Write a word; everything before this is seen by whoever acquires it."""
    words[index] = value


@lowered_by(_store("monotonic"))
def store_relaxed(words, index, value):
    """Write a word whole, with no order towards other words."""
    words[index] = value


@lowered_by(_read_modify_write("xchg"))
def exchange(words, index, value):
    """Replace a word, sequentially consistent; returns what stood there."""
    before = words[index]
    words[index] = value
    return before


@lowered_by(_read_modify_write("add"))
def fetch_add(words, index, value):
    """Add to a word, sequentially consistent and wrapping; returns what stood there."""
    before = words[index]
    words[index] = before + value
    return before


@lowered_by(_compare_exchange)
def compare_exchange(words, index, expected, value):
    """Replace a word if it holds *expected*; returns what stood there either way."""
    before = words[index]
    if before == expected:
        words[index] = value
    return before


@lowered_by(_fence)
def fence():
    """A full barrier."""


@lowered_by(_pause)
def pause():
    """Tell the core that this is a spin loop."""
