"""The rest of SQL, on DataFusion: the same meaning where it can have it, refused by name where not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from sqlglot import exp

from ..errors import PlanError
from .datafusion_aggregates import FLOATS, arrow_cast
from .datafusion_functions import ScalarFunctions
from .datafusion_scopes import refusal
from .datafusion_translation import translate_query
from .dialect import Laminar
from .names import output_name
from .prepared import PreparedInput


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
        query = _spelled(query, spelling)
        import datafusion

        self.functions = ScalarFunctions()
        context = datafusion.SessionContext()
        for name in reads:
            context.register_record_batches(name, [[_empty(schemas[name])]])
        translate_query(query, context, self.functions)
        self.text = query.sql(dialect=Laminar)
        try:
            context.sql(self.text)
        except Exception as problem:
            raise refusal(problem, self.text) from problem

    def run(self, tables: Mapping[str, Any], *, strict: bool = False) -> pa.Table:
        """The result over *tables*, in the types the rings would give."""
        import datafusion

        config = datafusion.SessionConfig()
        if re.search("(array|string)_agg", self.text, re.IGNORECASE):
            # Several threads would hand over the rows in any order.
            config = config.with_target_partitions(1)
        context = datafusion.SessionContext(config)
        for name, table in tables.items():
            floats = any(pa.types.is_floating(field.type) for field in table.schema)
            registered = f"{name} as given" if floats else name
            if isinstance(table, pyarrow.dataset.Dataset):
                context.register_dataset(registered, table)
            else:
                context.register_record_batches(registered, [table.to_batches() or [_empty(table.schema)]])
            if floats:
                context.register_view(name, context.sql(_with_one_nan(registered, table.schema)))
        self.functions.register_all(context)
        try:
            result = context.sql(self.text).to_arrow_table()
        except Exception as problem:
            self.functions.check(strict=False)
            raise refusal(problem, self.text) from problem
        self.functions.check(strict=strict)
        return _plain(result)

    def describe(self) -> list[str]:
        """Its text there, and what the functions in it are."""
        return [self.text, *(f"{name} = {shown}" for name, shown in self.functions.shown.items())]


def _with_one_nan(name: str, schema: pa.Schema) -> str:
    """A query for the rows of table *name* with one NaN: it has a sign, by which DataFusion would group."""
    columns: list[exp.Expr] = []
    for field in schema:
        column: exp.Expr = exp.column(field.name, quoted=True)
        kind = FLOATS.get(str(field.type))
        if kind is not None:
            is_nan = exp.Anonymous(this="isnan", expressions=[column.copy()])
            nan = arrow_cast(exp.Literal.string("NaN"), kind)
            column = exp.Case(ifs=[exp.If(this=is_nan, true=nan)], default=column)
        columns.append(exp.alias_(column, field.name, quoted=True))
    return exp.select(*columns).from_(exp.to_identifier(name, quoted=True)).sql(dialect=Laminar)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _named(query: exp.Expr) -> exp.Expr:
    """Output columns named as on the rings, in subqueries too."""
    for select in query.find_all(exp.Select):
        items = []
        for item in select.expressions:
            is_star = isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
            if isinstance(item, exp.Alias | exp.Column) or (is_star and not isinstance(item, exp.Anonymous)):
                items.append(item)
            else:
                items.append(exp.alias_(item, output_name(item), quoted=True))
        select.set("expressions", items)
    return query


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
