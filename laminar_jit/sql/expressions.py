"""SQL expressions as expressions of the Python API."""

from __future__ import annotations

import decimal
import difflib
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from .. import functions as lj
from ..compiler.binding import bind
from ..errors import PlanError, TypeMismatch, UnknownColumn
from ..expressions import Expr, col, lift, lit
from ..plan import Schema, find_column
from ..types import DataType
from .dialect import interval_text, to_text
from .functions import FUNCTIONS, constant_of
from .registered import known_udf

#: Types whose PostgreSQL name is not one of ours.
_TYPE_NAMES = {
    "TIMESTAMPTZ": "timestamp[us, UTC]",
    "TIMESTAMPLTZ": "timestamp[us, UTC]",
    "TIMESTAMPNTZ": "timestamp",
    "FLOAT": "float32",
    "CHAR": "string",
    "NCHAR": "string",
    "NVARCHAR": "string",
}


class NotOnRings(Exception):
    """Why the rings do not run a clause; another route may. Never seen by users."""


class Scope:
    """The columns an expression may name. *aliases*: what may stand before the point."""

    def __init__(self, schema: Schema, aliases: frozenset[str] = frozenset()) -> None:
        self.schema = schema
        self.aliases = aliases

    def resolve(self, column: exp.Column) -> str:
        """The schema's name of *column*: as written, or without regard to case when it is not quoted."""
        table = column.table
        if table and table.lower() not in self.aliases:
            known = ", ".join(sorted(self.aliases)) or "none"
            raise UnknownColumn(f"no table {table!r} here to take {to_text(column)} from; known: {known}.")
        name = column.name
        if name in self.schema:
            return name
        if not column.this.args.get("quoted"):
            found = [known for known in self.schema if known.lower() == name.lower()]
            if len(found) > 1:
                raise PlanError(
                    f"column {name} could be any of {', '.join(found)}; write the one you mean in "
                    "double quotes."
                )
            if found:
                return found[0]
            near = difflib.get_close_matches(name.lower(), [known.lower() for known in self.schema], n=1)
            if near:
                name = name.lower()
        find_column(self.schema, name)
        raise UnknownColumn(f"no column {name!r} here.")  # find_column has raised already

    def shown(self, column: exp.Column) -> str:
        """What an output column that is *column* is called."""
        return self.resolve(column)


def translate(expression: exp.Expr, scope: Scope) -> Expr:
    """*expression* over the columns of *scope*."""
    return _Translator(scope).visit(expression)


class _Translator:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit(self, node: exp.Expr) -> Expr:
        unread = [name for name, given in node.args.items() if given and name not in _READ]
        if unread:
            # A part of the grammar that no visitor looks at must not change the answer in silence.
            raise NotOnRings(f"{to_text(node)} ({unread[0]}) is not available on the rings")
        found = self._visit(node)
        return found.apply("not") if node.args.get("negate") else found

    def _visit(self, node: exp.Expr) -> Expr:
        visitor = _VISITORS.get(type(node))
        if visitor is not None:
            return visitor(self, node)
        operation = _BINARY.get(type(node))
        if operation is not None:
            return self.visit(node.this).apply(operation, self.visit(node.expression))
        raise NotOnRings(f"{_clause(node)} is not available on the rings")

    def column(self, node: exp.Column) -> Expr:
        if isinstance(node.this, exp.Star):
            raise PlanError("* stands alone in the select list, not inside an expression.")
        return col(self._scope.resolve(node))

    def literal(self, node: exp.Literal) -> Expr:
        text = str(node.this)
        if node.is_string:
            return lit(text)
        return lit(int(text)) if text.isdigit() else lit(float(text))

    def paren(self, node: exp.Paren) -> Expr:
        return self.visit(node.this)

    def negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            text = f"-{node.this.this}"
            return lit(int(text)) if text[1:].isdigit() else lit(float(text))
        return -self.visit(node.this)

    def divide(self, node: exp.Div) -> Expr:
        left, right = self.visit(node.this), self.visit(node.expression)
        kinds = [bind(side, self._scope.schema).type for side in (left, right)]
        # As in PostgreSQL: between integers the quotient is cut off, and an interval stays one.
        if kinds[1].is_integer and (kinds[0].is_integer or kinds[0].name == "duration"):
            return left // right
        return left / right

    def is_(self, node: exp.Is) -> Expr:
        inner = self.visit(node.this)
        if isinstance(node.expression, exp.Null):
            return inner.is_null()
        if isinstance(node.expression, exp.Boolean):
            return inner.eq_missing(lit(bool(node.expression.this)))
        raise NotOnRings(f"IS {to_text(node.expression)} is not available on the rings")

    def between(self, node: exp.Between) -> Expr:
        return self.visit(node.this).between(self.visit(node.args["low"]), self.visit(node.args["high"]))

    def in_(self, node: exp.In) -> Expr:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise NotOnRings("IN (SELECT …) is a subquery in an expression")
        inner = self.visit(node.this)
        values = [self.visit(value) for value in node.expressions]
        if all(value.operation == "literal" for value in values):
            return inner.is_in(values)
        return lj.any_of(*(inner.apply("equal", value) for value in values))

    def like(self, node: exp.Like | exp.ILike) -> Expr:
        pattern = constant_of(self.visit(node.expression), "LIKE", "pattern")
        strings = self.visit(node.this).str
        return strings.like(pattern) if isinstance(node, exp.Like) else strings.ilike(pattern)

    def case(self, node: exp.Case) -> Expr:
        operand = None if node.this is None else self.visit(node.this)
        parts: list[Expr] = []
        for branch in node.args["ifs"]:
            condition = self.visit(branch.this)
            parts.append(condition if operand is None else operand.apply("equal", condition))
            parts.append(self.visit(branch.args["true"]))
        default = node.args.get("default")
        return Expr("case", (*parts, lift(None) if default is None else self.visit(default)))

    def cast(self, node: exp.Cast) -> Expr:
        kind = data_type(node.args["to"])
        inner = node.this
        if kind.name == "decimal" and isinstance(inner, exp.Literal):
            return lit(decimal.Decimal(str(inner.this))).cast(kind)
        return self.visit(inner).cast(kind)

    def extract(self, node: exp.Extract) -> Expr:
        return lj.extract(node.this.name.lower(), self.visit(node.expression))

    def interval(self, node: exp.Interval) -> Expr:
        return lj.interval(interval_text(node))

    def substring(self, node: exp.Substring) -> Expr:
        arguments = [node.args.get("start") or exp.Literal.number(1), node.args.get("length")]
        start, length = (None if each is None else self.visit(each) for each in arguments)
        return self.visit(node.this).str.substr(start, length)

    def trim(self, node: exp.Trim) -> Expr:
        side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
        characters = node.args.get("expression")
        arguments = [node.this] if characters is None else [node.this, characters]
        return FUNCTIONS[side](*(self.visit(argument) for argument in arguments))

    def position(self, node: exp.StrPosition) -> Expr:
        return FUNCTIONS["strpos"](self.visit(node.this), self.visit(node.args["substr"]))

    def call(self, node: exp.Anonymous) -> Expr:
        name = str(node.this).lower()
        builder = FUNCTIONS.get(name) or known_udf(name)
        if builder is None:
            raise NotOnRings(f"function {name} is not available on the rings")
        arguments = [self.visit(argument) for argument in node.expressions]
        try:
            return builder(*arguments)
        except TypeError as problem:
            raise TypeMismatch(
                f"{to_text(node)}: {name} does not take {len(arguments)} argument(s) ({problem})."
            ) from None


