"""Running a Ring 0 program over the batches of one input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numba.core.dispatcher import Dispatcher

from ..errors import LaminarError
from ..kernels import ring0 as words
from ..kernels.row_writer import write_rows
from ..runtime.columns import ColumnTable, column_of, plain, readable
from ..runtime.targets import RowTarget
from .counters import Counters
from .left_to_arrow import evaluated, left_reason

if TYPE_CHECKING:
    from .ring0 import Ring0Program

_FIRST_SCRATCH_BYTES = 1 << 16

#: How a batch can be run: by the compiled kernel, by its plain Python form, or by pyarrow.
MODES = ("compiled", "python", "interpreted")


class Ring0Run:
    """One input's way through a program: ``take`` a batch, ``fill`` targets until ``exhausted``.

    *delay* and *future_limit* are microseconds. *mode* fixes how batches run;
    without it they are interpreted until the kernel is ready. A run belongs to
    one thread; any number of runs may share a program.
    """

    def __init__(
        self,
        program: Ring0Program,
        *,
        delay: int = 0,
        future_limit: int | None = None,
        mode: str | None = None,
    ) -> None:
        if mode is not None and mode not in MODES:
            raise ValueError(f"mode is {mode!r}; expected one of {', '.join(MODES)}")
        self.program = program
        self.state = program.state_words(delay=delay, future_limit=future_limit)
        self._mode = mode
        self._batch: _KernelBatch | _InterpretedBatch | None = None
        self._rows = 0
        self._set_scratch(_FIRST_SCRATCH_BYTES)
        # Asked of numpy once, not for every target.
        self._literals_address = int(program.literals.ctypes.data)

    def _set_scratch(self, size: int) -> None:
        self._scratch = np.empty(size, dtype=np.uint8)
        self._scratch_address = int(self._scratch.ctypes.data)

    def take(self, batch: pa.RecordBatch) -> None:
        """Begin a batch. The one before must be exhausted."""
        if not self.exhausted:
            raise RuntimeError(f"batch taken while {self._rows - self.next_row} rows of another are left")
        self._batch = self._begin(batch)
        # Only now: a batch that was refused leaves nothing to be taken.
        self._rows = batch.num_rows
        self.state[words.NEXT_ROW] = 0
        self.state[words.WRITTEN] = 0
        self.state[words.STOP] = words.DONE

    def _begin(self, batch: pa.RecordBatch) -> _KernelBatch | _InterpretedBatch:
        program = self.program
        mode = self._mode
        if mode is None:
            program.load_cached()
            mode = program.mode
        if mode == "interpreted":
            return _InterpretedBatch(program, batch, self.state)
        return _KernelBatch(self, batch, mode)

    def fill(self, target: RowTarget) -> int:
        """Write rows into *target*; why it stopped. What was done stands in the properties below."""
        batch = self._batch
        if batch is None:
            raise RuntimeError("fill without a batch; call take first")
        stop = batch.fill(target, self.next_row, self._rows, self.state)
        if self.exhausted:
            self._batch = None
            if self._mode is None:
                # Only now: the compiler would keep the first rows waiting.
                self.program.compile_in_background()
        return stop

    @property
    def exhausted(self) -> bool:
        """Whether every row of the batch was taken."""
        return self.next_row >= self._rows

    @property
    def next_row(self) -> int:
        return int(self.state[words.NEXT_ROW])

    @property
    def written(self) -> int:
        """Rows the last ``fill`` wrote."""
        return int(self.state[words.WRITTEN])

    @property
    def heap_position(self) -> int:
        """Where the heap stands after the last ``fill``."""
        return int(self.state[words.HEAP_POSITION])

    @property
    def stop(self) -> int:
        """Why the last ``fill`` ended: a code of ``kernels/ring0.py``."""
        return int(self.state[words.STOP])

    @property
    def watermark(self) -> int:
        """No event older than this is expected; the least int64 before the first event."""
        lowest = int(words.NO_TIME) + int(self.state[words.DELAY])
        return max(int(self.state[words.MAX_TS]), lowest) - int(self.state[words.DELAY])

    def counters(self) -> dict[str, int]:
        """Rows counted since the run began, by reason."""
        return {name: int(self.state[at]) for name, at in words.COUNTERS.items()}


class _KernelBatch:
    """A batch run by the generated kernel, compiled or as plain Python."""

    def __init__(self, run: Ring0Run, batch: pa.RecordBatch, mode: str) -> None:
        self._run = run
        self._source = batch
        program = run.program
        spec = program.spec
        arrays = [readable(column_of(batch, field), field) for field in spec.fields]
        if program.arrow_expressions:
            arrays += _left_columns(program, batch)
        self._table = ColumnTable(arrays, batch.num_rows)
        dense = not self._table.has_nulls
        if mode == "python":
            function = program.function(dense=dense)
            self._kernel: Any = _quiet(getattr(function, "py_func", function))
        else:
            self._kernel = _quiet(program.kernel(dense=dense))

    def fill(self, target: RowTarget, first: int, last: int, state: Any) -> int:
        position, room, heap_position, heap_room = (
            target.position,
            target.room,
            target.heap_position,
            target.heap_room,
        )
        written = 0
        while True:
            scratch = self._run._scratch
            try:
                self._kernel(
                    self._table.words,
                    first,
                    last,
                    self._run._literals_address,
                    self._run._scratch_address,
                    scratch.size,
                    target.rows,
                    position,
                    room,
                    target.mask,
                    target.heap,
                    heap_position,
                    heap_room,
                    target.heap_mask,
                    state,
                )
            except LaminarError:
                raise
            except Exception as error:
                raise _udf_failed(self._run.program, self._source, state, error) from error
            count = int(state[words.WRITTEN])
            written += count
            if state[words.STOP] != words.SCRATCH_FULL:
                state[words.WRITTEN] = written
                return int(state[words.STOP])
            # One row builds strings beyond the working memory: read it again with more.
            self._run._set_scratch(scratch.size * 4)
            first = int(state[words.NEXT_ROW])
            position += count
            room -= count
            heap_room -= int(state[words.HEAP_POSITION]) - heap_position
            heap_position = int(state[words.HEAP_POSITION])


def _quiet(function: Any) -> Any:
    """Numbers wrap around in compiled code without a word; in plain Python numpy's would warn."""
    if isinstance(function, Dispatcher):
        return function

    def quiet(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return quiet


_write_rows = _quiet(write_rows)


def _plain_batch(program: Ring0Program, batch: pa.RecordBatch) -> pa.RecordBatch:
    fields = program.spec.fields
    arrays = [plain(column_of(batch, field), field) for field in fields]
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])


