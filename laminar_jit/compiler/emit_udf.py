"""Calls of user functions, which the loader puts into the generated module as ``udf_0``, ``udf_1`` …"""

from __future__ import annotations

from .emission import Emission, emits, library
from .fragments import ZEROS, Value, local_kind
from .typed import Node
from .udf_purity import only_computes

library("optional", "present")


@emits("udf")
def udf(emission: Emission, node: Node) -> Value:
    """The function is called only for rows without a NULL argument, unless it takes NULLs."""
    function = node.value
    values = [emission.value(argument) for argument in node.arguments]
    kind = local_kind(node.type)
    types = tuple(argument.type for argument in node.arguments)
    may_return_null = function.may_return_null(types)
    takes_nulls = function.on_null == "call"
    valid = None if takes_nulls else emission.all_valid(values)
    passed = [_passed(argument, value) for argument, value in zip(node.arguments, values)]
    if takes_nulls:
        passed = [_pair(emission, *each) for each in zip(passed, node.arguments, values)]
    number = emission.udf_number(function)
    place = emission.next_call()
    if not only_computes(node):
        # For the error it may raise.
        emission.line(f"state[{emission.use('CURRENT_ROW')}] = row")
        emission.line(f"state[{emission.use('CURRENT_UDF')}] = {place}")
    call = f"udf_{number}({', '.join(passed)})"
    if valid is None and not may_return_null:
        return emission.converted(node, call)
    result, known = emission.name("v"), emission.name("ok")
    emission.line(f"{result} = {ZEROS[kind]}")
    emission.line(f"{known} = False")
    if valid is None:
        _call(emission, call, kind, result, known, may_return_null)
    else:
        with emission.block(f"if {valid}:"):
            _call(emission, call, kind, result, known, may_return_null)
    return Value(kind, result, known)


def _call(emission: Emission, call: str, kind: str, result: str, known: str, may_return_null: bool) -> None:
    scalar = kind  # a number, or bool
    if not may_return_null:
        emission.line(f"{result} = {scalar}({call})")
        emission.line(f"{known} = True")
        return
    returned = emission.assign(call, "r")
    with emission.block(f"if {returned} is not None:"):
        emission.line(f"{result} = {scalar}({emission.call('present', returned)})")
        emission.line(f"{known} = True")


def _passed(argument: Node, value: Value) -> str:
    """A value in the type the function was compiled for."""
    kind = argument.type.row_kind
    return (
        value.code if kind in ("bool", "int64", "uint64", "float32", "float64") else f"{kind}({value.code})"
    )


def _pair(emission: Emission, text: str, argument: Node, value: Value) -> str:
    """The pair (value, is_null); the value of a NULL is zero."""
    if value.valid is None:
        return f"({text}, False)"
    kind = argument.type.row_kind
    zero = "False" if kind == "bool" else f"{kind}(0)"
    return f"({emission.choose(value.valid, text, zero)}, not {value.valid})"
