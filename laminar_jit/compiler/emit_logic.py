"""Comparison, three-valued logic, and choice."""

from __future__ import annotations

import math

from .emission import Emission, emits, library
from .emit_columns import constant_string
from .fragments import Value, constant_code
from .typed import Node

library("strings", "string_equal", "string_compare")
library("search", "find_int64", "find_uint64", "find_float64", "find_string_in")

_SYMBOLS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}

#: From this many constants on, IN searches a sorted table instead of comparing one by one.
SEARCH_FROM = 9


def _never_nan(value: Value) -> bool:
    return isinstance(value.constant, float) and not math.isnan(value.constant)


def _compare_floats(operation: str, left: Value, right: Value) -> str:
    """NaN equals NaN and is greater than every number."""
    a, b = left.code, right.code
    if operation in ("greater", "greater_equal"):
        mirrored = {"greater": "less", "greater_equal": "less_equal"}[operation]
        if _never_nan(right):
            return f"not ({a} {'<=' if operation == 'greater' else '<'} {b})"
        return _compare_floats(mirrored, right, left)
    if operation in ("equal", "not_equal"):
        same = f"({a} == {b})"
        if not _never_nan(left) and not _never_nan(right):
            same = f"({same} | (({a} != {a}) & ({b} != {b})))"
        return same if operation == "equal" else f"not {same}"
    if _never_nan(right):
        return f"{a} {_SYMBOLS[operation]} {b}"
    if operation == "less_equal":
        return f"({a} <= {b}) | ({b} != {b})"
    return f"(not ({b} <= {a})) & ({a} == {a})"


def compare(emission: Emission, operation: str, left: Value, right: Value) -> str:
    """The code of a comparison of two values that are not NULL."""
    symbol = _SYMBOLS[operation]
    if left.kind in ("float32", "float64"):
        return _compare_floats(operation, left, right)
    if left.kind == "string":
        sides = (left.code, left.second, right.code, right.second)
        if operation in ("equal", "not_equal"):
            same = emission.call("string_equal", *sides)
            return same if operation == "equal" else f"not {same}"
        return f"{emission.call('string_compare', *sides)} {symbol} 0"
    if left.kind == "wide":
        same = f"(({left.code} == {right.code}) & ({left.second} == {right.second}))"
        if operation in ("equal", "not_equal"):
            return same if operation == "equal" else f"not {same}"
        strict = symbol[0]
        return (
            f"({left.second} {strict} {right.second}) | "
            f"(({left.second} == {right.second}) & ({left.code} {symbol} {right.code}))"
        )
    return f"{left.code} {symbol} {right.code}"


