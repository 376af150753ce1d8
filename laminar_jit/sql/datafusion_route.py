"""The rest of SQL, on DataFusion: the same meaning where it can have it, refused by name where not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from sqlglot import exp

from ..errors import PlanError, UnsupportedClause
from .dialect import Laminar, to_text
from .names import output_name
from .prepared import PreparedInput

#: Functions that mean the same there. What is missing differs: to_char there gives its pattern back.
SAME = frozenset(
    (
        *(
            "abs",
            "btrim",
            "ceil",
            "coalesce",
            "concat",
            "date_trunc",
            "exp",
            "floor",
            "greatest",
            "least",
            "left",
        ),
        *("ln", "lower", "ltrim", "nullif", "replace", "reverse", "right", "round", "rtrim", "split_part"),
        *("sqrt", "starts_with", "substr", "upper", "regexp_like"),
        *("count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "stddev"),
        *("covar_samp", "covar_pop", "corr", "bool_and", "bool_or", "median", "array_agg", "string_agg"),
        *("bit_and", "bit_or", "bit_xor", "first_value", "last_value", "percentile_cont"),
        *(
            "row_number",
            "rank",
            "dense_rank",
            "percent_rank",
            "cume_dist",
            "ntile",
            "lag",
            "lead",
            "nth_value",
        ),
    )
)

#: These give int32 there and int64 here.
_WIDENED = frozenset(("length", "char_length", "character_length", "octet_length", "strpos"))

_PARTS = frozenset(("year", "quarter", "month", "week", "day", "doy", "dow", "hour", "minute", "second"))

_TEXTS = ("text", "varchar", "char", "nchar", "nvarchar")

#: Nodes that sqlglot counts as functions but that are syntax, the same on both routes.
_SYNTAX = (
    exp.Cast,
    exp.Case,
    exp.If,
    exp.And,
    exp.Or,
    exp.Xor,
    exp.Extract,
    exp.Substring,
    exp.Trim,
    exp.StrPosition,
)


class DataFusionQuery:
    """A query for DataFusion over *prepared* inputs and the results of other parts."""

    def __init__(
        self, query: exp.Expr, prepared: Mapping[str, PreparedInput], parts: Mapping[str, pa.Schema]
    ) -> None:
        names = {name.lower(): name for name in [*prepared, *parts]}
        schemas = {name: given.schema for name, given in prepared.items()} | dict(parts)
        query = _named(query.copy())
        used = [table.name for table in query.find_all(exp.Table)]
        for name in used:
            if name.lower() not in names:
                raise PlanError(
                    f"no input {name!r}: the query was given {', '.join(prepared) or 'none'}. "
                    f"Pass it by name, as in lj.sql(…, {name}=table)."
                )
        reads = list(dict.fromkeys(names[name.lower()] for name in used))
        self.inputs = [name for name in reads if name in prepared]
        spelling = dict(names)
        for name in reads:
            for column in schemas[name].names:
                spelling.setdefault(column.lower(), column)
        decimals = any(pa.types.is_decimal(each.type) for name in reads for each in schemas[name])
        translated = query.transform(lambda node: _translated(node, decimals))
        self.text = _spelled(translated, spelling).sql(dialect=Laminar)

    def run(self, tables: Mapping[str, Any]) -> pa.Table:
        """The result over *tables*, in the types the rings would give."""
        import datafusion

        context = datafusion.SessionContext()
        for name, table in tables.items():
            if isinstance(table, pyarrow.dataset.Dataset):
                context.register_dataset(name, table)
            else:
                batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
                context.register_record_batches(name, [batches])
        try:
            result = context.sql(self.text).to_arrow_table()
        except Exception as problem:
            # DataFusion's errors have no class of their own.
            raise PlanError(f"DataFusion cannot run {self.text}: {problem}") from problem
        return _plain(result)


def _named(query: exp.Expr) -> exp.Expr:
    """Output columns named as on the rings."""
    if isinstance(query, exp.Select):
        items = []
        for item in query.expressions:
            is_star = isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
            if is_star or isinstance(item, exp.Alias | exp.Column):
                items.append(item)
            else:
                items.append(exp.alias_(item, output_name(item), quoted=True))
        query.set("expressions", items)
    elif isinstance(query, exp.SetOperation):
        _named(query.this)
    return query


def _translated(node: exp.Expr, decimals: bool) -> exp.Expr:
    if isinstance(node, exp.Div | exp.Mod):
        if decimals and isinstance(node, exp.Div):
            raise UnsupportedClause(
                f"{to_text(node)}: division over inputs with decimals means another thing on DataFusion. "
                "Cast to DOUBLE PRECISION in a subquery on the rings, or leave the decimal columns out."
            )
        # Division by zero is NULL here, and an error or infinity there.
        divisor = node.expression
        if not (isinstance(divisor, exp.Anonymous) and str(divisor.this) == "NULLIF"):
            node.set(
                "expression",
                exp.Anonymous(this="NULLIF", expressions=[divisor.copy(), exp.Literal.number(0)]),
            )
        return node
    if isinstance(node, exp.TryCast) or (isinstance(node, exp.Cast) and node.args["to"].is_type(*_TEXTS)):
        # A timestamp has a T in its text there; and TRY_CAST would be written as CAST.
        raise UnsupportedClause(
            f"{to_text(node)} is not available on DataFusion with the meaning it has on the rings. "
            "Compute it in a query of its own, and use its result here."
        )
    if isinstance(node, exp.Extract):
        part = node.this.name.lower()
        if part == "epoch":
            return node
        if part not in _PARTS:
            raise UnsupportedClause(f"EXTRACT({part.upper()} …) is not available on DataFusion.")
        return node if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), "bigint")
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name in _WIDENED:
            return node if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), "bigint")
        if name not in SAME:
            raise UnsupportedClause(
                f"function {name} is not available on DataFusion with the meaning it has on the rings. "
                "Compute it in a query of its own, without joins, sorts and subqueries, and use "
                "its result here."
            )
    elif isinstance(node, exp.Func) and not isinstance(node, _SYNTAX):
        raise UnsupportedClause(f"{to_text(node)} is not available.")
    return node


def _spelled(query: exp.Expr, spelling: dict[str, str]) -> exp.Expr:
    """Unquoted names as the inputs spell them, and quoted: DataFusion would fold them to lower case."""
    for identifier in query.find_all(exp.Identifier):
        if not identifier.args.get("quoted"):
            name = identifier.name
            identifier.set("this", spelling.setdefault(name.lower(), name))
            identifier.set("quoted", True)
    return query


def _plain(table: pa.Table) -> pa.Table:
    fields = []
    for each in table.schema:
        kind = each.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
            kind = pa.string()
        elif pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", kind.tz)
        fields.append(pa.field(each.name, kind))
    return table.cast(pa.schema(fields))
