"""Where in time the tasks of a scan have rows, from the statistics of their row groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..plan import Plan
from ..plan_ranking import WindowRank, WindowTop
from ..runtime.operators.finished_early import Spans, can_finish_early
from .scan import RowGroup
from .statistics import microseconds
from .two_phase import mergeable

#: Tasks that are looked at to see whether there is anything to finish early.
_LOOKED_AT = 32


@dataclass(frozen=True)
class Zones:
    """For each task its row groups in the order of reading: rows, earliest and latest time."""

    tasks: tuple[tuple[tuple[int, int, int], ...], ...]

    def others(self, task: int) -> Spans:
        """When the tasks beside *task* have rows."""
        rest = [one for number, own in enumerate(self.tasks) if number != task for one in own]
        times = np.array(rest, np.int64).reshape(-1, 3)
        return Spans(times[:, 1], times[:, 2])

    def to_come(self, task: int) -> list[tuple[int, int]]:
        """After how many rows of *task* which time is the earliest still to come, in ascending order."""
        found: list[tuple[int, int]] = []
        own = np.array(self.tasks[task], np.int64)
        earliest = np.minimum.accumulate(own[::-1, 1])[::-1]
        for rows, time in zip(np.cumsum(own[:, 0])[:-1].tolist(), earliest[1:].tolist(), strict=True):
            if not found or time > found[-1][1]:
                found.append((rows, time))
        return found

    def separate(self) -> bool:
        """Whether the input is cut by time, as far as a look at the middle of row groups tells."""
        for task in range(min(len(self.tasks), _LOOKED_AT)):
            own = np.array(self.tasks[task], np.int64)
            middle = own[:, 1] + (own[:, 2] - own[:, 1]) // 2
            if not self.others(task).touched(middle, middle).all():
                return True
        return False


def zones_of(plan: Plan, shares: Sequence[Sequence[RowGroup]], schema: pa.Schema) -> Zones | None:
    """Where the tasks that read *shares* have rows of *plan*; None where that is unknown or of no use."""
    physical = mergeable(plan)
    time = physical.program.spec.time
    if time is None or time.operation != "column" or not can_finish_early(dict(physical.operator)):
        return None
    if any(isinstance(node, WindowRank | WindowTop) for node in plan.walk()):
        return None
    name = str(time.value)
    kind = schema.field(name).type
    # Of nanoseconds, statistics are not told to the last digit.
    if not pa.types.is_timestamp(kind) or kind.unit == "ns":
        return None
    tasks = []
    for share in shares:
        own = []
        for group in share:
            if group.rows:
                bounds = [microseconds(bound) for bound in group.statistics.get(name, (None, None))]
                if bounds[0] is None or bounds[1] is None:
                    return None
                own.append((group.rows, bounds[0], bounds[1]))
        tasks.append(tuple(own or [(0, 0, 0)]))
    zones = Zones(tuple(tasks))
    return zones if tasks and zones.separate() else None