def _clause(node: exp.Expr) -> str:
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return "a subquery in an expression"
    if isinstance(node, exp.Window):
        return f"the window function {to_text(node)}"
    return to_text(node)


def data_type(node: exp.DataType) -> DataType:
    """The type a CAST names."""
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    if name in _TYPE_NAMES:
        return DataType.parse(_TYPE_NAMES[name])
    if name == "DECIMAL":
        digits = [int(str(parameter.this.this)) for parameter in node.expressions]
        if not digits:
            raise PlanError(
                "DECIMAL has no digits; write DECIMAL(10, 2), at most 18 of them in an aggregate."
            )
        return DataType("decimal", digits[0], digits[1] if len(digits) > 1 else 0)
    return DataType.parse(name.lower())


#: Every part of a node that a visitor reads, or that says nothing about its value.
_READ = frozenset(
    (
        *(
            "this",
            "expression",
            "expressions",
            "negate",
            "low",
            "high",
            "ifs",
            "true",
            "default",
            "to",
            "unit",
        ),
        *("start", "length", "position", "substr", "is_string", "table", "typed", "safe", "_type"),
    )
)

_BINARY: dict[type[Any], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "modulo",
    exp.Pow: "power",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.And: "and",
    exp.Or: "or",
    exp.NullSafeEQ: "equal_missing",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
    exp.DPipe: "concat",
}

_VISITORS: dict[type[Any], Callable[[_Translator, Any], Expr]] = {
    exp.Column: _Translator.column,
    exp.Literal: _Translator.literal,
    exp.Boolean: lambda _, node: lit(bool(node.this)),
    exp.Null: lambda _, node: lit(None),
    exp.Paren: _Translator.paren,
    exp.Neg: _Translator.negative,
    exp.Div: _Translator.divide,
    exp.Not: lambda self, node: self.visit(node.this).apply("not"),
    exp.NullSafeNEQ: lambda self, node: self.visit(node.this).ne_missing(self.visit(node.expression)),
    exp.BitwiseNot: lambda self, node: self.visit(node.this).bit_not(),
    exp.RegexpLike: lambda self, node: FUNCTIONS["regexp_like"](
        self.visit(node.this), self.visit(node.expression)
    ),
    exp.Is: _Translator.is_,
    exp.Between: _Translator.between,
    exp.In: _Translator.in_,
    exp.Like: _Translator.like,
    exp.ILike: _Translator.like,
    exp.Case: _Translator.case,
    exp.Cast: _Translator.cast,
    # A cast that does not fit is NULL here in either spelling.
    exp.TryCast: _Translator.cast,
    exp.Extract: _Translator.extract,
    exp.Interval: _Translator.interval,
    exp.Substring: _Translator.substring,
    exp.Trim: _Translator.trim,
    exp.StrPosition: _Translator.position,
    exp.Anonymous: _Translator.call,
}
