"""``python -m laminar_jit.cli``."""

from __future__ import annotations

from .main import laminar

laminar(prog_name="laminar")
