"""Whether a user function is so simple that it may run for rows that are thrown away afterwards.

A function that raises, prints or loops must see only the rows that get so far.
One that does nothing but arithmetic can run for every row, which lets the
kernel select rows without a branch. What it does is read off its machine-
independent code, after optimisation.
"""

from __future__ import annotations

import re

import numba

from .typed import Node

#: More instructions than this are not worth computing for nothing.
_FEW_INSTRUCTIONS = 80

#: Calls that are an instruction or two.
_CHEAP_CALL = re.compile(r"@llvm\.(fabs|abs|copysign|floor|ceil|trunc|rint|fma|[su]?m(in|ax)(num|imum)?)\.")


def only_computes(node: Node) -> bool:
    """Whether the call *node* of a compiled user function is short, cannot fail and has no effect."""
    udf = node.value
    types = tuple(argument.type for argument in node.arguments)
    if numba.config.DISABLE_JIT or udf.mode == "arrow":
        return False
    udf.compiled_return_type(types)
    compiled = udf.dispatcher.overloads[udf.numba_arguments(types)]
    body = _body(compiled.library.get_llvm_str(), compiled.fndesc.llvm_func_name)
    return body is not None and _is_arithmetic(body)


def _body(module: str, name: str) -> str | None:
    """The text of one function of a module."""
    pattern = rf'^define [^\n]*@"?{re.escape(name)}"?\([^\n]*\n(.*?)^}}'
    found = re.search(pattern, module, re.DOTALL | re.MULTILINE)
    return None if found is None else found[1]


def _is_arithmetic(body: str) -> bool:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    calls = [line for line in lines if re.search(r"\bcall\b", line)]
    returns = [line for line in lines if line.startswith("ret ")]
    labels = [line.split(":")[0] for line in lines if re.match(r"[\w.$\"-]+:", line)]
    jumps = [line for line in lines if line.startswith(("br ", "switch ", "indirectbr "))]
    return (
        len(lines) <= _FEW_INSTRUCTIONS
        and all(_CHEAP_CALL.search(call) for call in calls)
        # Numba's functions return a status, zero for a value, and leave their exception in excinfo.
        and all(line == "ret i32 0" for line in returns)
        and "%excinfo" not in body
        and not _jumps_back(lines, labels, jumps)
    )


def _jumps_back(lines: list[str], labels: list[str], jumps: list[str]) -> bool:
    """Whether a jump leads to a label that stands before it, as every loop does."""
    place = {
        label: number for number, line in enumerate(lines) for label in labels if line.startswith(f"{label}:")
    }
    for jump in jumps:
        at = lines.index(jump)
        for target in re.findall(r'label %"?([\w.$-]+)"?', jump):
            if place.get(target, place.get(f'"{target}"', -1)) <= at:
                return True
    return False
