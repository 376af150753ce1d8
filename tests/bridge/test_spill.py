"""Files of overflowing rows: written, read back in order, recovered, checked, removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laminar_jit.errors import SpillError
from laminar_jit.runtime import file_locks, spill, spill_format
from laminar_jit.runtime.rows import Field, RowLayout
from laminar_jit.runtime.spill import SpillReader, SpillWriter

NUMBERS = RowLayout((Field("value", "int64"),)).dtype
TEXTS = RowLayout((Field("text", "string"),)).dtype
PLENTY = 1 << 20


def rows_of(first: int, count: int) -> np.ndarray:
    rows = np.zeros(count, NUMBERS)
    rows["f0"] = np.arange(first, first + count)
    return rows


def take_all(reader: SpillReader, limit: int = 1 << 20) -> list[int]:
    """Every ready row's value, taken in steps of at most *limit*."""
    values: list[int] = []
    while ready := reader.ready():
        batch = reader.read(min(limit, ready))
        values += batch.rows["f0"].tolist()
        reader.take(len(batch))
    return values


def files(directory: Path) -> list[Path]:
    return [path for _, path in spill_format.list_files(directory)]


def test_rows_come_back_in_order_in_steps_of_any_size(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    reader = SpillReader(tmp_path, NUMBERS)
    for first in range(0, 100, 10):
        assert writer.append(rows_of(first, 10)) == 10
    assert writer.unread == reader.ready() == 100
    assert take_all(reader, limit=7) == list(range(100))
    assert writer.unread == 0
    reader.close()
    writer.close()


def test_strings_come_back_from_the_heap_of_their_record(tmp_path):
    writer = SpillWriter(tmp_path, TEXTS, PLENTY)
    reader = SpillReader(tmp_path, TEXTS)
    long = b"a string of more than twelve bytes"
    rows = np.zeros(2, TEXTS)
    rows["f0"]["head"] = len(long)
    rows["f0"]["rest"] = [0, 64]
    rows["_heap"] = [len(long), 64 + len(long)]
    heap = np.zeros(128, np.uint8)
    for start in (0, 64):
        heap[start : start + len(long)] = np.frombuffer(long, np.uint8)
    assert writer.append(rows, heap) == 2
    batch = reader.read(2)
    for row in batch.rows:
        at = int(row["f0"]["rest"]) & batch.heap_mask
        assert batch.heap[at : at + len(long)].tobytes() == long
    reader.take(2)
    reader.close()
    writer.close()


def test_a_file_that_was_read_is_removed(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, 8 * 4096)
    reader = SpillReader(tmp_path, NUMBERS)
    for first in range(0, 400, 50):
        writer.append(rows_of(first, 50))
    count = len(files(tmp_path))
    assert count > 2
    batch = reader.read(50)
    while batch.rows["f0"][0] < 200:
        reader.take(len(batch))
        batch = reader.read(50)
    writer.reclaim()
    assert 0 < len(files(tmp_path)) < count
    take_all(reader)
    writer.reclaim()
    assert files(tmp_path) == []
    assert writer.bytes_on_disk == 0
    writer.append(rows_of(400, 1))
    assert take_all(reader) == [400]
    reader.close()
    writer.close()
    assert files(tmp_path) == []


def test_the_files_never_exceed_the_limit(tmp_path):
    limit = 2000
    writer = SpillWriter(tmp_path, NUMBERS, limit)
    reader = SpillReader(tmp_path, NUMBERS)
    accepted = []
    for first in range(0, 300, 7):
        count = writer.append(rows_of(first, 7))
        accepted += range(first, first + count)
        assert sum(path.stat().st_size for path in files(tmp_path)) == writer.bytes_on_disk <= limit
    assert 40 < len(accepted) < 100
    # The newest are refused: what was accepted is a run from the start, up to the limit.
    assert accepted == list(range(len(accepted)))
    assert take_all(reader) == accepted
    assert writer.append(rows_of(0, 7)) == 7
    reader.close()
    writer.close()


def test_a_limit_of_zero_accepts_nothing(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, 0)
    assert writer.append(rows_of(0, 5)) == 0
    assert files(tmp_path) == []
    writer.close()


def test_a_restarted_writer_finds_exactly_the_unread_rest(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    reader = SpillReader(tmp_path, NUMBERS)
    for first in range(0, 100, 10):
        writer.append(rows_of(first, 10))
    reader.read(10)
    reader.take(10)
    reader.read(10)
    reader.take(3)
    reader.close()
    writer.close()

    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    assert writer.recovered == writer.unread == 87
    writer.append(rows_of(100, 5))
    reader = SpillReader(tmp_path, NUMBERS)
    assert take_all(reader) == list(range(13, 105))
    reader.close()
    writer.close()


def test_a_record_its_writer_did_not_finish_is_cut(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    writer.append(rows_of(0, 10))
    size = files(tmp_path)[0].stat().st_size
    torn = spill_format.make_record(size, 10, 5, NUMBERS.itemsize, bytes(5 * NUMBERS.itemsize), b"")
    writer.close()
    with open(files(tmp_path)[0], "ab") as file:
        file.write(torn.header() + bytes(40))

    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    assert writer.recovered == 10
    assert files(tmp_path)[0].stat().st_size == size
    reader = SpillReader(tmp_path, NUMBERS)
    assert take_all(reader) == list(range(10))
    reader.close()
    writer.close()


def damage(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize("where", ["header", "rows"])
def test_a_damaged_record_is_refused_on_restart_with_file_and_offset(tmp_path, where):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    writer.append(rows_of(0, 10))
    offset = files(tmp_path)[0].stat().st_size
    writer.append(rows_of(10, 10))
    writer.append(rows_of(20, 10))
    writer.close()
    path = files(tmp_path)[0]
    damage(path, offset if where == "header" else offset + 100)
    with pytest.raises(SpillError, match=rf"{path}, offset {offset}: row 10 "):
        SpillWriter(tmp_path, NUMBERS, PLENTY)


def test_a_record_damaged_under_a_live_reader_is_refused_with_file_and_offset(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    reader = SpillReader(tmp_path, NUMBERS)
    writer.append(rows_of(0, 10))
    offset = files(tmp_path)[0].stat().st_size
    writer.append(rows_of(10, 10))
    damage(files(tmp_path)[0], offset + 60)
    reader.take(len(reader.read(10)))
    with pytest.raises(SpillError, match=rf"{files(tmp_path)[0]}, offset {offset}: row 10 "):
        reader.read(10)
    reader.close()
    writer.close()


def test_a_missing_file_is_refused(tmp_path):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    writer.append(rows_of(0, 10))
    writer.close()
    files(tmp_path)[0].unlink()
    with pytest.raises(SpillError, match="up to number 0, but 10 were written"):
        SpillWriter(tmp_path, NUMBERS, PLENTY)


def test_rows_of_another_type_are_refused(tmp_path):
    SpillWriter(tmp_path, NUMBERS, PLENTY).close()
    with pytest.raises(SpillError, match="another type"):
        SpillWriter(tmp_path, TEXTS, PLENTY)


def test_a_directory_has_one_writer_and_one_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(file_locks, "_LOCK_SECONDS", 0.01)
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    reader = SpillReader(tmp_path, NUMBERS)
    with pytest.raises(SpillError, match="another live producer"):
        SpillWriter(tmp_path, NUMBERS, PLENTY)
    with pytest.raises(SpillError, match="another live consumer"):
        SpillReader(tmp_path, NUMBERS)
    writer.close()
    with pytest.raises(SpillError, match="a consumer still reads"):
        SpillWriter(tmp_path, NUMBERS, PLENTY)
    reader.close()


def test_a_disk_without_room_is_an_error_and_leaves_the_file_whole(tmp_path, monkeypatch):
    writer = SpillWriter(tmp_path, NUMBERS, PLENTY)
    writer.append(rows_of(0, 10))
    size = files(tmp_path)[0].stat().st_size

    def full(descriptor, parts, offset):
        spill.os.pwrite(descriptor, b"half", offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spill.os, "pwritev", full)
    with pytest.raises(SpillError, match=rf"offset {size}: .*No space left"):
        writer.append(rows_of(10, 10))
    monkeypatch.undo()
    assert writer.unread == 10
    assert files(tmp_path)[0].stat().st_size == size
    writer.append(rows_of(10, 10))
    reader = SpillReader(tmp_path, NUMBERS)
    assert take_all(reader) == list(range(20))
    reader.close()
    writer.close()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SpillError, match="cannot make the spill directory"):
        SpillWriter(tmp_path / "file", NUMBERS, PLENTY)
