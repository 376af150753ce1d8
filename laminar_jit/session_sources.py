"""The sources of a session: what they are declared to hold, and the rows no stream has seen yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from .errors import PlanError, SchemaMismatch
from .inputs import open_input
from .plan import Source, arrow_schema, find_column
from .query import source
from .sql.ddl import CreateSource, InsertValues


class SessionSource:
    """A source, the statement that made it, and the rows that wait for a tick."""

    def __init__(self, text: str, create: CreateSource) -> None:
        self.text = text
        fields = [pa.field(name, kind.to_arrow(), nullable) for name, kind, nullable in create.columns]
        delay = None if create.delay is None else f"{create.delay}us"
        self.query = source(create.name, pa.schema(fields), time=create.time, delay=delay)
        #: What results are declared to hold is nullable, what is inserted is as it was declared.
        self.schema = arrow_schema(self.plan.schema)
        self.pending: list[pa.RecordBatch] = []
        #: Batches that streams have taken: streams created at different numbers have seen different rows.
        self.batches = 0
        #: Rows ever inserted.
        self.rows = 0

    @property
    def plan(self) -> Source:
        assert isinstance(self.query.plan, Source)
        return self.query.plan

    def insert(self, rows: Any) -> None:
        """Add *rows* to those that wait, all of them or none."""
        if isinstance(rows, list) and not any(hasattr(row, "__arrow_c_array__") for row in rows):
            rows = self._from_rows(rows)
        batches = [
            batch for batch in open_input(self.plan, rows, self.schema.names).batches if batch.num_rows
        ]
        for batch in batches:
            for name, (_, nullable) in self.plan.schema.items():
                missing = batch.column(name).null_count
                if missing and not nullable:
                    raise SchemaMismatch(
                        f"column {name!r} of source {self.plan.name!r} is declared NOT NULL, but "
                        f"{missing} of the {batch.num_rows} rows have NULL there. Nothing was inserted."
                    )
        self.pending += [batch.select(self.schema.names) for batch in batches]
        self.rows += sum(batch.num_rows for batch in batches)

    def _from_rows(self, rows: Sequence[Any]) -> pa.Table:
        """Dicts by column name, where what is not named is NULL; or tuples of all columns."""
        if all(isinstance(row, dict) for row in rows):
            unknown = {name for row in rows for name in row} - set(self.schema.names)
            if unknown:
                find_column(self.plan.schema, min(map(str, unknown)))
            return self._table([row.get(name) for row in rows] for name in self.schema.names)
        for row in rows:
            if not isinstance(row, tuple | list) or len(row) != len(self.schema):
                raise SchemaMismatch(
                    f"a row for source {self.plan.name!r} is {row!r}; expected in the whole list dicts by "
                    f"column name, or in the whole list tuples of {', '.join(self.schema.names)}."
                )
        return self._table([row[at] for row in rows] for at in range(len(self.schema)))

    def _table(self, columns: Iterable[list[Any]]) -> pa.Table:
        arrays = []
        for field, values in zip(self.schema, columns, strict=True):
            try:
                arrays.append(pa.array(values, field.type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
                raise SchemaMismatch(
                    f"rows for source {self.plan.name!r} do not fit column {field.name!r}, which is declared "
                    f"{field.type}: {problem}. Nothing was inserted."
                ) from None
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def values(self, insert: InsertValues) -> pa.Table:
        """The rows of INSERT INTO … VALUES, whose constants are read as the columns' types are written."""
        names = [find_name(name, self.schema.names, "column") for name in insert.columns]
        names = names or self.schema.names
        wrong = [row for row in insert.rows if len(row) != len(names)]
        if wrong or len(set(names)) != len(names):
            shown = f"({', '.join(str(value) for value in wrong[0])})" if wrong else "of columns named twice"
            raise PlanError(f"VALUES {shown} does not fit the columns ({', '.join(names)}).")
        arrays = []
        for field in self.schema:
            at = names.index(field.name) if field.name in names else None
            texts = [None if at is None else row[at] for row in insert.rows]
            try:
                arrays.append(pa.array(texts, pa.string()).cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
                raise SchemaMismatch(
                    f"VALUES for column {field.name!r} do not fit its type {field.type}: {problem}. "
                    "Use session.insert for types that have no constant."
                ) from None
        return pa.Table.from_arrays(arrays, schema=self.schema)


def find_name(name: str, known: Iterable[str], kind: str) -> str:
    """*name* as it is spelled in *known*; without quotes case does not matter."""
    known = list(known)
    if name in known:
        return name
    found = [one for one in known if one.lower() == name.lower()]
    if len(found) != 1:
        raise PlanError(f"no {kind} {name!r} here; known: {', '.join(known) or 'none'}.")
    return found[0]
