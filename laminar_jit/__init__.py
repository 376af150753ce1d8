"""Streaming SQL and Python pipelines, compiled by Numba to machine code.

    import laminar_jit as lj

Public names are loaded when they are first used, so that a Ring 1 process, which
needs only ``laminar_jit.runtime``, does not load the planner.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aggregates import Aggregate as Aggregate
    from .checkpoint import Checkpoint as Checkpoint
    from .display import show as show
    from .display import to_polars as to_polars
    from .expressions import Expr as Expr
    from .expressions import col as col
    from .expressions import duration as duration
    from .expressions import lit as lit
    from .expressions import when as when
    from .late import drop as drop
    from .late import reassign as reassign
    from .late import side_output as side_output
    from .query import Query as Query
    from .query import source as source
    from .ranking import asc as asc
    from .ranking import dense_rank as dense_rank
    from .ranking import desc as desc
    from .ranking import rank as rank
    from .ranking import row_number as row_number
    from .sessions import Session as Session
    from .sinks.kafka import kafka_sink as kafka_sink
    from .sources.kafka import kafka as kafka
    from .sql import explain_sql as explain_sql
    from .sql import register as register
    from .sql import unregister as unregister
    from .user_aggregates import aggregate as aggregate
    from .user_functions import udf as udf
    from .windows import cumulate as cumulate
    from .windows import hop as hop
    from .windows import session as session
    from .windows import tumble as tumble

_HOMES = {
    "aggregates": (
        "Aggregate",
        "approx_count_distinct",
        "approx_percentile",
        "arg_max",
        "arg_min",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "corr",
        "count",
        "count_distinct",
        "covar_pop",
        "covar_samp",
        "first",
        "last",
        "max",
        "median",
        "min",
        "mode",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "var_pop",
        "var_samp",
    ),
    "checkpoint": ("Checkpoint",),
    "display": ("show", "to_polars"),
    "expressions": ("Expr", "col", "duration", "lit", "when"),
    "functions": (
        "abs",
        "all_of",
        "any_of",
        "ceil",
        "coalesce",
        "concat",
        "date_format",
        "date_trunc",
        "exp",
        "extract",
        "floor",
        "from_epoch",
        "greatest",
        "hash",
        "if_else",
        "interval",
        "least",
        "ln",
        "months",
        "null_if",
        "power",
        "round",
        "sign",
        "sqrt",
        "to_char",
        "years",
    ),
    "late": ("drop", "reassign", "side_output"),
    "query": ("Query", "source"),
    "ranking": ("asc", "dense_rank", "desc", "rank", "row_number"),
    "user_aggregates": ("aggregate",),
    "sessions": ("Session",),
    "sql": ("explain_sql", "register", "unregister"),
    "sinks.kafka": ("kafka_sink",),
    "sources.kafka": ("kafka",),
    "user_functions": ("udf",),
    "windows": ("cumulate", "hop", "session", "tumble"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted([*_HOME_OF, "sql"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "sql":
        # Both a package and a function: its module is called (docs/decisions/060).
        return importlib.import_module(".sql", __name__)
    if name in ("spark", "testing"):
        return importlib.import_module(f".{name}", __name__)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'laminar_jit' has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF, "sql"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext laminar_jit``: tables are shown as tables. Importing laminar_jit in IPython does it too."""
    importlib.import_module(".display", __name__).register_formatters(shell)


if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()) is not None:
    load_ipython_extension(_shell)
