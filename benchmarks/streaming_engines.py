"""One streaming engine in a process of its own: the tumbling sum and count, again and again, when told.

    python -P benchmarks/streaming_engines.py ENGINE EVENTS.arrow WINDOW_MICROSECONDS

Run by the Python that has the engine, which needs pyarrow and nothing of this
project. Lines come in: ``run``, or ``result PATH``, which writes what the last run
gave. A JSON object a line goes out: first the engine's version, then the number of
rows of each answer.

Each engine gets the better end: events come in the form it takes fastest, made
before the clock runs, and its watermark trails so far behind that nothing is late.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

COLUMNS = ("window_start", "key", "total", "n")
SLACK_SECONDS = 100_000
PATIENCE_SECONDS = 60.0

#: Runs the aggregate once. The result has a length and becomes a table by the engine's second function.
Run = Callable[[], Any]
Engine = tuple[Run, Callable[[Any], pa.Table]]


def in_python(events: pa.Table, window: int) -> Engine:
    """A loop over a dict: no engine, but what any of them has to beat."""
    times, keys, values = (events[name].to_pylist() for name in ("ts", "key", "value"))

    def run() -> dict[tuple[int, int], list[Any]]:
        groups: dict[tuple[int, int], list[Any]] = {}
        for ts, key, value in zip(times, keys, values):
            group = groups.get((ts - ts % window, key))
            if group is None:
                groups[ts - ts % window, key] = [value, 1]
            else:
                group[0] += value
                group[1] += 1
        return groups

    def table(groups: dict[tuple[int, int], list[Any]]) -> pa.Table:
        return _table_of([(start, key, *group) for (start, key), group in groups.items()])

    return run, table


def in_bytewax(events: pa.Table, window: int) -> Engine:
    """Rows as tuples, as many a step as run fastest."""
    import bytewax.operators as operators
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing
    from bytewax.testing import TestingSink, TestingSource, run_main

    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    length = datetime.timedelta(microseconds=window)
    rows = [
        (str(key), (epoch + datetime.timedelta(microseconds=ts), value))
        for ts, key, value in zip(*(events[name].to_pylist() for name in ("ts", "key", "value")))
    ]

    def add(group: list[Any], row: tuple[Any, float]) -> list[Any]:
        group[0] += row[1]
        group[1] += 1
        return group

    def merged(left: list[Any], right: list[Any]) -> list[Any]:
        return [left[0] + right[0], left[1] + right[1]]

    def run() -> list[Any]:
        results: list[Any] = []
        flow = Dataflow("totals")
        keyed = operators.input("events", flow, TestingSource(rows, batch_size=10_000))
        # The clock of the machine moves this watermark, too: wait long, or a slow run has late rows.
        clock = windowing.EventClock(lambda row: row[0], datetime.timedelta(seconds=SLACK_SECONDS))
        windower = windowing.TumblingWindower(length=length, align_to=epoch)
        windowed = windowing.fold_window(
            "sum", keyed, clock, windower, lambda: [0.0, 0], add, merged, ordered=False
        )
        operators.output("totals", windowed.down, TestingSink(results))
        run_main(flow)
        return results

    def table(results: list[Any]) -> pa.Table:
        return _table_of([(number * window, int(key), *group) for key, (number, group) in results])

    return run, table


def in_pathway(events: pa.Table, window: int) -> Engine:
    """The whole input as one commit."""
    import pathway as pw

    source = pw.debug.table_from_pandas(events.to_pandas())
    windows = source.windowby(
        source.ts, window=pw.temporal.tumbling(duration=window), instance=source.key
    ).reduce(
        window_start=pw.this._pw_window_start,
        key=pw.this._pw_instance,
        total=pw.reducers.sum(pw.this.value),
        n=pw.reducers.count(),
    )

    def table(frame: Any) -> pa.Table:
        return pa.Table.from_pandas(frame[list(COLUMNS)], preserve_index=False)

    return lambda: pw.debug.table_to_pandas(windows, include_id=False), table


def in_laminardb(events: pa.Table, window: int) -> Engine:
    """Record batches; times in milliseconds, the unit of its integer times.

    Batches that wait are processed together under the watermark of the newest, and rows
    that were in time are gone: its watermark trails behind all of the input.
    """
    import laminardb
    import pyarrow.compute as pc

    times = pc.divide(events["ts"], 1000)
    batches = events.set_column(0, "ts", times).combine_chunks().to_batches(max_chunksize=1 << 17)
    closing = pa.record_batch(
        {"ts": [pc.max(times).as_py() + 2000 * SLACK_SECONDS], "key": [0], "value": [0.0]}
    )
    groups = pa.table({"window": pc.divide(events["ts"], window), "key": events["key"]})
    expected = groups.group_by(["window", "key"]).aggregate([]).num_rows
    interval = f"INTERVAL '{window // 1_000_000}' SECOND"

    def run() -> pa.Table:
        with laminardb.open("totals") as connection:
            connection.execute(
                "CREATE SOURCE events (ts BIGINT, key BIGINT, value DOUBLE, "
                f"WATERMARK FOR ts AS ts - INTERVAL '{SLACK_SECONDS}' SECOND)"
            )
            connection.execute(
                f"CREATE STREAM totals AS SELECT CAST(tumble(ts, {interval}) AS BIGINT) AS window_start, "
                f"key, SUM(value) AS total, COUNT(*) AS n FROM events GROUP BY key, tumble(ts, {interval}) "
                "EMIT ON WINDOW CLOSE"
            )
            subscription = connection.subscribe_stream("totals")
            connection.start()
            for batch in (*batches, closing):
                connection.insert("events", batch)
            results: list[pa.Table] = []
            while sum(map(len, results)) < expected:
                results.append(subscription.next_timeout(int(1000 * PATIENCE_SECONDS)).arrow())
            return pa.concat_tables(results)

    def table(results: pa.Table) -> pa.Table:
        return results.set_column(0, "window_start", pc.multiply(results["window_start"], 1000))

    return run, table


def in_flink(events: pa.Table, window: int) -> Engine:
    """Flink SQL over Arrow data handed to Java once; no Python on the path of a row."""
    import pyarrow.compute as pc
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import Schema, StreamTableEnvironment

    streams = StreamExecutionEnvironment.get_execution_environment()
    streams.set_parallelism(1)
    tables = StreamTableEnvironment.create(streams)
    tables.get_config().set_local_timezone("UTC")
    milliseconds = events.set_column(0, "ts", pc.divide(events["ts"], 1000)).to_pandas()
    schema = (
        Schema.new_builder()
        .column_by_expression("event_time", "TO_TIMESTAMP_LTZ(ts, 3)")
        .watermark("event_time", f"event_time - INTERVAL '{window // 1_000_000}' SECOND")
        .build()
    )
    stream = tables.to_data_stream(tables.from_pandas(milliseconds))
    tables.create_temporary_view("events", tables.from_data_stream(stream, schema))
    query = tables.sql_query(
        "SELECT window_start, `key`, SUM(`value`) AS total, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE events, "
        f"DESCRIPTOR(event_time), INTERVAL '{window // 1_000_000}' SECOND)) "
        "GROUP BY window_start, window_end, `key`"
    )

    def table(frame: Any) -> pa.Table:
        starts = pa.array(frame["window_start"]).cast(pa.timestamp("us")).cast(pa.int64())
        return pa.Table.from_pandas(frame, preserve_index=False).set_column(0, "window_start", starts)

    return query.to_pandas, table


#: By name: how to build it, the module that tells whether it is there, and its distribution.
ENGINES: dict[str, tuple[Callable[[pa.Table, int], Engine], str, str]] = {
    "Python dict": (in_python, "pyarrow", "pyarrow"),
    "LaminarDB": (in_laminardb, "laminardb", "laminardb"),
    "Bytewax": (in_bytewax, "bytewax", "bytewax"),
    "Pathway": (in_pathway, "pathway", "pathway"),
    "Flink": (in_flink, "pyflink", "apache-flink"),
}


def _table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows)], names=COLUMNS)


def main(name: str, path: str, window: str) -> None:
    # Engines print what they like: answers keep the pipe, everything else goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**found: Any) -> None:
        print(json.dumps(found), file=answers, flush=True)

    build, _, distribution = ENGINES[name]
    with pa.ipc.open_file(Path(path).read_bytes()) as reader:
        events = reader.read_all()
    run, table = build(events, int(window))
    answer(version=importlib.metadata.version(distribution))
    outcome: Any = None
    for line in sys.stdin:
        command, _, target = line.strip().partition(" ")
        if command == "run":
            outcome = run()
            answer(rows=len(outcome))
        else:
            result = table(outcome).select(COLUMNS)
            with pa.ipc.new_file(target, result.schema) as writer:
                writer.write_table(result)
            answer(rows=result.num_rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
