"""Gives a plain Python function a second body in LLVM.

The Python body is the reference: it runs when a kernel is called without the
JIT (``NUMBA_DISABLE_JIT=1``, or ``some_kernel.py_func``). The LLVM body is what
compiled kernels inline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

WORD = ir.IntType(64)


def lowered_by(typer: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a reference function with the intrinsic *typer* that compiles it.

    *typer* follows Numba's intrinsic protocol: it takes the typing context and
    the argument types, and returns the signature and a code generator.
    """

    def attach(reference: Callable[..., Any]) -> Callable[..., Any]:
        template = make_intrinsic_template(
            reference, typer, reference.__name__, prefer_literal=False, kwargs={}
        )
        infer(template)
        infer_global(reference, types.Function(template))
        return reference

    return attach
