"""Prints, as JSON, what the ring kernels were compiled to; run by test_orderings.py.

A process that finds the kernels in its cache does not compile them. What it runs
is the object code of the cache entry, and what it links into other kernels is
the entry's bitcode: both are looked at as they were loaded.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter

import numpy as np
from numba.core.codegen import JITCodeLibrary

from laminar_jit.kernels import marks, spinning, spsc, transfer

ATOMIC = re.compile(
    r"\b(load atomic|store atomic|atomicrmw \w+|cmpxchg)\b.*?\b(monotonic|acquire|release|seq_cst)\b"
)

# xchg, lock xadd and lock cmpxchg of a 64-bit register with memory (the mod bits of the operand are not 11).
LOCKED = re.compile(rb"[\x48-\x4f]\x87[\x00-\xbf]|\xf0[\x48-\x4f]\x0f[\xb1\xc1][\x00-\xbf]", re.DOTALL)

loaded_objects: dict[str, bytes] = {}


def remember_objects() -> None:
    """Keep the object code that libraries are made of when they come from the cache."""
    original = JITCodeLibrary._set_compiled_object

    def remember(library: JITCodeLibrary, code: bytes) -> None:
        loaded_objects[library.name] = code
        original(library, code)

    JITCodeLibrary._set_compiled_object = remember


def functions(code: bytes) -> dict[str, bytes]:
    """The machine code of each function of a 64-bit ELF object."""
    (sections_at,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections_at + k * size) for k in range(count)]
    found = {}
    for _, kind, _, _, offset, length, link, *_ in headers:
        if kind != 2:  # the symbol table
            continue
        names = headers[link][4]
        for at in range(offset, offset + length, 24):
            name_at, info, _, section, value, symbol_size = struct.unpack_from("<IBBHQQ", code, at)
            if info & 15 == 2 and symbol_size:  # a function
                name = code[names + name_at : code.index(b"\0", names + name_at)].decode()
                start = headers[section][4] + value
                found[name] = code[start : start + symbol_size]
    return found


def call_all() -> dict[str, object]:
    index = np.zeros(spsc.INDEX_WORDS, np.int64)
    side = np.zeros(spsc.INDEX_WORDS, np.int64)
    memory = np.zeros(64, np.int64)
    calls = {
        spsc.claim: (index, 4, 1),
        spsc.stage: (index, 1),
        spsc.publish: (index,),
        spsc.publish_quietly: (index,),
        spsc.offer: (index,),
        spsc.peek: (index,),
        spsc.peek_staged: (index,),
        spsc.release: (index, 1),
        marks.push_mark: (index, side, int(memory.ctypes.data), 4, 1, 7, 0),
        marks.pop_mark: (index, side),
        spinning.data_ready: (index, side),
        spinning.free_now: (index, 4),
        spinning.take_word: (index, 0, 0, 0),
        transfer.release_rows: (index, side, int(memory.ctypes.data), 4, 8, -1, 0),
    }
    for kernel, arguments in calls.items():
        kernel(*arguments)
    return {kernel.__name__: kernel for kernel in calls}


def describe(kernel: object) -> dict[str, object]:
    # The first is the one called above; a kernel that passes it a literal makes another.
    compiled = next(iter(kernel.overloads.values()))
    library = compiled.library
    code = loaded_objects.get(library.name)
    # Fresh: the module that was compiled. Reloaded: the bitcode that came with the object code.
    text = str(library._final_module) if code is None else str(library._shared_module)
    body = re.search(rf"define [^\n]*{re.escape(compiled.fndesc.llvm_func_name)}.*?\n}}", text, re.DOTALL)
    assert body is not None, f"no body of {kernel.__name__} in the module"
    orderings = Counter(f"{operation} {order}" for operation, order in ATOMIC.findall(body[0]))
    locked = None
    if code is not None:
        locked = len(LOCKED.findall(functions(code)[compiled.fndesc.llvm_func_name]))
    return {
        "from_cache": sum(kernel.stats.cache_hits.values()),
        "orderings": dict(orderings),
        "locked_instructions": locked,
    }


if __name__ == "__main__":
    remember_objects()
    print(json.dumps({name: describe(kernel) for name, kernel in call_all().items()}))
