"""Runs two small programs in every possible schedule over weakly ordered memory.

A program is a list of instructions over registers and shared cells. Each thread
has a store buffer: a plain store sits there until the scheduler lets it reach
memory, in any order towards other cells; a release store leaves only after all
stores before it; an exchange needs the buffer empty. That is weaker than x86 and
as weak as ARM is for stores, so an ordering the code relies on but does not ask
for shows up as a failing schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

Registers = tuple[int, ...]
Place = int | Callable[[dict[str, int]], int]
Value = int | Callable[[dict[str, int]], int]


@dataclass(frozen=True)
class Load:
    register: str
    cell: Place


@dataclass(frozen=True)
class Store:
    cell: Place
    value: Value
    release: bool = False


@dataclass(frozen=True)
class Exchange:
    """A sequentially consistent read-modify-write whose old value is not used."""

    cell: Place
    value: Value


@dataclass(frozen=True)
class Local:
    """Work on registers only; takes no time of its own."""

    update: Callable[[dict[str, int]], None]


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Jump:
    label: str
    when: Callable[[dict[str, int]], bool] = lambda registers: True


@dataclass(frozen=True)
class Check:
    holds: Callable[[dict[str, int]], bool]
    message: str


@dataclass(frozen=True)
class Park:
    """futex_wait: sleep if the flag is 1, else go on."""

    flag: int


@dataclass(frozen=True)
class Wake:
    """futex_wake: the other thread goes on if it sleeps on the flag."""

    flag: int


Instruction = Load | Store | Exchange | Local | Label | Jump | Check | Park | Wake


class Thread(NamedTuple):
    counter: int
    registers: Registers
    buffer: tuple[tuple[int, int, bool], ...]
    asleep: int  # the flag slept on, or -1


class State(NamedTuple):
    memory: tuple[int, ...]
    threads: tuple[Thread, Thread]


class Violation(AssertionError):
    """A schedule in which the protocol breaks; the message tells it step by step."""


class Program:
    def __init__(self, name: str, instructions: list[Instruction]) -> None:
        self.name = name
        self.instructions = instructions
        self.labels = {item.name: at for at, item in enumerate(instructions) if isinstance(item, Label)}
        self.names: list[str] = []

    def start(self, registers: dict[str, int]) -> Thread:
        self.names = sorted(registers)
        return Thread(0, tuple(registers[name] for name in self.names), (), -1)


class Explorer:
    """Visits every reachable state once."""

    def __init__(
        self,
        programs: tuple[Program, Program],
        cells: int,
        cell_name: Callable[[int], str],
        may_rest: Callable[[State], bool] = lambda state: False,
    ) -> None:
        self.programs = programs
        self.cells = cells
        self.cell_name = cell_name
        # Whether a state in which nobody can go on is a good end, besides both having finished.
        self.may_rest = may_rest
        self.visited: dict[State, tuple[State, str] | None] = {}

    def run(self, starts: tuple[dict[str, int], dict[str, int]]) -> int:
        """Explore everything; returns the number of states, or raises Violation."""
        threads = tuple(
            program.start(registers) for program, registers in zip(self.programs, starts, strict=True)
        )
        first = State((0,) * self.cells, threads)  # type: ignore[arg-type]
        # Work on registers before the first shared access belongs to nobody's step.
        for who in (0, 1):
            first = first._replace(threads=_with(first.threads, who, self._settle(first, first, who)))
        self.visited = {first: None}
        frontier = [first]
        while frontier:
            state = frontier.pop()
            stuck = True
            for label, successor in self._successors(state):
                stuck = False
                if successor not in self.visited:
                    self.visited[successor] = (state, label)
                    frontier.append(successor)
            finished = all(self._finished(state, who) for who in (0, 1))
            if stuck and not finished and not self.may_rest(state):
                self._fail(state, "nobody can go on: a wake-up was lost")
        return len(self.visited)

    def _finished(self, state: State, who: int) -> bool:
        thread = state.threads[who]
        return thread.counter >= len(self.programs[who].instructions) and not thread.buffer

    def _successors(self, state: State) -> Iterator[tuple[str, State]]:
        for who in (0, 1):
            thread = state.threads[who]
            for at, (cell, value, release) in enumerate(thread.buffer):
                earlier = thread.buffer[:at]
                if (release and earlier) or any(cell == other for other, _, _ in earlier):
                    continue
                memory = _set(state.memory, cell, value)
                left = thread._replace(buffer=earlier + thread.buffer[at + 1 :])
                label = f"{self.programs[who].name}: {self.cell_name(cell)}={value} reaches memory"
                yield label, State(memory, _with(state.threads, who, left))
            if thread.asleep < 0 and thread.counter < len(self.programs[who].instructions):
                yield from self._step(state, who)

    def _step(self, state: State, who: int) -> Iterator[tuple[str, State]]:
        program, thread = self.programs[who], state.threads[who]
        instruction = program.instructions[thread.counter]
        registers = dict(zip(program.names, thread.registers, strict=True))
        memory, buffer, threads = state.memory, thread.buffer, state.threads
        asleep = -1
        if isinstance(instruction, Load):
            cell = _value(instruction.cell, registers)
            found = next((value for at, value, _ in reversed(buffer) if at == cell), memory[cell])
            registers[instruction.register] = found
            label = f"{instruction.register}={found} from {self.cell_name(cell)}"
        elif isinstance(instruction, Store):
            cell, value = _value(instruction.cell, registers), _value(instruction.value, registers)
            buffer = (*buffer, (cell, value, instruction.release))
            label = f"store {self.cell_name(cell)}={value}"
        elif isinstance(instruction, Exchange):
            if buffer:
                return
            cell, value = _value(instruction.cell, registers), _value(instruction.value, registers)
            memory = _set(memory, cell, value)
            label = f"exchange {self.cell_name(cell)}={value}"
        elif isinstance(instruction, Park):
            if memory[instruction.flag] == 1:
                asleep = instruction.flag
            label = f"park on {self.cell_name(instruction.flag)}: {'sleeps' if asleep >= 0 else 'goes on'}"
        else:
            assert isinstance(instruction, Wake)
            other = threads[1 - who]
            if other.asleep == instruction.flag:
                threads = _with(threads, 1 - who, other._replace(asleep=-1))
            label = "wake"
        moved = Thread(thread.counter + 1, tuple(registers[name] for name in program.names), buffer, asleep)
        after = State(memory, _with(threads, who, moved))
        settled = self._settle(state, after, who)
        yield f"{program.name}: {label}", after._replace(threads=_with(after.threads, who, settled))

    def _settle(self, origin: State, state: State, who: int) -> Thread:
        """Run the instructions that touch registers only."""
        program, thread = self.programs[who], state.threads[who]
        registers = dict(zip(program.names, thread.registers, strict=True))
        counter = thread.counter
        while counter < len(program.instructions):
            instruction = program.instructions[counter]
            if isinstance(instruction, Local):
                instruction.update(registers)
            elif isinstance(instruction, Check):
                if not instruction.holds(registers):
                    self._fail(origin, f"{program.name}: {instruction.message}, with {registers}")
            elif isinstance(instruction, Jump):
                if instruction.when(registers):
                    counter = program.labels[instruction.label]
                    continue
            elif not isinstance(instruction, Label):
                break
            counter += 1
        return thread._replace(counter=counter, registers=tuple(registers[name] for name in program.names))

    def _fail(self, state: State, message: str) -> None:
        steps: list[str] = []
        at: State | None = state
        while at is not None and (origin := self.visited.get(at)) is not None:
            steps.append(origin[1])
            at = origin[0]
        raise Violation("\n  ".join([message, *reversed(steps)]))


def _value(given: int | Callable[[dict[str, int]], int], registers: dict[str, int]) -> int:
    return given(registers) if callable(given) else given


def _set(memory: tuple[int, ...], cell: int, value: int) -> tuple[int, ...]:
    return (*memory[:cell], value, *memory[cell + 1 :])


def _with(threads: tuple[Thread, Thread], who: int, thread: Thread) -> tuple[Thread, Thread]:
    return (thread, threads[1]) if who == 0 else (threads[0], thread)
