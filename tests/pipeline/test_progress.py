"""The line that shows how far a run is: on a terminal only, gone at the end, and right."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_says_how_far_and_how_fast() -> None:
    assert progress.line(2_000_000, 4_000_000, 2.0, 1_767_268_800_000_000) == (
        "[############············]  50%  2.0 M events  1.0 M/s  watermark 2026-01-01 12:00:00  ETA 0:02"
    )
    assert progress.line(500, None, 2.0, None) == "500 events  250/s"


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_it_is_shown_on_a_terminal_only_and_cleared(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = kind()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setattr(progress, "_BETWEEN_DRAWINGS", 0)
    table = pa.table({"ts": pa.array([10**6 * at for at in range(5)], pa.timestamp("us"))})
    query = lj.source("s", table.schema, time="ts", delay="1s").group_by(window=lj.tumble("2s"))
    assert query.agg(n=lj.count()).run(s=table)["n"].to_pylist() == [2, 2, 1]
    if kind is Terminal:
        assert "100%  5 events" in shown.getvalue()
        assert shown.getvalue().endswith("\r\x1b[K")
    else:
        assert shown.getvalue() == ""
