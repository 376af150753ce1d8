"""What ``make bench-compare`` times on two revisions: each feature once, warm and without its peers."""

from __future__ import annotations

import pyarrow as pa

import laminar_jit as lj

from . import data
from .bridge import ARRAY_ROWS, CAPACITY, LAYOUT, drain_all, rows_of
from .harness import chosen_size
from .windows import our_side

WINDOWS = {
    "hopping": lj.hop("10s", every="2s"),
    "cumulating": lj.cumulate("10s", step="2s"),
    "session": lj.session("500ms"),
}


class Windows:
    """Windows beyond the tumbling ones, 10 000 keys."""

    params = list(WINDOWS)
    param_names = ["window"]
    timeout = 600

    def setup(self, kind):
        self.side = our_side(WINDOWS[kind], data.keyed_events(chosen_size().events, 10_000))
        self.rows = len(self.side.run())

    def time_run(self, kind):
        _require(len(self.side.run()), self.rows)


class Bridge:
    """Arrays of rows through a bridge into this process, taken out again."""

    params = list(ARRAY_ROWS)
    param_names = ["rows of an array"]

    def setup(self, count):
        self.bridge = _TwoEnds(count)

    def teardown(self, count):
        self.bridge.close()

    def time_send_and_drain(self, count):
        _require(self.bridge.cross(), CAPACITY // 2)


class SmallQuery:
    """A query over a hundred rows: parser, planner and start, and hardly any data."""

    TEXT = "SELECT key, sum(value) AS total FROM events GROUP BY key, TUMBLE(ts, INTERVAL '10' SECOND)"

    def setup(self):
        self.events = data.keyed_events(1_000, 10).slice(0, 100).combine_chunks()
        self.rows = len(self._answer())

    def _answer(self) -> pa.Table:
        return lj.sql(self.TEXT, events=self.events)

    def time_sql(self):
        _require(len(self._answer()), self.rows)


class _TwoEnds:
    """A bridge whose two ends are in this process."""

    def __init__(self, count: int) -> None:
        from laminar_jit.runtime.bridge import PipelineBridge

        self._rows, self._sends = rows_of(count), CAPACITY // 2 // count
        self._bridge = PipelineBridge(LAYOUT, capacity=CAPACITY)
        self._consumer = self._bridge.consumer()

    def cross(self) -> int:
        """Rows that arrived."""
        for _ in range(self._sends):
            self._bridge.send_rows(self._rows)
        return drain_all(self._consumer)

    def close(self) -> None:
        self._consumer.close()
        self._bridge.close()


def _require(found: int, expected: int) -> None:
    if found != expected:
        raise AssertionError(f"{found} rows instead of {expected}: work was skipped")
