"""The Nexmark queries q0 to q22, as SQL texts over ``person``, ``auction`` and ``bid``.

q13 also reads ``side_input``, a table of ``key`` and ``value``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import PlanError

_FOLDER = Path(__file__).with_name("nexmark_sql")

#: Their names, in order.
NAMES = tuple(f"q{number}" for number in range(23))

#: Keys of the side input: auctions are looked up modulo this.
SIDE_INPUT_KEYS = 10_000


def query_text(name: str) -> str:
    """The SQL of the query *name*, such as "q5"."""
    if name not in NAMES:
        raise PlanError(f"Nexmark has no query {name!r}; expected one of {NAMES[0]} to {NAMES[-1]}.")
    return (_FOLDER / f"{name}.sql").read_text()


def side_input() -> pa.Table:
    """The bounded table that q13 joins."""
    keys = np.arange(SIDE_INPUT_KEYS)
    return pa.table({"key": keys, "value": pa.array(keys).cast(pa.string())})
