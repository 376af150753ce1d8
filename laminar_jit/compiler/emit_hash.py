"""Key hashes: of a row's keys, and of the ``hash`` function."""

from __future__ import annotations

from .emission import Emission, emits, library
from .fragments import Value
from .typed import Node

library("hashing", "hash_start", "hash_word", "hash_finish", "hash_string", "NULL_WORD")
library("strings", "string_head", "string_rest")
library("arithmetic", "float_key", "as_unsigned")


def emit_hash(emission: Emission, values: list[Value]) -> str:
    """The local that holds the hash of *values*, NULLs among them."""
    state = emission.assign(f"uint64({emission.call('hash_start')})", "h")
    for value in values:
        state = _mixed(emission, state, value)
    return emission.assign(f"uint64({emission.call('hash_finish', state)})", "h")


def _mixed(emission: Emission, state: str, value: Value) -> str:
    if value.kind not in ("string", "wide"):
        word = _word(emission, value)
        if value.valid is not None:
            word = emission.choose(value.valid, word, emission.use("NULL_WORD"))
        return emission.assign(f"uint64({emission.call('hash_word', state, word)})", "h")
    if value.valid is None:
        return emission.assign(_two_words(emission, state, value), "h")
    mixed = emission.name("h")
    with emission.block(f"if {value.valid}:"):
        emission.line(f"{mixed} = {_two_words(emission, state, value)}")
    with emission.block("else:"):
        null = emission.call("hash_word", state, emission.use("NULL_WORD"))
        emission.line(f"{mixed} = uint64({null})")
    return mixed


def _two_words(emission: Emission, state: str, value: Value) -> str:
    if value.kind == "wide":
        low = f"uint64({emission.call('hash_word', state, value.code)})"
        return f"uint64({emission.call('hash_word', low, emission.call('as_unsigned', value.second))})"
    head = f"uint64({emission.call('string_head', value.code, value.second)})"
    rest = f"uint64({emission.call('string_rest', value.code, value.second)})"
    return f"uint64({emission.call('hash_string', state, head, rest, value.code)})"


def _word(emission: Emission, value: Value) -> str:
    """A value as the 64-bit word it is hashed by."""
    if value.kind in ("float32", "float64"):
        return f"uint64({emission.call('float_key', f'float64({value.code})')})"
    if value.kind == "bool":
        return f"uint64({value.code})"
    return value.code if value.kind == "uint64" else emission.call("as_unsigned", value.code)


@emits("hash")
def hash_(emission: Emission, node: Node) -> Value:
    return Value("uint64", emit_hash(emission, [emission.value(argument) for argument in node.arguments]))