def _left_columns(program: Ring0Program, batch: pa.RecordBatch) -> list[pa.Array]:
    """The columns of what the kernel leaves to pyarrow. The kernel counts their failures, row by row."""
    from .interpreter import Evaluator

    evaluator = Evaluator(_plain_batch(program, batch), Counters())
    return [evaluator.array(found.node) for found in program.arrow_expressions]


class _InterpretedBatch:
    """A batch evaluated by pyarrow: all of it at once, then written as often as there is room."""

    def __init__(self, program: Ring0Program, batch: pa.RecordBatch, state: Any) -> None:
        from .interpreter import Evaluator

        spec = program.spec
        counters = Counters()
        evaluator = Evaluator(_plain_batch(program, batch), counters)
        survivors = np.arange(batch.num_rows, dtype=np.int64)
        times: list[pa.Array] = []
        if spec.time is not None:
            time = evaluator.array(spec.time)
            times.append(time)
            if time.null_count:
                mask = np.asarray(time.is_valid())
                evaluator, survivors = evaluator.keep(mask), survivors[mask]
        for predicate in spec.predicates:
            mask = evaluator.holds(predicate)
            if not mask.all():
                evaluator, survivors = evaluator.keep(mask), survivors[mask]
        outputs = [evaluator.array(node) for _, node in spec.outputs]
        self._table = ColumnTable.from_arrays([*outputs, *times])
        self._survivors = survivors
        self._taken = 0
        self._time_column = len(outputs) if times else -1
        self._fields, self._keys, self._layout = spec.writer_tables
        for name, at in (
            ("overflows", words.OVERFLOWS),
            ("divisions_by_zero", words.DIVISIONS_BY_ZERO),
            ("bad_casts", words.BAD_CASTS),
        ):
            state[at] += getattr(counters, name)

    def fill(self, target: RowTarget, first: int, last: int, state: Any) -> int:
        _write_rows(
            self._table.words,
            self._fields,
            self._keys,
            self._layout,
            self._survivors,
            self._taken,
            self._time_column,
            first,
            last,
            target.rows,
            target.position,
            target.room,
            target.mask,
            target.heap,
            target.heap_position,
            target.heap_room,
            target.heap_mask,
            state,
        )
        self._taken += int(state[words.WRITTEN])
        return int(state[words.STOP])


def _udf_failed(program: Ring0Program, batch: pa.RecordBatch, state: Any, error: Exception) -> Exception:
    """The error that names the function, the row and the values it was called with."""
    if not program.udfs:
        return error
    from .interpret_udf import udf_failed
    from .interpreter import Evaluator

    called = [
        node
        for node in evaluated(*program.spec.roots)
        if node.operation == "udf" and left_reason(node) is None
    ]
    node = called[int(state[words.CURRENT_UDF])]
    evaluator = Evaluator(_plain_batch(program, batch), Counters())
    arguments = tuple(evaluator.vector(argument).spread(batch.num_rows) for argument in node.arguments)
    return udf_failed(node.value, int(state[words.CURRENT_ROW]), arguments, error)
