"""Every error this project raises, in one tree.

    LaminarError
    ├── PlanError                 a query that cannot be planned: says which clause, and what would work
    │   ├── UnknownColumn         a name no input has, with the nearest names
    │   ├── TypeMismatch          an expression whose operand types do not fit
    │   ├── UnsupportedClause     valid, but run by no route over these inputs
    │   └── UdfRefused            a user function Numba cannot compile
    ├── RingError                 the shared-memory rings
    │   ├── InvalidCapacity       a size that is not a positive power of two, or out of range
    │   ├── InvalidDtype          a row type that cannot live in shared memory
    │   ├── RowTooLarge           one row that is larger than the whole ring
    │   ├── RingClosed            use of an end that was closed
    │   ├── ProducerFenced        this producer was replaced by a newer generation
    │   └── PeerDied              the process at the other end is gone
    ├── SegmentError              shared-memory segments
    │   ├── SegmentNotFound       no segment of that name
    │   ├── ForeignSegment        not one of ours, or of another layout version
    │   └── SharedMemoryFull      no room left in the shared-memory file system
    ├── InvalidPolicy             a batch or backpressure policy that makes no sense
    ├── SpillError                the overflow files of a bridge
    ├── WorkerError               Ring 1 processes
    │   ├── WorkerDied            the process ended without saying why
    │   └── WorkerFailed          the process raised; carries the remote traceback
    ├── WatermarkRegressed        a watermark that went backwards on one edge
    ├── UdfFailed                 a user function raised; names function, row and values
    ├── ArithmeticRefused         strict mode: overflow or division by zero
    ├── ForeignState              a checkpoint that another plan wrote
    ├── CheckpointDamaged         a checkpoint without a whole epoch
    ├── CheckpointInUse           a checkpoint that another run is writing
    ├── SchemaMismatch            a batch that does not fit the declared source
    ├── BadMessage                a message of Kafka that cannot be read
    ├── KafkaFailed               a broker that cannot be reached, or says no
    └── CacheRefused              a code cache somebody else could have written

Messages show what was given, what was expected, and what to do.
"""

from __future__ import annotations


class LaminarError(Exception):
    """Base of all errors raised on purpose by laminar_jit."""


class PlanError(LaminarError):
    """A query that cannot be planned."""


class UnknownColumn(PlanError):
    """A column name that no input has."""


class TypeMismatch(PlanError):
    """An expression whose operand types do not fit."""


class UnsupportedClause(PlanError):
    """A clause that no route can run over the given inputs."""


class UdfRefused(PlanError):
    """A user function that Numba cannot compile."""


class RingError(LaminarError):
    """Something is wrong with a shared-memory ring."""


class InvalidCapacity(RingError, ValueError):
    """A size that is not a positive power of two, or is out of range."""


class InvalidDtype(RingError, TypeError):
    """A row type that cannot live in shared memory."""


class RowTooLarge(RingError, ValueError):
    """One row that is larger than the whole ring."""


class RingClosed(RingError):
    """Use of a ring end after it was closed."""


class ProducerFenced(RingError):
    """This producer was replaced by one of a newer generation."""


class PeerDied(RingError):
    """The process at the other end of the ring is gone."""


class SegmentError(LaminarError):
    """Something is wrong with a shared-memory segment."""


class SegmentNotFound(SegmentError, FileNotFoundError):
    """No segment of that name exists."""


class ForeignSegment(SegmentError):
    """A segment that is not ours, or of another layout version."""


class SharedMemoryFull(SegmentError, MemoryError):
    """The shared-memory file system has no room for the segment."""

    def __init__(self, asked: int, free: int, directory: str) -> None:
        self.asked = asked
        self.free = free
        self.directory = directory
        super().__init__(
            f"a segment of {asked} bytes does not fit into {directory}, which has {free} bytes free. "
            f"Use smaller rings, close others, or enlarge it: mount -o remount,size=<bytes> {directory} "
            "(Docker: --shm-size)."
        )

    def __reduce__(self) -> tuple[type[SharedMemoryFull], tuple[int, int, str]]:
        return type(self), (self.asked, self.free, self.directory)


class InvalidPolicy(LaminarError, ValueError):
    """A batch or backpressure policy that makes no sense."""


class SpillError(LaminarError):
    """The overflow files of a bridge cannot be written or read."""


class WorkerError(LaminarError):
    """Something is wrong with a Ring 1 process."""


class WorkerDied(WorkerError):
    """A Ring 1 process ended without reporting an error."""

    def __init__(self, worker: str, exitcode: int | None) -> None:
        self.worker = worker
        self.exitcode = exitcode
        how = "was killed" if exitcode is not None and exitcode < 0 else "ended"
        super().__init__(
            f"Ring 1 worker {worker!r} {how} (exit code {exitcode}) while it was needed. "
            "Rows it had not yet acknowledged are not in any result; restore from the last "
            "checkpoint, or run again. Exit code -9 is most often the kernel's out-of-memory killer."
        )

    def __reduce__(self) -> tuple[type[WorkerDied], tuple[str, int | None]]:
        return type(self), (self.worker, self.exitcode)


class WorkerFailed(WorkerError):
    """A Ring 1 process raised; the message ends with its traceback."""


class WatermarkRegressed(LaminarError):
    """A watermark went backwards on one edge."""


class UdfFailed(LaminarError):
    """A user function raised an exception."""


class ArithmeticRefused(LaminarError, ArithmeticError):
    """Overflow or division by zero in strict mode."""


class ForeignState(LaminarError):
    """A checkpoint that was written by another plan."""


class CheckpointDamaged(LaminarError):
    """A checkpoint in which no epoch is whole."""


class CheckpointInUse(LaminarError):
    """A checkpoint that another run is writing at this moment."""


class SchemaMismatch(LaminarError, TypeError):
    """A batch that does not fit the declared source."""


class BadMessage(LaminarError):
    """A message of Kafka that cannot be read as it was declared."""


class KafkaFailed(LaminarError):
    """Kafka cannot be read or written: no broker answers, or one says no."""


class CacheRefused(LaminarError):
    """A code cache that somebody else could have written."""
