"""Statements of a session: sources and streams by name, rows by value.

The grammar around a query is small and read here from tokens; queries, types and
expressions inside it go to the dialect's parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ..durations import parse_duration
from ..errors import PlanError, UnsupportedClause
from ..types import DataType
from .dialect import Laminar, Statement, _parse_tokens, interval_text, parse, parse_expression, to_text
from .expressions import data_type

_EXPECTED = (
    "CREATE SOURCE, CREATE STREAM … AS SELECT, INSERT INTO … VALUES, DROP SOURCE, DROP STREAM, "
    "SHOW SOURCES, SHOW STREAMS, EXPLAIN SELECT or EXPLAIN [ANALYZE] STREAM"
)


@dataclass(frozen=True)
class CreateSource:
    """*columns*: name, type, whether NULL may stand in it. *delay* in microseconds."""

    name: str
    columns: tuple[tuple[str, DataType, bool], ...]
    time: str | None
    delay: int | None


@dataclass(frozen=True)
class CreateStream:
    """*text* is the query as it was written."""

    name: str
    text: str
    statement: Statement


@dataclass(frozen=True)
class InsertValues:
    """Each value as the text of its literal; None is NULL. *columns* is empty where none were named."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Drop:
    """*kind* is SOURCE or STREAM."""

    kind: str
    name: str


@dataclass(frozen=True)
class Show:
    """*kind* is SOURCES or STREAMS."""

    kind: str


@dataclass(frozen=True)
class Explain:
    """The query whose plan is asked for."""

    statement: Statement


@dataclass(frozen=True)
class ExplainStream:
    """A stream whose plan is asked for; with *analyze* also what it has done so far."""

    name: str
    analyze: bool


SessionStatement = CreateSource | CreateStream | InsertValues | Drop | Show | Explain | ExplainStream

_COMMENTS = re.compile(r"^(\s+|--[^\n]*(\n|$)|/\*.*?\*/)+", re.DOTALL)
_NAME = r'("(?:[^"]|"")+"|[A-Za-z_]\w*)'


def parse_session(text: str) -> SessionStatement:
    """*text*, one statement of a session."""
    if not isinstance(text, str):
        raise PlanError(f"sql was given {text!r} of type {type(text).__name__}; expected a statement.")
    text = _COMMENTS.sub("", text.strip().rstrip(";").rstrip())
    if _match(r"create\s+source\b", text):
        return _create_source(text)
    if _match(r"create\s+stream\b", text):
        return _create_stream(text)
    if _match(r"insert\b", text):
        return _insert(text)
    if found := _match(rf"drop\s+(source|stream)\s+{_NAME}$", text):
        return Drop(found[1].upper(), _unquoted(found[2]))
    if found := _match(r"show\s+(sources|streams)$", text):
        return Show(found[1].upper())
    if _match(r"explain\b", text):
        return _explain(text)
    if _match(r"(select|with)\b", text):
        raise UnsupportedClause(
            "a SELECT by itself is not available in a session, whose streams have no end. Name it with "
            "CREATE STREAM name AS SELECT … and read(name); over a table use lj.sql(…, name=table)."
        )
    raise UnsupportedClause(f"a session cannot run {text[:60]!r}; expected {_EXPECTED}.")


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.match(pattern, text, re.IGNORECASE | re.DOTALL)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _create_stream(text: str) -> CreateStream:
    found = _match(rf"create\s+stream\s+{_NAME}\s+as\s+", text)
    if found is None:
        raise PlanError(f"{text[:60]!r} cannot be read; expected CREATE STREAM name AS SELECT …")
    query = text[found.end() :]
    return CreateStream(_unquoted(found[1]), query, parse_stream(query))


def parse_stream(text: str) -> Statement:
    """*text*, what stands behind CREATE STREAM … AS."""
    statement = parse(text)
    if statement.explain:
        raise PlanError("EXPLAIN stands before CREATE STREAM, not inside it.")
    return statement


def _explain(text: str) -> Explain | ExplainStream:
    if found := _match(rf"explain\s+(analy[sz]e\s+)?stream\s+{_NAME}$", text):
        return ExplainStream(_unquoted(found[2]), bool(found[1]))
    if _match(r"explain\s+analy[sz]e\b", text):
        raise UnsupportedClause(
            "EXPLAIN ANALYZE of a query would run it to the end of a source that has none. Name it with "
            "CREATE STREAM name AS SELECT … and ask EXPLAIN ANALYZE STREAM name, which tells what it "
            "has done so far."
        )
    found = _match(r"explain\s+(?=create\b)", text)
    return Explain(parse(text) if found is None else _create_stream(text[found.end() :]).statement)


# ── CREATE SOURCE ───────────────────────────────────────────────────────────────────


