"""Running a plan of several stages, in the calling process.

A stage gives steps: results, and the watermark that holds behind them. One
above takes the results as its rows and the watermark as its time, so nothing
depends on where batches end. Of several inputs the one that is furthest behind
is read next, which keeps few rows waiting.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from .after_stages import AfterChain
from .compiler.ring0 import Ring0Run
from .driver import Driver
from .errors import PlanError
from .inputs import is_read_once, open_input
from .physical import Combined, Feed, PhysicalPlan
from .plan import Source, WindowAggregate
from .runtime.inline import InlineRing1
from .runtime.operators.window_aggregate import ALWAYS, NEVER
from .side_outputs import SideOutputs
from .window_join import LEFT, RIGHT, JoinState


class Step(NamedTuple):
    """Results, and the watermark behind them: no row to come belongs to a window that ends by then."""

    batches: list[pa.RecordBatch]
    watermark: int


Steps = Generator[Step, None, None]


class StageRun:
    """One run of the stages of *root* over *inputs*; counts rows by what happened to them."""

    def __init__(
        self, root: Feed, inputs: Mapping[str, Any], side_outputs: SideOutputs, *, strict: bool
    ) -> None:
        self._root = root
        self._inputs = inputs
        self._side_outputs = side_outputs
        self._strict = strict
        self.rows_in = 0
        self.counters: collections.Counter[str] = collections.Counter()
        stages = list(walk(root))
        self._require_readable_twice(stages)
        often = collections.Counter(stage.aggregate for stage in stages if isinstance(stage, PhysicalPlan))
        self._often = {node: times for node, times in often.items() if node is not None and times > 1}
        self._shared: dict[WindowAggregate, _Shared] = {}

    def results(self) -> Iterator[pa.RecordBatch]:
        """What the query gives, as it comes."""
        try:
            with contextlib.closing(self._steps(self._root)) as steps:
                for step in steps:
                    yield from step.batches
        finally:
            for shared in self._shared.values():
                shared.close()

    def _require_readable_twice(self, stages: list[Feed]) -> None:
        seen: set[WindowAggregate] = set()
        read: collections.Counter[str] = collections.Counter()
        for stage in stages:
            if not isinstance(stage, PhysicalPlan) or stage.feed is not None:
                continue
            if stage.aggregate is None or stage.aggregate not in seen:
                read[stage.source.name] += 1
            if stage.aggregate is not None:
                seen.add(stage.aggregate)
        for name, times in read.items():
            given = self._inputs[name]
            if times > 1 and is_read_once(given):
                raise PlanError(
                    f"the query reads source {name!r} {times} times, but its input is a "
                    f"{type(given).__name__}, which can be read once. "
                    "Pass a table, a list of batches or a path."
                )

    def _steps(self, stage: Feed) -> Steps:
        if isinstance(stage, Combined):
            joined = self._union(stage) if stage.join is None else self._join(stage)
            return _finished(joined, stage.after)
        if stage.aggregate is None or stage.aggregate not in self._often:
            return _finished(self._ring(stage), stage.after)
        # The same aggregate twice in a query runs once.
        if stage.aggregate not in self._shared:
            self._shared[stage.aggregate] = _Shared(self._ring(stage), self._often[stage.aggregate])
        return _finished(self._shared[stage.aggregate].reader(), stage.after)

    def _ring(self, stage: PhysicalPlan) -> Steps:
        """The steps of a stage with rings: what Ring 1 gives, as it is."""
        ring1 = InlineRing1(dict(stage.operator), self._side_outputs.take, None)
        with contextlib.closing(ring1):
            run = Ring0Run(stage.program, delay=stage.source.delay or 0)
            driver = Driver(stage, run, ring1, strict=self._strict)
            if stage.feed is None:
                yield from self._read(stage.source, stage, driver, run)
            else:
                yield from self._fed(stage, driver, ring1)
            results = ring1.finish()
            # Before the last step: nobody asks for another.
            self.counters.update(run.counters())
            self.counters.update(ring1.counters())
            yield Step(results, NEVER)

    def _read(self, source: Source, stage: PhysicalPlan, driver: Driver, run: Ring0Run) -> Steps:
        opened = open_input(source, self._inputs[source.name], tuple(stage.program.spec.schema))
        with contextlib.closing(opened.batches):
            for batch in opened.batches:
                self.rows_in += batch.num_rows
                results = list(driver.take(batch))
                yield Step(results, ALWAYS if source.delay is None else run.watermark)

    def _fed(self, stage: PhysicalPlan, driver: Driver, ring1: InlineRing1) -> Steps:
        assert stage.feed is not None
        with contextlib.closing(self._steps(stage.feed)) as steps:
            for step in steps:
                results = [result for batch in step.batches for result in driver.take(batch)]
                watermark = step.watermark
                if ALWAYS < watermark < NEVER:
                    watermark -= stage.lag
                    results += ring1.advance(watermark)
                if watermark < NEVER:
                    yield Step(results, watermark)
                elif results:
                    yield Step(results, ALWAYS)

    def _union(self, stage: Combined) -> Steps:
        for _, step, joint in self._merged(stage.parts, first=0):
            yield Step(step.batches, joint)

    def _join(self, stage: Combined) -> Steps:
        assert stage.join is not None
        state = JoinState(stage.join, [part.output_schema for part in stage.parts])
        for side, step, joint in self._merged(stage.parts, first=_first_side(stage)):
            results = [result for batch in step.batches for result in state.take(side, batch)]
            if step.watermark == NEVER:
                state.complete(side)
            results += state.finish() if joint == NEVER else state.close(joint)
            yield Step(results, joint)

    def _merged(self, parts: tuple[Feed, ...], first: int) -> Iterator[tuple[int, Step, int]]:
        """Steps of all *parts*, each with its number and the watermark that all have reached."""
        with contextlib.ExitStack() as stack:
            steps = [stack.enter_context(contextlib.closing(self._steps(part))) for part in parts]
            watermarks = [ALWAYS] * len(parts)
            while min(watermarks) < NEVER:
                lowest = min(watermarks)
                number = first if watermarks[first] == lowest else watermarks.index(lowest)
                step = next(steps[number])
                watermarks[number] = max(step.watermark, watermarks[number])
                yield number, step, min(watermarks)


class _Shared:
    """The steps of a stage for several readers; what one has read waits for the others."""

    def __init__(self, steps: Steps, readers: int) -> None:
        self._steps = steps
        # All of them now: a reader may come when others have read much.
        self._queues: list[collections.deque[Step]] = [collections.deque() for _ in range(readers)]
        self._unread = list(self._queues)

    def reader(self) -> Steps:
        """The steps from the first on, for the next of the readers."""
        return self._read(self._unread.pop())

    def _read(self, queue: collections.deque[Step]) -> Steps:
        while True:
            if not queue:
                step = next(self._steps)
                for each in self._queues:
                    each.append(step)
            step = queue.popleft()
            yield step
            if step.watermark == NEVER:
                return

    def close(self) -> None:
        """Give up what the stage holds."""
        self._steps.close()


def walk(stage: Feed) -> Iterator[Feed]:
    """*stage* and all below it."""
    yield stage
    for part in stage.parts:
        yield from walk(part)


def wait_compiled(root: Feed) -> None:
    """Wait for the kernels of all stages of *root*; the code cache gives them to whoever needs the same."""
    for stage in walk(root):
        if isinstance(stage, PhysicalPlan):
            stage.program.wait_compiled()


def _first_side(stage: Combined) -> int:
    """The side to read first where time does not tell: the one that the other can then meet as it comes."""
    assert stage.join is not None
    if stage.join.how in ("left", "right"):
        return RIGHT if stage.join.how == "left" else LEFT
    left, right = (_groups_by(part) for part in stage.parts)
    # The one with fewer groups, as far as the query tells.
    return LEFT if left is not None and (right is None or left < right) else RIGHT


def _groups_by(stage: Feed) -> int | None:
    """By how many keys beside the window *stage* groups its rows, if it does."""
    aggregate = stage.aggregate if isinstance(stage, PhysicalPlan) else None
    return None if aggregate is None else len(aggregate.keys)


def _finished(steps: Steps, after: AfterChain | None) -> Steps:
    """*steps* with what is left to be done to their results, without empty ones."""
    with contextlib.closing(steps):
        for batches, watermark in steps:
            shown = batches if after is None else [after.apply(batch) for batch in batches]
            yield Step([batch for batch in shown if batch.num_rows], watermark)
