"""Generated modules as files named by the hash of all that decides what they compile to.

Numba keys its own entries by the file a function stands in and by its name, and
hashes none of the constants the function reads. So the hash is in both: another
plan, schema, kernel library, Numba version, processor or user function is
another file and another function.

A file is written under a temporary name and renamed, so a reader sees all of it
or none, and any number of processes may write the same one. A file that does
not hold what it should is written again; a damaged Numba entry is compiled
again. The directory is private to the user (``kernels/jit.py``).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite.binding
import numba

from ..kernels.jit import cache_directory, kernel, library_fingerprint

_PACKAGE = "laminar_jit_generated"


@functools.cache
def machine_fingerprint() -> str:
    """Compiler and processor: machine code is good for one pair only."""
    name = llvmlite.binding.get_host_cpu_name()
    features = llvmlite.binding.get_host_cpu_features().flatten()
    return f"numba {numba.__version__} on {name} {features}"


def fingerprint(*parts: str) -> str:
    """A hash of *parts*, of the kernel library and of the machine."""
    digest = hashlib.sha256()
    for part in (library_fingerprint(), machine_fingerprint(), *parts):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()[:24]


def write_module(name: str, source: str) -> Path:
    """The path of the module *name* in the cache, written unless it stands there already."""
    path = cache_directory() / f"{name}.py"
    content = source.encode("ascii")
    try:
        if path.read_bytes() == content:
            return path
    except FileNotFoundError:
        pass
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def load_module(
    name: str, source: str, names: Mapping[str, Any] | None = None, *, cached: bool = True
) -> ModuleType:
    """Run generated *source* as the module *name*, with *names* known to it beforehand.

    It is a file on disk, so tracebacks and debuggers show it. With *cached*
    false its machine code is not kept: for functions whose content is unknown.
    A module that this process has run before, from the same file, is handed out again
    with all that was compiled of it; not one that is given *names*, which may differ.
    """
    if not cached:
        names = {**(names or {}), "kernel": functools.partial(kernel, cached=False)}
        source = source.replace("from laminar_jit.kernels.jit import kernel\n", "\n", 1)
    loader = _GeneratedLoader(f"{_PACKAGE}.{name}", str(write_module(name, source)), source)
    loaded = sys.modules.get(loader.name)
    if cached and not names and loaded is not None and _is_loaded_by(loaded, loader):
        # The same plan again: its machine code is in memory already.
        return loaded
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(names or {})
    loader.exec_module(module)
    # Numba looks the module of a function up by name when it unpickles machine code.
    sys.modules[loader.name] = module
    return module


def _is_loaded_by(module: ModuleType, loader: _GeneratedLoader) -> bool:
    """Whether *module* came from the same text in the same file."""
    before = getattr(module.__spec__, "loader", None)
    return isinstance(before, _GeneratedLoader) and (before.path, before.text) == (loader.path, loader.text)


class _GeneratedLoader(importlib.machinery.SourceFileLoader):
    """Runs the text that was compared with the file, and leaves no byte code beside it."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.text = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec")
