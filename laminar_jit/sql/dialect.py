"""The SQL dialect: PostgreSQL's grammar with windows, EMIT and lateness.

Functions stay as they were written (``exp.Anonymous``), so that one table of
ours, and not the parser, says what each of them means. What stands after the
query, ``EMIT``, ``ALLOW LATENESS`` and ``LATE DATA TO``, is cut off before
parsing: ``FROM bids EMIT`` would otherwise name the table's alias.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from ..errors import PlanError, UnsupportedClause

#: Functions whose arguments have a grammar of their own; all others are name(argument, …).
_WITH_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")

WINDOW_KINDS = ("TUMBLE", "HOP", "SESSION", "CUMULATE")


class LaminarParser(PostgresParser):
    """PostgreSQL's parser without its opinions about functions."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS = {name: PostgresParser.FUNCTION_PARSERS[name] for name in _WITH_SYNTAX}


class Laminar(Postgres):
    """The dialect's name for sqlglot is ``laminar``."""

    Parser = LaminarParser


@dataclass(frozen=True)
class Statement:
    """A parsed query and what was said about its results."""

    query: exp.Query
    emit: str | None
    lateness: exp.Expr | None
    late_to: str | None
    explain: bool
    #: Whether EXPLAIN also runs the query.
    analyze: bool = False


def parse(text: str) -> Statement:
    """*text*, one SELECT with or without EXPLAIN before it, as a tree."""
    if not isinstance(text, str):
        raise PlanError(
            f"sql was given {text!r} of type {type(text).__name__}; expected the text of a query."
        )
    # The tokenizer takes what follows EXPLAIN for one string, so it must not see the word.
    asked = re.match(r"\s*explain\b(\s+analy[sz]e\b)?", text, re.IGNORECASE)
    if asked is not None:
        text = " " * asked.end() + text[asked.end() :]
    dialect = Laminar()
    try:
        tokens = dialect.tokenize(text)
    except sqlglot.errors.TokenError as problem:
        raise PlanError(f"the query cannot be read: {problem}") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    body, tail = _cut(_prepared(tokens))
    if not body:
        raise PlanError("the query is empty; expected SELECT …")
    query = _parse_tokens(dialect, body, text)
    if not isinstance(query, exp.Query):
        raise UnsupportedClause(
            f"{type(query).__name__.upper()} is not available in lj.sql; expected SELECT, WITH or EXPLAIN."
        )
    emit, lateness, late_to = _Tail(tail, text).read()
    analyze = asked is not None and asked[1] is not None
    return Statement(query, emit, lateness, late_to, asked is not None, analyze)


def parse_expression(text: str) -> exp.Expr:
    """*text* as one expression."""
    query = _parse_tokens(Laminar(), Laminar().tokenize(f"SELECT {text}"), text)
    return query.expressions[0]


def to_text(expression: exp.Expr) -> str:
    """*expression* as the dialect writes it."""
    return expression.sql(dialect=Laminar)


def _parse_tokens(dialect: Laminar, tokens: list[Token], text: str) -> Any:
    try:
        parsed = dialect.parser().parse(tokens, text)
    except sqlglot.errors.ParseError as problem:
        detail = problem.errors[0] if problem.errors else {}
        where = f"line {detail.get('line')}, column {detail.get('col')}, near {detail.get('highlight')!r}"
        raise PlanError(f"the query cannot be read at {where}: {detail.get('description')}") from None
    if len(parsed) != 1 or parsed[0] is None:
        raise PlanError(f"expected one query, got {len(parsed)}; run them one by one.")
    return parsed[0]


def _word(tokens: Sequence[Token], at: int) -> str:
    if at >= len(tokens) or tokens[at].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return ""
    return tokens[at].text.upper()


def _prepared(tokens: list[Token]) -> list[Token]:
    """SESSION(…) as a function, and TUMBLE(TABLE bids, …) without its TABLE."""
    prepared: list[Token] = []
    for at, token in enumerate(tokens):
        before = [_word(tokens, at - 1), _word(tokens, at - 2)] if at >= 2 else ["", ""]
        if _word(tokens, at) == "TABLE" and before[0] == "(" and before[1] in WINDOW_KINDS:
            continue
        if _word(tokens, at) == "SESSION" and _word(tokens, at + 1) == "(":
            token = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
        prepared.append(token)
    return prepared


