"""The ring protocol as two programs for the explorer.

Each function here mirrors one kernel or one wait of the runtime, access by
access (``test_model_follows_the_kernels`` compares them). A ``Bug`` plants one
mistake, which the explorer must find: that is what makes its silence mean
something.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from .explorer import (
    Check,
    Exchange,
    Explorer,
    Instruction,
    Jump,
    Label,
    Load,
    Local,
    Park,
    Program,
    State,
    Store,
    Wake,
)

TAIL, HEAD, STAGED, CONSUMER_WAITS, PRODUCER_WAITS, MARKS_TAIL, MARKS_HEAD = range(7)
FIRST_SLOT = 7
CELL_NAMES = ["TAIL", "HEAD", "STAGED", "CONSUMER_WAITS", "PRODUCER_WAITS", "MARKS_TAIL", "MARKS_HEAD"]

EOF_MARK = 99


class Bug(enum.Enum):
    PUBLISH_BEFORE_PAYLOAD = "rows are staged before their payload is written"
    RELAXED_STAGE = "STAGED is stored without release order"
    PUBLISH_BY_STORE = "TAIL is a release store and not an exchange"
    OFFER_BY_STORE = "the consumer's flag is read without an exchange of STAGED"
    FLAG_BEFORE_TAIL = "the producer reads the flag before it publishes"
    LOOK_BEFORE_FLAG = "the consumer looks for rows before it raises its flag, and not again"
    ROOM_BEFORE_FLAG = "the producer looks for room before it raises its flag, and not again"
    RELEASE_BY_STORE = "HEAD is a release store and not an exchange"
    RELEASE_BEFORE_READ = "slots are released before they are read"
    OVERCLAIM = "one slot too many is claimed"
    MARK_AFTER_ROW = "a mark is published after the first row beyond it"
    MARKS_BEFORE_ROWS = "the consumer looks at the marks before the rows"
    UNCLAMPED_PEEK = "TAIL behind HEAD gives a negative count"
    NO_OFFER = "rows are staged and left"
    NO_WAKE = "the producer sees the flag and does not wake"
    QUIET_END = "a run of quiet publishes does not end with an exchange"
    MARK_WITHOUT_WAKE = "a mark does not look at the consumer's flag"


@dataclass
class Scenario:
    """What the producer does: ``("rows", n)``, ``"publish"``, ``"quiet"``, ``"offer"``, ``"mark"``.

    Then it sends the end; or, if not *ends*, falls silent: the consumer must then
    have taken everything before it sleeps for good.
    """

    capacity: int
    script: tuple[tuple[str, int] | str, ...]
    mark_capacity: int = 1
    ends: bool = True
    bug: Bug | None = None
    _labels: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def first_mark_slot(self) -> int:
        return FIRST_SLOT + self.capacity

    @property
    def cells(self) -> int:
        return self.first_mark_slot + 2 * self.mark_capacity

    def cell_name(self, cell: int) -> str:
        if cell < FIRST_SLOT:
            return CELL_NAMES[cell]
        if cell < self.first_mark_slot:
            return f"slot[{cell - FIRST_SLOT}]"
        at, part = divmod(cell - self.first_mark_slot, 2)
        return f"mark[{at}].{('value', 'position')[part]}"

    def explore(self) -> int:
        """The number of states; raises Violation if any schedule breaks the protocol."""
        self._labels = itertools.count()
        programs = (Program("producer", self.producer()), Program("consumer", self.consumer()))
        starts = (
            {"staged": 0, "cached_head": 0, "head": 0, "left": 0, "count": 0, "flag": 0}
            | {"at": 0, "marks": 0, "marks_head": 0},
            {"head": 0, "tail": 0, "count": 0, "flag": 0, "at": 0, "row": 0, "marks_head": 0}
            | {"marks_tail": 0, "value": 0, "position": 0, "marked": 0},
        )
        return Explorer(programs, self.cells, self.cell_name, self.may_rest).run(starts)

    def may_rest(self, state: State) -> bool:
        memory, (producer, consumer) = state.memory, state.threads
        return (
            not self.ends
            and producer.asleep < 0
            and consumer.asleep == CONSUMER_WAITS
            and memory[HEAD] == memory[STAGED]
            and memory[MARKS_HEAD] == memory[MARKS_TAIL]
        )

    def label(self, name: str) -> str:
        return f"{name}.{next(self._labels)}"

    # What the producer is made of.

    def producer(self) -> list[Instruction]:
        program: list[Instruction] = []
        steps = [*self.script, "eof", "publish"] if self.ends else [*self.script]
        for number, step in enumerate(steps):
            if isinstance(step, tuple):
                program += self.send(step[1])
            elif step == "publish":
                program += self.publish()
            elif step == "quiet" or (step == "offer" and self.bug is Bug.QUIET_END):
                program += self.publish_quietly()
            elif step == "offer":
                program += [] if self.bug is Bug.NO_OFFER else self.offer()
            elif step == "mark" and self.bug is Bug.MARK_AFTER_ROW:
                # The row that should follow goes first, though the mark is stamped as before it.
                program += [*self.send(1), *self.push_mark(number, behind=1)]
            elif step == "mark":
                program += self.push_mark(number)
            else:
                program += self.push_mark(EOF_MARK)
        return program

    def claim(self) -> list[Instruction]:
        done = self.label("claimed")
        capacity = self.capacity + (self.bug is Bug.OVERCLAIM)

        def free(registers: dict[str, int]) -> int:
            return capacity - (registers["staged"] - registers["cached_head"])

        return [
            Jump(done, lambda r: free(r) >= r["left"]),
            Load("head", HEAD),
            Local(lambda r: r.update(cached_head=r["head"])),
            Label(done),
            Local(lambda r: r.update(count=min(free(r), r["left"]))),
        ]

    def write(self) -> list[Instruction]:
        again, done = self.label("write"), self.label("written")
        return [
            Local(lambda r: r.update(at=0)),
            Label(again),
            Jump(done, lambda r: r["at"] >= r["count"]),
            Store(
                lambda r: FIRST_SLOT + (r["staged"] + r["at"]) % self.capacity,
                lambda r: r["staged"] + r["at"] + 1,
            ),
            Local(lambda r: r.update(at=r["at"] + 1)),
            Jump(again),
            Label(done),
        ]

    def stage(self) -> list[Instruction]:
        return [
            Store(STAGED, lambda r: r["staged"] + r["count"], release=self.bug is not Bug.RELAXED_STAGE),
            Local(lambda r: r.update(staged=r["staged"] + r["count"])),
        ]

    def send(self, rows: int) -> list[Instruction]:
        again, room, done = self.label("send"), self.label("room"), self.label("sent")
        stage_and_write = [*self.write(), *self.stage()]
        if self.bug is Bug.PUBLISH_BEFORE_PAYLOAD:
            early = self.stage()[:1]
            stage_and_write = [*early, *self.write(), *self.stage()[1:]]
        return [
            Local(lambda r: r.update(left=rows)),
            Label(again),
            Jump(done, lambda r: r["left"] == 0),
            *self.claim(),
            Jump(room, lambda r: r["count"] > 0),
            *self.wait_for_room(),
            Jump(again),
            Label(room),
            *stage_and_write,
            Local(lambda r: r.update(left=r["left"] - r["count"])),
            Jump(again),
            Label(done),
        ]

    def tell_consumer(self) -> list[Instruction]:
        quiet = self.label("quiet")
        wake: list[Instruction] = [] if self.bug is Bug.NO_WAKE else [Wake(CONSUMER_WAITS)]
        return [
            Load("flag", CONSUMER_WAITS),
            Jump(quiet, lambda r: r["flag"] == 0),
            Exchange(CONSUMER_WAITS, 0),
            *wake,
            Label(quiet),
        ]

    def publish(self) -> list[Instruction]:
        commit: Instruction = Exchange(TAIL, lambda r: r["staged"])
        if self.bug is Bug.PUBLISH_BY_STORE:
            commit = Store(TAIL, lambda r: r["staged"], release=True)
        if self.bug is Bug.FLAG_BEFORE_TAIL:
            return [*self.tell_consumer(), commit]
        return [commit, *self.tell_consumer()]

    def publish_quietly(self) -> list[Instruction]:
        return [Store(TAIL, lambda r: r["staged"], release=True), *self.tell_consumer()]

    def offer(self) -> list[Instruction]:
        quiet = self.label("not_waiting")
        commit: list[Instruction] = [Exchange(STAGED, lambda r: r["staged"])]
        if self.bug is Bug.OFFER_BY_STORE:
            commit = []
        return [
            *commit,
            Load("flag", CONSUMER_WAITS),
            Jump(quiet, lambda r: r["flag"] == 0),
            *self.publish(),
            Label(quiet),
        ]

    def push_mark(self, value: int, behind: int = 0) -> list[Instruction]:
        again, room = self.label("mark"), self.label("mark_room")

        def slot(registers: dict[str, int]) -> int:
            return self.first_mark_slot + 2 * (registers["marks"] % self.mark_capacity)

        def full(registers: dict[str, int]) -> bool:
            return registers["marks"] - registers["marks_head"] >= self.mark_capacity

        return [
            Label(again),
            Jump(room, lambda r: not full(r)),
            Load("marks_head", MARKS_HEAD),
            Jump(room, lambda r: not full(r)),
            *self.publish(),
            *self.park_producer(Load("marks_head", MARKS_HEAD), lambda r: not full(r)),
            Jump(again),
            Label(room),
            Store(slot, value),
            Store(lambda r: slot(r) + 1, lambda r: r["staged"] - behind),
            Local(lambda r: r.update(marks=r["marks"] + 1)),
            Exchange(MARKS_TAIL, lambda r: r["marks"]),
            *([] if self.bug is Bug.MARK_WITHOUT_WAKE else self.tell_consumer()),
        ]

    def wait_for_room(self) -> list[Instruction]:
        return [
            *self.publish(),
            *self.park_producer(Load("head", HEAD), lambda r: self.capacity - (r["staged"] - r["head"]) > 0),
        ]

    def park_producer(self, look: Load, ready: Callable[[dict[str, int]], bool]) -> list[Instruction]:
        done = self.label("stop_waiting")
        raised: list[Instruction] = [Exchange(PRODUCER_WAITS, 1), look, Jump(done, ready)]
        if self.bug is Bug.ROOM_BEFORE_FLAG:
            raised = [look, Jump(done, ready), Exchange(PRODUCER_WAITS, 1)]
        return [*raised, Park(PRODUCER_WAITS), Label(done), Exchange(PRODUCER_WAITS, 0)]

    # What the consumer is made of.

    def consumer(self) -> list[Instruction]:
        look_at_rows = [*self.peek()]
        look_at_marks: list[Instruction] = [Load("marks_tail", MARKS_TAIL)]
        looks = [*look_at_rows, *look_at_marks]
        if self.bug is Bug.MARKS_BEFORE_ROWS:
            looks = [*look_at_marks, *look_at_rows]
        return [
            Label("drain"),
            *looks,
            *self.next_mark(),
            Check(lambda r: r["count"] >= 0, "a negative number of rows is ready"),
            Jump("wait", lambda r: r["count"] == 0 and not r["marked"]),
            *self.read_and_release(),
            Jump("drain", lambda r: not r["marked"] or r["head"] != r["position"]),
            Check(lambda r: r["head"] == r["position"], "rows beyond a mark were taken before it"),
            *self.pop_mark(),
            Jump("end", lambda r: r["value"] == EOF_MARK),
            Jump("drain"),
            Label("wait"),
            *self.park(),
            Jump("drain"),
            Label("end"),
            Check(lambda r: r["row"] == r["head"] == r["position"], "rows are missing at the end"),
        ]

    def peek(self) -> list[Instruction]:
        published = self.label("published")
        # Without the clamp a consumer that took staged rows is handed a negative count.
        negative_counts = self.bug is Bug.UNCLAMPED_PEEK
        return [
            Load("tail", TAIL),
            Local(lambda r: r.update(count=r["tail"] - r["head"])),
            Jump(published, lambda r: r["count"] != 0 if negative_counts else r["count"] > 0),
            Load("tail", STAGED),
            Local(lambda r: r.update(count=r["tail"] - r["head"])),
            Label(published),
        ]

    def next_mark(self) -> list[Instruction]:
        done = self.label("no_mark")

        def slot(registers: dict[str, int]) -> int:
            return self.first_mark_slot + 2 * (registers["marks_head"] % self.mark_capacity)

        return [
            Local(lambda r: r.update(marked=0)),
            Jump(done, lambda r: r["marks_tail"] == r["marks_head"]),
            Load("value", slot),
            Load("position", lambda r: slot(r) + 1),
            Check(lambda r: r["position"] >= r["head"], "rows beyond a mark were taken before it"),
            Local(lambda r: r.update(marked=1, count=min(r["count"], r["position"] - r["head"]))),
            Label(done),
        ]

    def read_and_release(self) -> list[Instruction]:
        again, done, nothing = self.label("read"), self.label("read_all"), self.label("nothing")
        commit: Instruction = Exchange(HEAD, lambda r: r["head"] + r["count"])
        if self.bug is Bug.RELEASE_BY_STORE:
            commit = Store(HEAD, lambda r: r["head"] + r["count"], release=True)
        read: list[Instruction] = [
            Local(lambda r: r.update(at=0)),
            Label(again),
            Jump(done, lambda r: r["at"] >= r["count"]),
            Load("row", lambda r: FIRST_SLOT + (r["head"] + r["at"]) % self.capacity),
            Check(lambda r: r["row"] == r["head"] + r["at"] + 1, "a row was read that is not the next one"),
            Local(lambda r: r.update(at=r["at"] + 1)),
            Jump(again),
            Label(done),
        ]
        body = [*read, commit, *self.tell_producer()]
        if self.bug is Bug.RELEASE_BEFORE_READ:
            body = [commit, *self.tell_producer(), *read]
        return [
            Jump(nothing, lambda r: r["count"] == 0),
            *body,
            Local(lambda r: r.update(head=r["head"] + r["count"])),
            Label(nothing),
        ]

    def tell_producer(self) -> list[Instruction]:
        quiet = self.label("quiet")
        return [
            Load("flag", PRODUCER_WAITS),
            Jump(quiet, lambda r: r["flag"] == 0),
            Exchange(PRODUCER_WAITS, 0),
            Wake(PRODUCER_WAITS),
            Label(quiet),
        ]

    def pop_mark(self) -> list[Instruction]:
        return [
            Exchange(MARKS_HEAD, lambda r: r["marks_head"] + 1),
            *self.tell_producer(),
            Local(lambda r: r.update(marks_head=r["marks_head"] + 1)),
        ]

    def park(self) -> list[Instruction]:
        done = self.label("stop_waiting")
        look: list[Instruction] = [
            Load("tail", TAIL),
            Jump(done, lambda r: r["tail"] > r["head"]),
            Load("tail", STAGED),
            Jump(done, lambda r: r["tail"] > r["head"]),
            Load("marks_tail", MARKS_TAIL),
            Jump(done, lambda r: r["marks_tail"] > r["marks_head"]),
        ]
        raised: list[Instruction] = [Exchange(CONSUMER_WAITS, 1)]
        looks = [*look, *raised] if self.bug is Bug.LOOK_BEFORE_FLAG else [*raised, *look]
        return [*looks, Park(CONSUMER_WAITS), Label(done), Exchange(CONSUMER_WAITS, 0)]
