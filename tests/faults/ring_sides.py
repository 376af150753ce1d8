"""The two sides of a ring as processes that a failpoint ends: ``python -m tests.faults.ring_sides``.

The producer owns the ring and says its name; the consumer writes the numbers it
read to its output before it gives their slots back.
"""

from __future__ import annotations

import sys

from laminar_jit.errors import ProducerFenced
from laminar_jit.runtime.ring import EOF, WATERMARK, RingConsumer, RingProducer, create_ring
from tests.ring.rows import TEXT, push_text, text_in, text_of

CAPACITY = 8
HEAP_BYTES = 256
MARK_EVERY = 7
PUBLISH_EVERY = 3


def length_of(number: int) -> int:
    return number * 13 % 50


def send(producer: RingProducer, first: int, last: int) -> None:
    """Rows *first* to *last*, a watermark after every seventh, published by threes."""
    for number in range(first, last):
        while not push_text(producer, number, length_of(number)):
            producer.wait_for_room(1, min(HEAP_BYTES, 2 * length_of(number)))
        if number % PUBLISH_EVERY == 0:
            producer.publish()
        else:
            producer.offer()
        if number % MARK_EVERY == 0:
            producer.mark(WATERMARK, number)


def drain(consumer: RingConsumer, most: int = CAPACITY) -> tuple[list[int], list[int], bool]:
    """What can be read now: numbers of rows, values of watermarks, and whether the end came."""
    numbers, watermarks = [], []
    ready = consumer.peek() or consumer.peek_staged()
    mark = consumer.next_mark()
    count = min(consumer.rows_before(mark, ready), most)
    for view in consumer.views(count):
        for row in view:
            number = int(row["number"])
            assert text_in(consumer, row) == text_of(number, length_of(number))
            numbers.append(number)
    print(*numbers, file=sys.stderr, flush=True) if numbers else None
    consumer.release(count)
    if mark is not None and mark.position == consumer.position:
        consumer.pop_mark()
        if mark.kind == EOF:
            return numbers, watermarks, True
        watermarks.append(mark.value)
    return numbers, watermarks, False


def main() -> None:
    side, name, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if side == "consumer":
        with RingConsumer.attach(name) as consumer:
            ended = False
            while not ended:
                consumer.wait()
                _, _, ended = drain(consumer, most=2)
        return
    if name == "own":
        with create_ring(TEXT, CAPACITY, heap_bytes=HEAP_BYTES) as ring, ring.producer() as producer:
            print(ring.name, flush=True)
            sys.stdin.readline()
            send(producer, 0, last)
            producer.mark(EOF, 0)
        return
    with RingProducer.attach(name) as producer:
        try:
            send(producer, 0, last)
            producer.mark(EOF, 0)
        except ProducerFenced as error:
            print("fenced:", error, flush=True)


if __name__ == "__main__":
    main()
