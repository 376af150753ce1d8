from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from laminar_jit.kernels import atomics
from laminar_jit.kernels.jit import kernel

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


@kernel
def load_acquire(words, at):
    return atomics.load_acquire(words, at)


@kernel
def load_relaxed(words, at):
    return atomics.load_relaxed(words, at)


@kernel
def load_ordered(words, at):
    return atomics.load_ordered(words, at)


@kernel
def store_release(words, at, value):
    atomics.store_release(words, at, value)


@kernel
def store_relaxed(words, at, value):
    atomics.store_relaxed(words, at, value)


@kernel
def exchange(words, at, value):
    return atomics.exchange(words, at, value)


@kernel
def fetch_add(words, at, value):
    return atomics.fetch_add(words, at, value)


@kernel
def compare_exchange(words, at, expected, value):
    return atomics.compare_exchange(words, at, expected, value)


@kernel
def fenced_sum(words):
    first = words[0]
    atomics.fence()
    atomics.pause()
    return first + words[1]


@pytest.fixture
def words() -> np.ndarray:
    return np.array([11, 22, 33], np.int64)


@pytest.mark.kernels_logic
@pytest.mark.parametrize("load", [load_acquire, load_relaxed, load_ordered])
def test_loads_read_the_word_they_name(load, words: np.ndarray) -> None:
    assert [load(words, at) for at in range(3)] == [11, 22, 33]


@pytest.mark.kernels_logic
@pytest.mark.parametrize("store", [store_release, store_relaxed])
def test_stores_write_only_the_word_they_name(store, words: np.ndarray) -> None:
    store(words, 1, SMALLEST)
    assert words.tolist() == [11, SMALLEST, 33]


@pytest.mark.kernels_logic
def test_exchange_returns_what_stood_there(words: np.ndarray) -> None:
    assert exchange(words, 2, -1) == 33
    assert words.tolist() == [11, 22, -1]


@pytest.mark.kernels_logic
def test_fetch_add_returns_what_stood_there_and_wraps_around(words: np.ndarray) -> None:
    assert fetch_add(words, 0, 5) == 11
    words[1] = LARGEST
    assert fetch_add(words, 1, 1) == LARGEST
    assert words.tolist() == [16, SMALLEST, 33]


@pytest.mark.kernels_logic
def test_compare_exchange_changes_only_what_was_expected(words: np.ndarray) -> None:
    assert compare_exchange(words, 0, 12, 99) == 11
    assert words[0] == 11
    assert compare_exchange(words, 0, 11, 99) == 11
    assert words[0] == 99


@pytest.mark.kernels_logic
def test_fence_and_pause_change_nothing(words: np.ndarray) -> None:
    assert fenced_sum(words) == 33


@pytest.mark.parametrize(
    "unfit",
    [np.zeros(4, np.int32), np.zeros(4, np.uint64), np.zeros((2, 2), np.int64), np.zeros(8, np.int64)[::2]],
    ids=["narrow", "unsigned", "two-dimensional", "strided"],
)
def test_arrays_whose_words_would_be_misread_do_not_compile(unfit: np.ndarray) -> None:
    with pytest.raises(TypingError):
        load_acquire(unfit, 0)
    with pytest.raises(TypingError):
        exchange(unfit, 0, 1)


def test_a_read_only_array_can_be_loaded_from_but_not_stored_to(words: np.ndarray) -> None:
    words.flags.writeable = False
    assert load_acquire(words, 2) == 33
    with pytest.raises(TypingError):
        store_release(words, 2, 1)
    with pytest.raises(TypingError):
        compare_exchange(words, 2, 33, 1)


def test_a_number_that_is_no_integer_is_not_truncated(words: np.ndarray) -> None:
    for use in (
        lambda: load_acquire(words, 1.0),
        lambda: store_release(words, 1, 2.5),
        lambda: exchange(words, 1.0, 2),
        lambda: fetch_add(words, 1, 0.5),
        lambda: compare_exchange(words, 1, 22.0, 1),
    ):
        with pytest.raises(TypingError):
            use()
    assert words.tolist() == [11, 22, 33]
