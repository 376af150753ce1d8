"""Rows for ring tests: a plain one, and one with a string in the ring's heap."""

from __future__ import annotations

import numpy as np

from laminar_jit.runtime.ring import RingConsumer, RingProducer

PLAIN = np.dtype([("number", "<i8"), ("half", "<f8"), ("code", "<u4"), ("flag", "?")], align=True)
TEXT = np.dtype([("number", "<i8"), ("_heap", "<i8"), ("place", "<i8"), ("length", "<i8")])


def plain_rows(first: int, count: int) -> np.ndarray:
    rows = np.zeros(count, PLAIN)
    rows["number"] = np.arange(first, first + count)
    rows["half"] = rows["number"] / 2
    rows["code"] = rows["number"] % 1000
    rows["flag"] = rows["number"] % 3 == 0
    return rows


def text_of(number: int, length: int) -> bytes:
    return bytes((number * 31 + k) % 251 for k in range(length))


def text_place(producer: RingProducer, length: int) -> int:
    """Where a string of *length* goes: contiguous, past the heap's end if it must."""
    place = producer.heap_position
    left = producer.heap_bytes - (place & producer.heap_mask)
    return place if length <= left else place + left


def fits_text(producer: RingProducer, length: int) -> bool:
    place = text_place(producer, length)
    return producer.claim(1) == 1 and place + length - producer.heap_position <= producer.heap_room()


def push_text(producer: RingProducer, number: int, length: int) -> bool:
    """Stage one row with a string, the way a Ring 0 kernel does; False when it does not fit."""
    if not fits_text(producer, length):
        return False
    place = text_place(producer, length)
    at = place & producer.heap_mask
    producer.heap[at : at + length] = np.frombuffer(text_of(number, length), np.uint8)
    producer.slots[producer.position & producer.mask] = (number, place + length, place, length)
    producer.stage(1, heap_position=place + length)
    return True


def text_in(consumer: RingConsumer, row: np.void) -> bytes:
    at = int(row["place"]) & consumer.heap_mask
    return consumer.heap[at : at + int(row["length"])].tobytes()
