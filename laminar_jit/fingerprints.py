"""Content hashes of Python functions.

Generated code that calls a user function may be kept on disk only if a change
of the function is noticed. The hash covers its bytecode, constants, defaults,
closure and the globals it names, and the functions among these in turn.
"""

from __future__ import annotations

import builtins
import decimal
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Unknowable(Exception):
    """Something of which no hash can tell whether it changed."""


def function_fingerprint(function: Callable[..., Any]) -> str | None:
    """Hash of what *function* computes, or None when it depends on something without a hash."""
    digest = hashlib.sha256(f"python {sys.version_info[:2]}".encode())
    try:
        for piece in _pieces(function, {}):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    except (Unknowable, RecursionError):
        return None
    return digest.hexdigest()


def _pieces(value: Any, seen: dict[int, int]) -> Iterator[bytes]:
    """The content of *value*, tagged by kind, so that different values never read alike."""
    value = getattr(value, "py_func", value)  # a function somebody compiled already
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, decimal.Decimal)):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise Unknowable
        yield f"numpy {array.dtype.descr} {array.shape}".encode()
        yield array.tobytes()
    elif isinstance(value, (tuple, list, frozenset)):
        yield f"{type(value).__name__} {len(value)}".encode()
        items = sorted(value, key=repr) if isinstance(value, frozenset) else value
        for item in items:
            yield from _pieces(item, seen)
    elif isinstance(value, types.CodeType):
        yield from _code(value, seen)
    elif isinstance(value, types.FunctionType):
        yield from _function(value, seen)
    elif isinstance(value, types.ModuleType):
        yield f"module {value.__name__} {getattr(value, '__version__', '')}".encode()
    elif isinstance(value, (types.BuiltinFunctionType, np.ufunc, type)) or _is_library(value):
        yield f"named {_name(value)}".encode()
    else:
        raise Unknowable


def _code(code: types.CodeType, seen: dict[int, int]) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags)).encode()
    yield getattr(code, "co_exceptiontable", b"")
    for constant in code.co_consts:
        yield from _pieces(constant, seen)


def _function(function: types.FunctionType, seen: dict[int, int]) -> Iterator[bytes]:
    if id(function) in seen:
        # A function that calls itself, directly or not.
        yield f"again {seen[id(function)]}".encode()
        return
    seen[id(function)] = len(seen)
    yield b"function"
    yield from _code(function.__code__, seen)
    yield from _pieces(function.__defaults__, seen)
    yield from _pieces(tuple(sorted((function.__kwdefaults__ or {}).items())), seen)
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not yet set
            raise Unknowable from None
        yield from _pieces(content, seen)
    names = tuple(sorted(_names(function.__code__)))
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
        elif hasattr(builtins, name):
            value = getattr(builtins, name)
        else:
            continue
        yield name.encode()
        yield from _pieces(value, seen)
        if isinstance(value, types.ModuleType):
            yield from _attributes(value, names, seen)


def _names(code: types.CodeType) -> set[str]:
    """Names *code* and the functions inside it look up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _attributes(module: types.ModuleType, names: tuple[str, ...], seen: dict[int, int]) -> Iterator[bytes]:
    """What the function may take from a module of the user's own."""
    if _is_library(module) or id(module) in seen:
        return
    seen[id(module)] = len(seen)
    for name in names:
        if hasattr(module, name):
            value = getattr(module, name)
            yield name.encode()
            yield from _pieces(value, seen)
            if isinstance(value, types.ModuleType):
                yield from _attributes(value, names, seen)


def _is_library(value: Any) -> bool:
    """Whether *value* belongs to Python, numpy or Numba, whose versions are keys of the cache already."""
    module = (
        value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    )
    top = str(module).partition(".")[0]
    return top in ("numpy", "numba") or top in sys.stdlib_module_names


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is None:
        raise Unknowable
    if isinstance(value, type) and not _is_library(value):
        raise Unknowable
    return f"{getattr(value, '__module__', '')}.{name}"
