"""The one decorator behind every compiled function, and the cache it uses.

Numba's own on-disk cache looks only at the file a function stands in. A kernel
calls kernels of other files and reads constants of theirs, so a cache entry is
valid for one state of the *whole* kernel library only. Our entries therefore
live in a directory named after the hash of the library's sources, and a changed
library simply never sees the entries of another one.

Loading a cache entry executes it. The directory is private to the user: made
with mode 0700, and refused when somebody else owns it or may write to it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, config

from ..errors import CacheRefused

KERNEL_OPTIONS: dict[str, Any] = {
    "nogil": True,
    # Division by zero is decided by our own semantics, never by a trap.
    "error_model": "numpy",
}


@functools.cache
def library_fingerprint() -> str:
    """Hash of all that decides what a kernel of this library compiles to."""
    digest = hashlib.sha256(f"numba {numba.__version__} llvmlite {llvmlite.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    if config.BOUNDSCHECK:
        # Numba does not key its entries by this switch.
        digest.update(b"boundscheck")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Where compiled code is kept: ``LAMINAR_CACHE_DIR`` or the user's cache folder."""
    chosen = os.environ.get("LAMINAR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "laminar_jit"


def cache_directory() -> Path:
    """The private directory for this state of the kernel library, made if missing."""
    directory = cache_root() / library_fingerprint()
    for folder in (directory.parent, directory):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.geteuid():
            raise CacheRefused(
                f"cache directory {folder} belongs to user id {status.st_uid}, "
                f"but this process runs as {os.geteuid()}; loading it would run that user's code. "
                "Set LAMINAR_CACHE_DIR to a directory of your own."
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise CacheRefused(
                f"cache directory {folder} has mode {stat.S_IMODE(status.st_mode):04o} and can be "
                f"written by others; loading it would run their code. Run: chmod 700 {folder}"
            )
    return directory


class _PrivateLocator(caching._CacheLocator):
    """Places the entries of every kernel, written or generated, in our own directory."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._directory = str(cache_directory())

    def get_cache_path(self) -> str:
        return self._directory

    def get_source_stamp(self) -> str:
        # By content, not by time of change: eight processes may write the same generated file.
        return hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _PrivateLocator:
        return cls(py_func, py_file)


class _CompileResults(caching.CompileResultCacheImpl):
    _locator_classes = [_PrivateLocator]


class _KernelCache(caching.FunctionCache):
    """Numba's function cache in our directory; a damaged entry is compiled anew."""

    _impl_class = _CompileResults

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super()._load_overload(sig, target_context)
        except Exception:  # a torn pickle can raise nearly anything; the answer is the same
            self._cache_file.flush()
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        try:
            super()._save_overload(sig, data)
        except (EOFError, ValueError, AttributeError, ImportError, IndexError, KeyError):
            # The index on disk is damaged: start it afresh.
            self._cache_file.flush()
            super()._save_overload(sig, data)


class _LazyCache:
    """Delays looking at the disk until a kernel is first compiled or loaded."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._py_func = py_func

    @functools.cached_property
    def _cache(self) -> _KernelCache:
        return _KernelCache(self._py_func)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def kernel(
    function: Callable[..., Any] | None = None, *, cached: bool = True, allocates: bool = False
) -> Any:
    """Compile *function* for nopython use without the GIL, cached on disk.

    Kernels own no memory, so they are compiled without Numba's reference counts,
    which would cost more than the ring protocol does. Only a kernel that calls
    user functions says *allocates*, because those may make strings or arrays.
    With ``NUMBA_DISABLE_JIT=1`` the function itself is returned, so the logic
    runs, and can be stepped through, as plain Python.
    """
    if function is None:
        return functools.partial(kernel, cached=cached, allocates=allocates)
    dispatcher = numba.njit(**KERNEL_OPTIONS, _nrt=allocates)(function)
    if cached and not config.DISABLE_JIT:
        dispatcher._cache = _LazyCache(function)
    return dispatcher
