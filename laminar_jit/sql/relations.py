"""What FROM gives: a query, and how its columns may be named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import PlanError, UnknownColumn
from ..plan import Schema
from ..query import Query
from .dialect import to_text
from .expressions import Scope
from .windows import WindowCall


@dataclass(frozen=True)
class Relation:
    """A query, the names its columns may be taken from, and a table function's window.

    *names*, of a join, has the columns of each table by the name they are written with, and the column
    of the query that each is.
    """

    query: Query
    aliases: frozenset[str]
    window: WindowCall | None = None
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        if self.names:
            return JoinScope(self.query.plan.schema, self.names)
        return Scope(self.query.plan.schema, self.aliases)

    def over(self, query: Query) -> Relation:
        """The same names over a later step of the query."""
        return dataclasses.replace(self, query=query)


class JoinScope(Scope):
    """The columns of several tables side by side."""

    def __init__(self, schema: Schema, names: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(schema, frozenset(names))
        self._names = names

    def resolve(self, column: exp.Column) -> str:
        """The column of the joined rows that *column* means."""
        tables = [column.table.lower()] if column.table else list(self._names)
        if column.table and tables[0] not in self._names:
            raise UnknownColumn(
                f"no table {column.table!r} here to take {to_text(column)} from; known: "
                f"{', '.join(self._names)}."
            )
        found = []
        for table in tables:
            written = self._names[table]
            matches = [column.name] if column.name in written else []
            if not matches and not column.this.args.get("quoted"):
                matches = [name for name in written if name.lower() == column.name.lower()]
            found += [(table, written[name]) for name in matches]
        if len({name for _, name in found}) > 1:
            raise PlanError(
                f"column {to_text(column)} could be that of {' or '.join(table for table, _ in found)}; "
                "say which, as in a.x."
            )
        if not found:
            known = ", ".join(f"{table}.{name}" for table in tables for name in self._names[table])
            raise UnknownColumn(f"no column {to_text(column)} here. Known columns: {known}.")
        return found[0][1]

    def shown(self, column: exp.Column) -> str:
        """As it is written: the prefix of a table is no part of an output's name."""
        self.resolve(column)
        return column.name


def aliases(name: str) -> frozenset[str]:
    """The table name that may stand before a column's."""
    return frozenset([name.lower()]) if name else frozenset()
