"""Stateful operators of Ring 1, built from plain specs."""

from __future__ import annotations

from typing import Any

from .base import Operator, Snapshot

__all__ = ["Operator", "Snapshot", "build"]


def build(spec: dict[str, Any], **options: Any) -> Operator:
    """The operator a spec describes."""
    from .pass_through import PassThrough
    from .session_aggregate import SessionAggregate
    from .updating import UpdatingAggregate
    from .updating_sessions import UpdatingSessions
    from .window_aggregate import WindowAggregate
    from .window_rows import WindowRows

    kinds: dict[str, Any] = {
        "pass_through": PassThrough,
        "session_aggregate": SessionAggregate,
        "updating_aggregate": UpdatingAggregate,
        "updating_sessions": UpdatingSessions,
        "window_aggregate": WindowAggregate,
        "window_rows": WindowRows,
    }
    operator: Operator = kinds[spec["operator"]](spec, **options)
    return operator
