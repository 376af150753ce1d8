"""The data every benchmark runs over. Append only: a changed generator makes old figures incomparable.

Seeds are fixed. Float values are multiples of 1/4, so their sums are exact in
any order and results can be compared bit for bit.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

BATCH_ROWS = 1 << 17
EVENTS_PER_SECOND = 20_000
DISORDER_MICROSECONDS = 2_000_000
SHORTEST_SECONDS = 20
START = 1_700_000_000_000_000


def event_times(count: int, generator: np.random.Generator) -> np.ndarray:
    """Microseconds, 20 000 events a second, each up to two seconds out of order."""
    seconds = max(count / EVENTS_PER_SECOND, SHORTEST_SECONDS)
    steady = np.arange(count, dtype=np.int64) * int(seconds * 1e6) // count
    return START + steady + generator.integers(0, DISORDER_MICROSECONDS, count)


def _table(columns: dict[str, np.ndarray | pa.Array]) -> pa.Table:
    columns["ts"] = pa.array(columns["ts"], pa.timestamp("us"))
    batch = pa.record_batch(columns)
    starts = range(0, batch.num_rows, BATCH_ROWS)
    return pa.Table.from_batches([batch.slice(start, BATCH_ROWS) for start in starts])


@functools.lru_cache(maxsize=1)
def keyed_events(count: int, keys: int) -> pa.Table:
    """``ts``, ``key`` (int64, uniform), ``value`` (float64)."""
    generator = np.random.default_rng(20_241_101)
    return _table(
        {
            "ts": event_times(count, generator),
            "key": generator.integers(0, keys, count),
            "value": generator.integers(0, 4000, count) / 4,
        }
    )


@functools.lru_cache(maxsize=1)
def trades(count: int) -> pa.Table:
    """``ts``, ``key``, ``price``, ``quantity``: four numeric columns; ``price < 70`` holds for 70 %."""
    generator = np.random.default_rng(20_241_102)
    return _table(
        {
            "ts": event_times(count, generator),
            "key": generator.integers(0, 10_000, count),
            "price": generator.integers(0, 400, count) / 4,
            "quantity": generator.integers(1, 100, count),
        }
    )


CITIES = (
    "Amsterdam",
    "Berlin",
    "Copenhagen",
    "Dublin",
    "Edinburgh",
    "Frankfurt am Main",
    "Geneva",
    "Hamburg",
)


@functools.lru_cache(maxsize=1)
def visits(count: int) -> pa.Table:
    """``ts``, ``city`` (string, 8 of them), ``user`` (string, 10 000 of them), ``amount`` (float64)."""
    generator = np.random.default_rng(20_241_103)
    users = pa.array([f"user-{number:05}" for number in range(10_000)])
    return _table(
        {
            "ts": event_times(count, generator),
            "city": pa.array(CITIES).take(pa.array(generator.integers(0, len(CITIES), count))),
            "user": users.take(pa.array(generator.integers(0, len(users), count))),
            "amount": generator.integers(0, 4000, count) / 4,
        }
    )