def _create_source(text: str) -> CreateSource:
    found = _match(rf"create\s+source\s+{_NAME}\s*\((.*)\)$", text)
    if found is None:
        raise PlanError(
            f"{text[:60]!r} cannot be read; expected CREATE SOURCE name (column type, …, "
            "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)."
        )
    name = _unquoted(found[1])
    columns: list[tuple[str, DataType, bool]] = []
    watermark: tuple[str, int] | None = None
    for item in _items(found[2]):
        if _match(r"watermark\s+for\b", item):
            if watermark is not None:
                raise PlanError(f"source {name!r} has two watermarks; expected one.")
            watermark = _watermark(item)
        else:
            columns.append(_column(item))
    names = [column for column, _, _ in columns]
    twice = [column for column in names if names.count(column) > 1]
    if twice:
        raise PlanError(f"source {name!r} declares column {twice[0]!r} twice.")
    if watermark is None:
        return CreateSource(name, tuple(columns), None, None)
    time = _spelled(watermark[0], names, f"WATERMARK FOR {watermark[0]}")
    return CreateSource(name, tuple(columns), time, watermark[1])


def _items(inner: str) -> list[str]:
    """What stands between the commas that are in no parentheses, without comments."""
    items: list[list[str]] = [[]]
    depth = 0
    for token in Laminar().tokenize(inner):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.COMMA and not depth:
            items.append([])
        else:
            items[-1].append(inner[token.start : token.end + 1])
    return [" ".join(words) for words in items]


def _column(item: str) -> tuple[str, DataType, bool]:
    found = _match(rf"{_NAME}\s+(.+?)(\s+not\s+null|\s+null)?$", item)
    if found is None:
        raise PlanError(f"column {item!r} cannot be read; expected a name and a type, as in price DOUBLE.")
    cast = parse_expression(f"CAST(NULL AS {found[2]})")
    required = (found[3] or "").split()[:1]
    nullable = not (required and required[0].upper() == "NOT")
    return _unquoted(found[1]), data_type(cast.args["to"]), nullable


def _watermark(item: str) -> tuple[str, int]:
    found = _match(rf"watermark\s+for\s+{_NAME}\s+as\s+(.+)$", item)
    if found is not None:
        time = _unquoted(found[1])
        behind = parse_expression(found[2])
        column = behind.this if isinstance(behind, exp.Sub) else behind
        if isinstance(column, exp.Column) and column.name.lower() == time.lower():
            if not isinstance(behind, exp.Sub):
                return time, 0
            delay = parse_duration(interval_text(behind.expression))
            if delay >= 0:
                return time, delay
    raise PlanError(
        f"{item!r} is no watermark this engine can keep; expected WATERMARK FOR ts AS ts, or "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, over one column."
    )


def _spelled(name: str, known: list[str], where: str) -> str:
    found = [one for one in known if one.lower() == name.lower()]
    if name not in known and len(found) != 1:
        raise PlanError(f"{where} names no one column; there are {', '.join(known)}.")
    return name if name in known else found[0]


# ── INSERT ──────────────────────────────────────────────────────────────────────────


def _insert(text: str) -> InsertValues:
    tree = _parse_tokens(Laminar(), Laminar().tokenize(text), text)
    values = tree.expression if isinstance(tree, exp.Insert) else None
    if not isinstance(values, exp.Values):
        raise UnsupportedClause(
            "INSERT takes VALUES in a session: INSERT INTO name (columns) VALUES (…), (…). For tables and "
            "files there is session.insert(name, table)."
        )
    unread = [key for key, given in tree.args.items() if given and key not in ("this", "expression")]
    if unread:
        raise UnsupportedClause(f"{unread[0].upper()} is not available in INSERT INTO … VALUES.")
    target = tree.this
    columns = tuple(one.name for one in target.expressions) if isinstance(target, exp.Schema) else ()
    table = target.this if isinstance(target, exp.Schema) else target
    rows = tuple(tuple(_literal(value) for value in row.expressions) for row in values.expressions)
    return InsertValues(table.name, columns, rows)


def _literal(node: exp.Expr) -> str | None:
    inner = node.this if isinstance(node, exp.Cast) else node
    sign = ""
    if isinstance(inner, exp.Neg):
        sign, inner = "-", inner.this
    if isinstance(inner, exp.Null) and not sign:
        return None
    if isinstance(inner, exp.Boolean) and not sign:
        return "true" if inner.this else "false"
    if isinstance(inner, exp.Literal) and not (sign and inner.is_string):
        return f"{sign}{inner.this}"
    raise UnsupportedClause(
        f"{to_text(node)} is not available in VALUES; expected a constant such as 5, 2.5, 'text', true, "
        "NULL or TIMESTAMP '2026-01-01 00:00:00'."
    )
