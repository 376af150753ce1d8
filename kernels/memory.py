"""Typed loads and stores at raw addresses.

Arrow buffers, ring slots and group tables are all memory with a known layout.
Addressing them directly gives every kernel one signature, whatever the schema,
so nothing is compiled again when a batch arrives sliced, dictionary-encoded or
without NULLs. Whoever passes an address keeps its memory alive for the call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from .lowering import lowered_by


def _pointer(builder: Any, address: Any, pointee: Any) -> Any:
    return builder.inttoptr(address, ir.PointerType(pointee))


def _load(name: str, value_type: Any, scalar: Any, ctype: Any) -> Callable[[int], Any]:
    def typer(typing_context: Any, address: Any) -> Any:
        if not isinstance(address, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointee = context.get_data_type(value_type)
            loaded = builder.load(_pointer(builder, args[0], pointee), align=1)
            return context.data_model_manager[value_type].from_data(builder, loaded)

        return value_type(types.int64), generate

    def reference(address: int) -> Any:
        return scalar(ctype.from_address(int(address)).value)

    reference.__name__ = reference.__qualname__ = name
    return lowered_by(typer)(reference)


def _store(name: str, value_type: Any, ctype: Any) -> Callable[[int, Any], None]:
    def typer(typing_context: Any, address: Any, value: Any) -> Any:
        if not isinstance(address, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointee = context.get_data_type(value_type)
            stored = context.data_model_manager[value_type].as_data(builder, args[1])
            builder.store(stored, _pointer(builder, args[0], pointee), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, value_type), generate

    def reference(address: int, value: Any) -> None:
        ctype.from_address(int(address)).value = value.item() if hasattr(value, "item") else value

    reference.__name__ = reference.__qualname__ = name
    return lowered_by(typer)(reference)


load_bool = _load("load_bool", types.boolean, bool, ctypes.c_uint8)
load_int8 = _load("load_int8", types.int8, np.int8, ctypes.c_int8)
load_int16 = _load("load_int16", types.int16, np.int16, ctypes.c_int16)
load_int32 = _load("load_int32", types.int32, np.int32, ctypes.c_int32)
load_int64 = _load("load_int64", types.int64, np.int64, ctypes.c_int64)
load_uint8 = _load("load_uint8", types.uint8, np.uint8, ctypes.c_uint8)
load_uint16 = _load("load_uint16", types.uint16, np.uint16, ctypes.c_uint16)
load_uint32 = _load("load_uint32", types.uint32, np.uint32, ctypes.c_uint32)
load_uint64 = _load("load_uint64", types.uint64, np.uint64, ctypes.c_uint64)
load_float32 = _load("load_float32", types.float32, np.float32, ctypes.c_float)
load_float64 = _load("load_float64", types.float64, np.float64, ctypes.c_double)

store_bool = _store("store_bool", types.boolean, ctypes.c_uint8)
store_int8 = _store("store_int8", types.int8, ctypes.c_int8)
store_int16 = _store("store_int16", types.int16, ctypes.c_int16)
store_int32 = _store("store_int32", types.int32, ctypes.c_int32)
store_int64 = _store("store_int64", types.int64, ctypes.c_int64)
store_uint8 = _store("store_uint8", types.uint8, ctypes.c_uint8)
store_uint16 = _store("store_uint16", types.uint16, ctypes.c_uint16)
store_uint32 = _store("store_uint32", types.uint32, ctypes.c_uint32)
store_uint64 = _store("store_uint64", types.uint64, ctypes.c_uint64)
store_float32 = _store("store_float32", types.float32, ctypes.c_float)
store_float64 = _store("store_float64", types.float64, ctypes.c_double)


def _copy(typing_context: Any, target: Any, source: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8)
        copy = builder.module.declare_intrinsic(
            "llvm.memcpy", [ir.PointerType(byte), ir.PointerType(byte), ir.IntType(64)]
        )
        not_volatile = ir.Constant(ir.IntType(1), 0)
        builder.call(
            copy,
            [_pointer(builder, args[0], byte), _pointer(builder, args[1], byte), args[2], not_volatile],
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@lowered_by(_copy)
def copy_bytes(target, source, length):
    """Copy *length* bytes between two places that do not overlap."""
    ctypes.memmove(int(target), int(source), int(length))


def _prefetch(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, flag = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        ask = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        # To be read, into every cache, as data.
        builder.call(ask, [_pointer(builder, args[0], ir.IntType(8)), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@lowered_by(_prefetch)
def prefetch(address):
    """Ask for the cache line at an address, which need not be one of ours."""
