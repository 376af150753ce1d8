"""Partitions as one stream: no row is late in it that is not late in its partition, and none is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.sources.alignment import Alignment
from laminar_jit.sources.kafka_messages import Piece, Place

NOTHING = -(10**9)

#: Event times of one partition; None is NULL. Two rows of the same message share an offset.
partitions = st.lists(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 60)), st.booleans()), max_size=12),
    min_size=1,
    max_size=4,
)


def piece(partition: int, rows: list[tuple], offsets: list[int], end: int) -> Piece:
    times = pa.array([time for time, _ in rows], pa.timestamp("us"))
    sender = pa.array([partition] * len(rows), pa.int64())
    batch = pa.record_batch({"ts": times, "p": sender, "o": pa.array(offsets, pa.int64())})
    return Piece(batch, np.array(offsets, np.int64), end)


@given(given_rows=partitions, data=st.data())
def test_rows_meet_the_event_time_of_their_own_partition(given_rows: list, data: st.DataObject) -> None:
    alignment = Alignment("ts")
    left, offsets = [], []
    for rows in given_rows:
        numbers: list[int] = []
        for _, same in rows:
            numbers.append(numbers[-1] if same and numbers else (numbers[-1] + 1 if numbers else 0))
        left.append(list(zip(rows, numbers)))
        offsets.append(numbers)
    begun = [0] * len(left)
    position = dict.fromkeys(range(len(left)), Place(0))
    taken: list[tuple] = []

    def take(holding: list[int]) -> None:
        ready = alignment.take(holding)
        if ready is None:
            return
        batch, ends = ready
        taken.extend(
            zip(batch["p"].to_pylist(), batch["o"].to_pylist(), batch["ts"].cast("int64").to_pylist())
        )
        position.update(ends)
        # What was handed out is all that stands before the positions, and nothing behind them.
        for number, rows in enumerate(left):
            place = position[number]
            before = [offset for _, offset in rows if offset < place.offset] + [place.offset] * place.rows
            assert [offset for p, offset, _ in taken if p == number] == before

    while any(begun[number] < len(rows) for number, rows in enumerate(left)):
        open_ones = [number for number, rows in enumerate(left) if begun[number] < len(rows)]
        number = data.draw(st.sampled_from(open_ones))
        end = data.draw(st.integers(begun[number] + 1, len(left[number])))
        while end < len(left[number]) and left[number][end][1] == left[number][end - 1][1]:
            end += 1  # a piece holds whole messages
        part = left[number][begun[number] : end]
        numbers = [offset for _, offset in part]
        alignment.add(number, piece(number, [row for row, _ in part], numbers, numbers[-1] + 1))
        begun[number] = end
        take(list(range(len(left))))
    take([])
    assert alignment.empty
    assert sorted(one[:2] for one in taken) == sorted(
        (number, offset) for number, rows in enumerate(left) for _, offset in rows
    )
    # The oracle: how far a row is behind the latest row before it, here and in its own partition.
    whole, own = NOTHING, dict.fromkeys(range(len(left)), NOTHING)
    for number, _, time in taken:
        if time is not None:
            assert max(whole - time, 0) <= max(own[number] - time, 0)
            whole, own[number] = max(whole, time), max(own[number], time)


def test_nothing_is_handed_out_before_every_partition_has_been_seen() -> None:
    alignment = Alignment("ts")
    alignment.add(0, piece(0, [(5, False), (50, False)], [0, 1], 2))
    assert alignment.take([0, 1]) is None
    alignment.add(1, piece(1, [(7, False)], [0], 1))
    batch, ends = alignment.take([0, 1])
    assert batch["ts"].cast("int64").to_pylist() == [5, 7]
    assert ends == {0: (1, 0), 1: (1, 0)} and alignment.rows(0) == 1
    # An idle partition holds nothing back.
    assert alignment.take([0])[1] == {0: (2, 0)}
