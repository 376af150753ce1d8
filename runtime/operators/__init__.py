"""Stateful operators of Ring 1, built from plain specs."""

from __future__ import annotations

from typing import Any

from .base import Operator, Snapshot

__all__ = ["Operator", "Snapshot", "build"]


def build(spec: dict[str, Any], **options: Any) -> Operator:
    """The operator a spec describes."""
    from .pass_through import PassThrough
    from .window_aggregate import WindowAggregate

    kinds = {"pass_through": PassThrough, "window_aggregate": WindowAggregate}
    return kinds[spec["operator"]](spec, **options)
