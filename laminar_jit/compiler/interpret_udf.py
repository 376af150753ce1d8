"""Calls of user functions by the interpreter.

Compiled functions are called row by row, with the code and the types the
kernel would use, only while that kernel compiles; Arrow functions get the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..constants import show
from ..errors import UdfFailed
from ..types import DataType
from ..user_functions import Udf
from .typed import Node
from .vectors import Array, Vector, both_valid, constant_vector, dtype_of, from_arrow, to_arrow

if TYPE_CHECKING:
    from .interpreter import Context


def _udf(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    udf = node.value
    assert isinstance(udf, Udf)
    spread = tuple(argument.spread(context.rows) for argument in arguments)
    if udf.mode == "arrow":
        return _on_arrays(context, udf, node.type, spread)
    return _row_by_row(context, udf, node.type, spread)


def _row_by_row(context: Context, udf: Udf, returns: DataType, arguments: tuple[Vector, ...]) -> Vector:
    values = np.zeros(context.rows, dtype_of(returns))
    valid = both_valid(*arguments)
    called = np.ones(context.rows, bool) if valid is None or udf.on_null == "call" else valid
    present = called.copy()
    columns = [_passed(udf, argument) for argument in arguments]
    for row in np.flatnonzero(called):
        try:
            result = udf.dispatcher(*(column[row] for column in columns))
        except Exception as problem:
            raise udf_failed(udf, int(row), arguments, problem) from problem
        if result is None:
            present[row] = False
        else:
            values[row] = result
    return Vector(returns, values, None if present.all() else present)


def _passed(udf: Udf, argument: Vector) -> Any:
    """The values as the function gets them: numpy scalars, or pairs with is_null."""
    if udf.on_null == "skip":
        return argument.values
    null = ~argument.mask()
    return list(zip(np.where(null, dtype_of(argument.type).type(0), argument.values), null))


def udf_failed(udf: Udf, row: int, arguments: tuple[Vector, ...], problem: Exception) -> UdfFailed:
    """The error that names the function, the row and its values."""
    shown = []
    for argument in arguments:
        value = None if not argument.mask()[row] else argument.values[row]
        value = value.item() if isinstance(value, np.generic) else value
        shown.append(repr(show(value, argument.type)))
    return UdfFailed(
        f"udf {udf.name!r} raised {type(problem).__name__}: {problem} (row {row} of the batch, called with "
        f"{', '.join(shown)}). Handle the case inside the function, or filter such rows before."
    )


def _on_arrays(context: Context, udf: Udf, returns: DataType, arguments: tuple[Vector, ...]) -> Vector:
    arrays = [to_arrow(argument, context.rows) for argument in arguments]
    try:
        result = udf.function(*arrays)
    except Exception as problem:
        raise UdfFailed(
            f"udf {udf.name!r} raised {type(problem).__name__}: {problem} "
            f"(on a batch of {context.rows} rows of {', '.join(str(array.type) for array in arrays)})"
        ) from problem
    if context.rows == 0 and len(arguments) == 0:
        return constant_vector(None, returns).spread(0)
    vector = _returned(context, udf, returns, result)
    if udf.on_null == "call":
        return vector
    valid = both_valid(*arguments)
    return vector if valid is None else _masked(vector, valid)


def _returned(context: Context, udf: Udf, returns: DataType, result: Any) -> Vector:
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, np.ndarray):
        result = pa.array(result)
    if not isinstance(result, pa.Array):
        raise UdfFailed(
            f"udf {udf.name!r} returned a {type(result).__name__}; in mode 'arrow' it must return "
            "an Arrow array with one value a row"
        )
    if len(result) != context.rows:
        raise UdfFailed(
            f"udf {udf.name!r} returned {len(result)} values for {context.rows} rows; return one value a row"
        )
    try:
        return from_arrow(result.cast(returns.to_arrow()), returns, udf.name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise UdfFailed(
            f"udf {udf.name!r} returned {result.type}, which does not become {returns}: {problem}"
        ) from problem


def _masked(vector: Vector, valid: Array) -> Vector:
    if vector.type.is_text:
        missing = pa.scalar(None, vector.type.to_arrow())
        return Vector(vector.type, pa.compute.if_else(pa.array(valid), vector.values, missing))
    return Vector(vector.type, vector.values, valid & vector.mask())


USER_FUNCTIONS = {"udf": _udf}