@emits("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def comparison(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    return emission.computed(node, compare(emission, node.operation, left, right), valid)


@emits("is_null")
def is_null(emission: Emission, node: Node) -> Value:
    value = emission.value(node.arguments[0])
    return emission.computed(node, "False" if value.valid is None else f"not {value.valid}")


@emits("is_not_null")
def is_not_null(emission: Emission, node: Node) -> Value:
    value = emission.value(node.arguments[0])
    return emission.computed(node, "True" if value.valid is None else value.valid)


@emits("is_nan")
def is_nan(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    return emission.computed(node, f"{value.code} != {value.code}", valid)


@emits("is_in")
def is_in(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    choices = [choice for choice in node.value if choice is not None]
    if len(choices) >= SEARCH_FROM and value.kind not in ("bool", "wide", "float32"):
        found = _search(emission, value, choices)
    else:
        tests = [compare(emission, "equal", value, _constant(emission, value, choice)) for choice in choices]
        found = " | ".join(f"({test})" for test in tests) or "False"
    answer = emission.computed(node, found, valid)
    if None in node.value:
        # No match among values of which one is unknown is unknown.
        known = answer.code if valid is None else emission.assign(f"{valid} & {answer.code}", "ok")
        return answer.with_valid(known)
    return answer


def _constant(emission: Emission, value: Value, choice: object) -> Value:
    if value.kind == "string":
        return constant_string(emission, choice)  # type: ignore[arg-type]
    if value.kind == "wide":
        number = int(choice)  # type: ignore[call-overload]
        return Value("wide", f"uint64({number & (2**64 - 1)})", None, f"{number >> 64}", number)
    return Value(value.kind, constant_code(choice, value.kind), constant=choice)


def _search(emission: Emission, value: Value, choices: list) -> str:
    """A binary search in a sorted table of the literal pool."""
    count = str(len(choices))
    if value.kind == "string":
        encoded = sorted(item.encode() if isinstance(item, str) else item for item in choices)
        words = [word for item in encoded for word in (emission.pool.add(item), len(item))]
        table = emission.pool.add_words(words, "q")
        return emission.call(
            "find_string_in", value.code, value.second, "literals", f"literals + {table}", count
        )
    if value.kind == "float64":
        numbers = sorted(item for item in choices if not math.isnan(item))
        table = emission.pool.add_words(numbers, "d")
        found = emission.call("find_float64", value.code, f"literals + {table}", str(len(numbers)))
        return found if len(numbers) == len(choices) else f"{found} | ({value.code} != {value.code})"
    table = emission.pool.add_words(sorted(choices), "q" if value.kind == "int64" else "Q")
    return emission.call(f"find_{value.kind}", value.code, f"literals + {table}", count)


@emits("and", "or")
def and_or(emission: Emission, node: Node) -> Value:
    values = [emission.value(argument) for argument in node.arguments]
    symbol = "&" if node.operation == "and" else "|"
    code = f" {symbol} ".join(value.code for value in values)
    if all(value.valid is None for value in values):
        return emission.computed(node, code)
    # An operand decides alone when it is known and, for AND, false; for OR, true.
    decides = []
    for value in values:
        deciding = f"(not {value.code})" if node.operation == "and" else value.code
        decides.append(deciding if value.valid is None else f"({value.valid} & {deciding})")
    decided = emission.assign(" | ".join(decides))
    known = emission.all_valid(values)
    valid = emission.assign(f"{known} | {decided}", "ok")
    return emission.computed(node, f"not {decided}" if node.operation == "and" else decided, valid)


@emits("not")
def not_(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    return emission.computed(node, f"not {value.code}", valid)


def truth(value: Value) -> str:
    """The condition that a boolean is TRUE and not NULL."""
    return value.code if value.valid is None else f"{value.valid} & {value.code}"


def _chosen(emission: Emission, condition: str, first: Value, second: Value, valid: str | None) -> Value:
    """*first* where *condition*, a local, holds, else *second*."""
    prefix = "a" if first.kind == "string" else "v"
    code = emission.choose(condition, first.code, second.code)
    if first.kind in ("uint64", "float32"):
        code = f"{first.kind}({code})"
    code = emission.assign(code, prefix)
    both = first.second and emission.assign(emission.choose(condition, first.second, second.second), "n")
    return Value(first.kind, code, valid, both)


@emits("case")
def case(emission: Emission, node: Node) -> Value:
    values = [emission.value(argument) for argument in node.arguments]
    conditions, results = values[:-1:2], [*values[1:-1:2], values[-1]]
    chosen = results[-1]
    nullable = any(result.valid is not None for result in results)
    # From the last branch to the first, which decides.
    for condition, result in zip(reversed(conditions), reversed(results[:-1])):
        taken = emission.assign(truth(condition), "taken")
        valid = None
        if nullable:
            known = emission.choose(taken, result.valid or "True", chosen.valid or "True")
            valid = emission.assign(known, "ok")
        chosen = _chosen(emission, taken, result, chosen, valid)
    return chosen


@emits("coalesce")
def coalesce(emission: Emission, node: Node) -> Value:
    values = [emission.value(argument) for argument in node.arguments]
    # What follows a value that is never NULL is never reached.
    for number, value in enumerate(values):
        if value.valid is None:
            values = values[: number + 1]
            break
    chosen = values[-1]
    for value in reversed(values[:-1]):
        valid = None if chosen.valid is None else emission.assign(f"{value.valid} | {chosen.valid}", "ok")
        chosen = _chosen(emission, str(value.valid), value, chosen, valid)
    return chosen


@emits("greatest", "least")
def greatest_least(emission: Emission, node: Node) -> Value:
    values = [emission.value(argument) for argument in node.arguments]
    operation = "greater" if node.operation == "greatest" else "less"
    best = values[0]
    for value in values[1:]:
        better = f"({compare(emission, operation, value, best)})"
        valid = None
        if best.valid is not None:
            better = f"((not {best.valid}) | {better})"
            valid = None if value.valid is None else emission.assign(f"{best.valid} | {value.valid}", "ok")
        if value.valid is not None:
            better = f"{value.valid} & {better}"
        best = _chosen(emission, emission.assign(better, "taken"), value, best, valid)
    return best
