"""A session as one epoch of a checkpoint, and back.

The epoch holds the statements that made sources and streams; a restore runs them
again and gives each stream the state it had. So a checkpoint holds no code, and
what the statements mean today is compared with what they meant when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from .checkpoint import Checkpoint, Location, plan_identity
from .errors import ForeignState, PlanError
from .kernels import ring0 as words
from .runtime.checkpoints import CheckpointStore, Epoch, PlanIdentity
from .runtime.operators.base import Snapshot
from .session_sources import SessionSource
from .session_streams import Output, Stream, StreamGroup
from .sql.ddl import CreateSource, parse_session, parse_stream
from .sql.routing import plan_stream

#: All sessions are one kind of state; which streams they have stands inside.
_IDENTITY = PlanIdentity("a session", ("a session",))

Parts = tuple[CheckpointStore, dict[str, SessionSource], dict[str, Stream], list[StreamGroup]]


def write(
    location: Location,
    sources: Mapping[str, SessionSource],
    streams: Mapping[str, Stream],
    groups: list[StreamGroup],
) -> tuple[CheckpointStore, int]:
    """Make one more epoch at *location*; the store to go on with, and the epoch's number."""
    for group in groups:
        if group.broken is not None:
            raise PlanError(
                f"stream {group.streams[0].name!r} has failed and lacks rows, so it cannot be written; "
                "drop it first."
            ) from group.broken
    store = location if isinstance(location, CheckpointStore) else _empty(Checkpoint(location).store())
    number = store.next_number()
    tables: dict[str, pa.Table] = {}
    for name, source in sources.items():
        if source.pending:
            tables[f"pending {name}"] = pa.Table.from_batches(source.pending, schema=source.schema)
    for output in _outputs(streams):
        unread = output.not_taken()
        if unread:
            tables[f"unread {output.name}"] = pa.Table.from_batches(unread, schema=output.schema)
    described = {}
    for name, stream in streams.items():
        # Inline there is nothing that still has to be handed on.
        _, snapshot = stream.ring1.checkpoint(number)
        described[name] = {
            "text": stream.text,
            "plan": plan_identity(stream.physical).fingerprint,
            "state": snapshot.values,
            "tables": list(snapshot.tables),
        }
        tables |= {f"state {name} {inner}": table for inner, table in snapshot.tables.items()}
    state = {
        "sources": {
            name: {"text": one.text, "batches": one.batches, "rows": one.rows}
            for name, one in sources.items()
        },
        "streams": described,
        "groups": [_group_state(group) for group in groups],
    }
    store.write(number, _IDENTITY, state, Snapshot(tables))
    return store, number


def read(location: Location) -> Parts:
    """What the newest whole epoch at *location* holds."""
    store = location if isinstance(location, CheckpointStore) else Checkpoint(location).store()
    epoch = store.restore(_IDENTITY)
    if epoch is None:
        raise PlanError(
            f"no session was written to {store.location}. Open one with "
            f"lj.Session(checkpoint={store.location!r}) and call checkpoint()."
        )
    sources = {}
    for name, kept in epoch.state["sources"].items():
        create = parse_session(kept["text"])
        assert isinstance(create, CreateSource)
        sources[name] = source = SessionSource(kept["text"], create)
        source.batches, source.rows = kept["batches"], kept["rows"]
        if f"pending {name}" in epoch.snapshot.tables:
            source.pending = epoch.snapshot.tables[f"pending {name}"].cast(source.schema).to_batches()
    streams = {name: _stream(name, sources, epoch) for name in epoch.state["streams"]}
    for output in _outputs(streams):
        if f"unread {output.name}" in epoch.snapshot.tables:
            output.unread = epoch.snapshot.tables[f"unread {output.name}"].cast(output.schema).to_batches()
    return store, sources, streams, [_group(kept, streams) for kept in epoch.state["groups"]]


def _empty(store: CheckpointStore) -> CheckpointStore:
    if store.epochs():
        raise ForeignState(
            f"{store.location} holds a checkpoint already, and this session did not begin with it. Go on "
            f"with lj.Session.restore({store.location!r}), or choose an empty folder."
        )
    return store


def _outputs(streams: Mapping[str, Stream]) -> Iterator[Output]:
    for stream in streams.values():
        yield from stream.outputs.values()


def _stream(name: str, sources: Mapping[str, SessionSource], epoch: Epoch) -> Stream:
    kept = epoch.state["streams"][name]
    query = plan_stream(parse_stream(kept["text"]), {one: source.query for one, source in sources.items()})
    stream = Stream(name, kept["text"], query)
    if plan_identity(stream.physical).fingerprint != kept["plan"]:
        raise ForeignState(
            f"stream {name!r} was written with another meaning of its query: a user function, or the version "
            f"of laminar_jit, has changed since. Restore with the one that wrote it.\n{kept['text']}"
        )
    tables = {inner: epoch.snapshot.tables[f"state {name} {inner}"] for inner in kept["tables"]}
    stream.open(Snapshot(tables, kept["state"]))
    return stream


def _group_state(group: StreamGroup) -> dict[str, Any]:
    return {
        "streams": [stream.name for stream in group.streams],
        "began": group.began,
        "rows": group.driver.rows,
        "max_ts": int(group.run.state[words.MAX_TS]),
        "counters": group.run.counters(),
    }


def _group(kept: Mapping[str, Any], streams: Mapping[str, Stream]) -> StreamGroup:
    group = StreamGroup([streams[name] for name in kept["streams"]], kept["began"])
    group.run.state[words.MAX_TS] = kept["max_ts"]
    for name, at in words.COUNTERS.items():
        group.run.state[at] = kept["counters"][name]
    group.open(kept["rows"])
    return group
