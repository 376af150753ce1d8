"""Generated kernels as files: written once, named by content, imported by any process that has the spec."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from ...kernels.jit import cache_directory
from . import user_kernels


def place_kernel(name: str, source: str) -> dict[str, Any]:
    """Write generated *source* to the private cache directory; returns what ``load_kernel`` takes.

    The source travels with the spec, so that a host which never saw the plan can place it too.
    """
    _write(name, source)
    return {"name": name, "source": source}


def load_kernel(kernel: dict[str, Any]) -> ModuleType:
    """Import a generated kernel module, writing its file first where it is missing or differs."""
    module_name = f"laminar_jit.generated.{kernel['name']}"
    loaded = sys.modules.get(module_name)
    if loaded is not None:
        return loaded
    path = _write(kernel["name"], kernel["source"])
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if "user" in kernel:
        user_kernels.provide(module, kernel["user"])
    spec.loader.exec_module(module)
    if "user" in kernel:
        user_kernels.guard(module, kernel)
    sys.modules[module_name] = module
    return module


def _write(name: str, source: str) -> Path:
    path = cache_directory() / f"{name}.py"
    try:
        if path.read_text() == source:
            return path
    except FileNotFoundError:
        pass
    # Several processes may write the same file at once: each its own, then one rename.
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        file.write(source)
    os.replace(temporary, path)
    return path