_CLAUSES = {
    "EMIT": ("ON", "EVERY", "CHANGES", "FINAL"),
    "ALLOW": ("LATENESS",),
    "LATE": ("DATA",),
}


def _cut(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    depth = 0
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif _word(tokens, at + 1) in _CLAUSES.get(_word(tokens, at), ()):
            if depth:
                raise UnsupportedClause(
                    f"{_word(tokens, at)} {_word(tokens, at + 1)} stands inside parentheses; it is about the "
                    "results of the whole query. Write it at the end."
                )
            return tokens[:at], tokens[at:]
        elif _is_strategy(tokens, at):
            raise UnsupportedClause(f"EMIT {_word(tokens, at + 1)} is not available; expected {_STRATEGIES}.")
    return tokens, []


def _is_strategy(tokens: list[Token], at: int) -> bool:
    """Whether EMIT is no name of a column but begins a strategy, which then does not exist."""
    if _word(tokens, at) != "EMIT" or not at or tokens[at - 1].token_type == TokenType.ALIAS:
        return False
    after = _word(tokens, at + 1)
    return after.isalpha() and after not in ("FROM", "AS", "AND", "OR", "IS")


_STRATEGIES = "EMIT ON WINDOW CLOSE, ON WATERMARK, ON UPDATE, EVERY INTERVAL '5' SECOND, CHANGES or FINAL"


class _Tail:
    """Reads the clauses after the query, in any order, each once."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def read(self) -> tuple[str | None, exp.Expr | None, str | None]:
        emit: str | None = None
        lateness: exp.Expr | None = None
        late_to: str | None = None
        while self._at < len(self._tokens):
            if emit is None and self._take("EMIT"):
                emit = self._strategy()
            elif lateness is None and self._take("ALLOW", "LATENESS"):
                lateness = self._interval()
            elif late_to is None and self._take("LATE", "DATA", "TO"):
                late_to = self._name()
            else:
                raise PlanError(
                    f"unexpected {self._rest()!r} after the query; expected EMIT …, ALLOW LATENESS "
                    "INTERVAL …, "
                    "LATE DATA TO name, each at most once."
                )
        return emit, lateness, late_to

    def _strategy(self) -> str:
        for words in (
            ("ON", "WINDOW", "CLOSE"),
            ("ON", "WATERMARK"),
            ("ON", "UPDATE"),
            ("CHANGES",),
            ("FINAL",),
        ):
            if self._take(*words):
                return " ".join(words).lower()
        if self._take("EVERY"):
            return f"every {interval_text(self._interval())}"
        raise UnsupportedClause(f"EMIT {self._rest()} is not available; expected {_STRATEGIES}.")

    def _interval(self) -> exp.Expr:
        first = self._at
        if not self._take("INTERVAL"):
            raise PlanError(f"expected INTERVAL '5' SECOND, got {self._rest()!r}.")
        while self._at < len(self._tokens) and _word(self._tokens, self._at) not in _CLAUSES:
            self._at += 1
        start, end = self._tokens[first].start, self._tokens[self._at - 1].end
        return parse_expression(self._text[start : end + 1])

    def _name(self) -> str:
        if self._at >= len(self._tokens):
            raise PlanError("LATE DATA TO has no name; expected LATE DATA TO late_rows.")
        self._at += 1
        return self._tokens[self._at - 1].text

    def _take(self, *words: str) -> bool:
        if all(_word(self._tokens, self._at + number) == word for number, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def _rest(self) -> str:
        if self._at >= len(self._tokens):
            return "nothing"
        return self._text[self._tokens[self._at].start : self._tokens[-1].end + 1]


def interval_text(expression: exp.Expr) -> str:
    """A constant INTERVAL as ``parse_duration`` and ``lj.interval`` read it: ``'10 second'``."""
    negative = isinstance(expression, exp.Neg)
    inner = expression.this if negative else expression
    if isinstance(inner, exp.Interval) and isinstance(inner.this, exp.Literal):
        number = str(inner.this.this).strip()
        unit = inner.args.get("unit")
        if unit is not None and not re.search("[A-Za-z]", number):
            number = f"{number} {unit.name.lower()}"
        if negative:
            number = number[1:] if number.startswith("-") else f"-{number}"
        return number
    raise PlanError(f"{to_text(expression)} is no constant interval; expected INTERVAL '10' SECOND.")
