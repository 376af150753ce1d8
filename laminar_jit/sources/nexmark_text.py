"""The texts of the Nexmark tables: small fixed vocabularies, looked up by number.

The same for every seed: what a seed decides is which entry a row gets.
"""

from __future__ import annotations

import functools
import itertools
import random
import string

import pyarrow as pa

FIRST_NAMES = (
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
)  # fmt: skip
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
    "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

#: Channels beside the hot ones, each with an address of its own.
COLD_CHANNELS = 10_000

#: Entries of each vocabulary of made-up texts.
ENTRIES = 1024


@functools.cache
def names() -> pa.Array:
    """First and last names."""
    return pa.array([" ".join(pair) for pair in itertools.product(FIRST_NAMES, LAST_NAMES)])


@functools.cache
def cities() -> pa.Array:
    """Cities of people."""
    return pa.array(CITIES)


@functools.cache
def states() -> pa.Array:
    """States of people; the city says nothing about it, as in the original."""
    return pa.array(STATES)


@functools.cache
def email_addresses() -> pa.Array:
    """Addresses such as ``abc@defg.com``."""
    draw = random.Random("email addresses")
    return pa.array([f"{_word(draw, 7)}@{_word(draw, 5)}.com" for _ in range(ENTRIES)])


@functools.cache
def credit_cards() -> pa.Array:
    """Four groups of four digits."""
    draw = random.Random("credit cards")
    return pa.array([" ".join(f"{draw.randrange(10_000):04}" for _ in range(4)) for _ in range(ENTRIES)])


@functools.cache
def channels() -> pa.Array:
    """The hot channels, then ``channel-0`` and its like."""
    return pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(COLD_CHANNELS))])


@functools.cache
def urls() -> pa.Array:
    """The address of each channel; all but the hot ones name a channel in it."""
    draw = random.Random("urls")
    addresses = [
        f"https://www.nexmark.com/{_word(draw, 5)}/{_word(draw, 5)}/{_word(draw, 5)}/item.htm?query=1"
        for _ in range(len(HOT_CHANNELS) + COLD_CHANNELS)
    ]
    hot = len(HOT_CHANNELS)
    named = [f"{url}&channel_id={draw.randrange(1 << 31)}" for url in addresses[hot:]]
    return pa.array([*addresses[:hot], *named])


@functools.cache
def fillers(kind: str, length: int) -> pa.Array:
    """Texts of lower-case letters and blanks, of *length* letters give or take a fifth."""
    draw = random.Random(f"{kind} {length}")
    letters = string.ascii_lowercase + " "
    lengths = [draw.randint(length * 4 // 5, length * 6 // 5) for _ in range(ENTRIES)]
    return pa.array(["".join(draw.choices(letters, k=each)).strip() or "x" for each in lengths])


def _word(draw: random.Random, length: int) -> str:
    return "".join(draw.choices(string.ascii_lowercase + "_", k=length))
