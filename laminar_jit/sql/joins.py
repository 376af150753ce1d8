"""JOIN of two inputs that stand in the same windows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ..compiler.binding import bind
from ..compiler.typed import Node
from ..errors import LaminarError
from ..expressions import Expr, col
from ..plan import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, Plan, Project, find_column
from ..plan_joins import WindowJoin, window_of
from ..query import Query
from ..windows import Cumulate, Session
from .dialect import to_text
from .expressions import NotOnRings, translate
from .relations import Relation

_KINDS = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


@dataclass(frozen=True)
class _Condition:
    """ON, taken apart: pairs of expressions that must be equal, and the rest."""

    keys: list[tuple[exp.Expr, exp.Expr]]
    bounds: set[str]
    rest: list[exp.Expr]


def join(left: Relation, right: Relation, node: exp.Join) -> Relation:
    """*left* JOIN *right*, or ``NotOnRings`` with the reason."""
    how = _how(node)
    window, other = window_of(left.query.plan), window_of(right.query.plan)
    if window is None or other is None or isinstance(window, Session):
        raise NotOnRings(
            "JOIN is on the rings where both inputs stand in the same tumbling, hopping or "
            "cumulating window, and keep window_start and window_end"
        )
    if window.to_spec() != other.to_spec():
        raise NotOnRings(f"JOIN of inputs with different windows, {window} and {other}")
    on = node.args.get("on")
    if on is None:
        raise NotOnRings("JOIN without ON is not available on the rings")
    condition = _taken_apart(on, left, right)
    needed = WINDOW_END if isinstance(window, Cumulate) else ""
    if not condition.bounds or (needed and needed not in condition.bounds):
        bound = needed or WINDOW_START
        raise NotOnRings(f"JOIN without a.{bound} = b.{bound} pairs rows of different windows")
    if condition.rest and how != "inner":
        raise NotOnRings(f"ON {to_text(condition.rest[0])} in an outer join is not available on the rings")
    left_side = _Side(left, may_be_missing=how in ("right", "full"), taken=())
    right_side = _Side(right, may_be_missing=how in ("left", "full"), taken=tuple(left_side.columns))
    pairs = []
    for number, (mine, theirs) in enumerate(condition.keys):
        nodes = (left_side.bound(mine), right_side.bound(theirs))
        if nodes[0].type != nodes[1].type:
            raise NotOnRings(f"JOIN on {nodes[0].type} = {nodes[1].type}; cast one of them")
        pairs.append((left_side.key(number, "left", nodes[0]), right_side.key(number, "right", nodes[1])))
    joined = Query(WindowJoin(left_side.plan, right_side.plan, tuple(pairs), how))
    relation = Relation(joined, frozenset(), None, left_side.names | right_side.names)
    for part in condition.rest:
        relation = relation.over(relation.query.filter(translate(part, relation.scope)))
    return relation


def _how(node: exp.Join) -> str:
    side, kind = (node.side or "").upper(), (node.kind or "").upper()
    if kind not in ("", "INNER", "OUTER") or side not in _KINDS or node.method:
        raise NotOnRings(
            f"{node.method or side} {kind} JOIN is not available on the rings".replace("  ", " ")
        )
    if node.args.get("using"):
        raise NotOnRings("JOIN … USING is not available on the rings; write ON a.k = b.k")
    return _KINDS[side]


def _taken_apart(on: exp.Expr, left: Relation, right: Relation) -> _Condition:
    found = _Condition([], set(), [])
    for part in on.flatten() if isinstance(on, exp.And) else [on]:
        part = part.unnest()
        if isinstance(part, exp.And):
            inner = _taken_apart(part, left, right)
            found.keys.extend(inner.keys)
            found.bounds.update(inner.bounds)
            found.rest.extend(inner.rest)
            continue
        pair = _pair(part, left, right) if isinstance(part, exp.EQ) else None
        if pair is None:
            found.rest.append(part)
            continue
        names = {each.name.lower() for each in pair if isinstance(each, exp.Column)}
        if len(names) == 1 and (name := names.pop()) in WINDOW_COLUMNS and _are_bounds(pair):
            found.bounds.add(name)
        else:
            found.keys.append(pair)
    return found


def _are_bounds(pair: tuple[exp.Expr, exp.Expr]) -> bool:
    return all(isinstance(each, exp.Column) for each in pair)


def _pair(part: exp.EQ, left: Relation, right: Relation) -> tuple[exp.Expr, exp.Expr] | None:
    """The sides of an equation, that of the left input first; None when it is none between the inputs."""
    for mine, theirs in ((part.this, part.expression), (part.expression, part.this)):
        if _reads(mine, left, right) and _reads(theirs, right, left):
            return mine, theirs
    return None


def _reads(expression: exp.Expr, relation: Relation, other: Relation) -> bool:
    """Whether *expression* has columns, and all of them are of *relation* alone."""
    columns = list(expression.find_all(exp.Column))
    return bool(columns) and all(
        _resolves(each, relation) and (each.table or not _resolves(each, other)) for each in columns
    )


def _resolves(column: exp.Column, relation: Relation) -> bool:
    try:
        relation.scope.resolve(column)
    except LaminarError:
        return False
    return True


class _Side:
    """One input of a join, its columns under names that the other does not have."""

    def __init__(self, relation: Relation, *, may_be_missing: bool, taken: tuple[str, ...]) -> None:
        self._relation = relation
        plan = relation.query.plan
        self.columns: dict[str, Node] = {name: find_column(plan.schema, name) for name in WINDOW_COLUMNS}
        self.names: dict[str, dict[str, str]] = {}
        tables = relation.names or {table: {name: name for name in plan.schema} for table in relation.aliases}
        for table, written in tables.items():
            self.names[table] = {}
            for name, column in written.items():
                shown = column
                if column in taken or (column in WINDOW_COLUMNS and may_be_missing):
                    # The bounds of an absent row are NULL, those of the pair are not.
                    shown = f"{table}.{column}"
                self.columns[shown] = find_column(plan.schema, column)
                self.names[table][name] = shown

    def bound(self, expression: exp.Expr) -> Node:
        """*expression* over the columns of this input."""
        translated: Expr = translate(expression, self._relation.scope)
        return bind(translated, self._relation.query.plan.schema)

    def key(self, number: int, side: str, node: Node) -> str:
        """The column that *node* is; a new one where it is more than a column."""
        for name, known in self.columns.items():
            if known == node and name not in WINDOW_COLUMNS:
                return name
        name = f"join key {number} {side}"
        self.columns[name] = node
        return name

    @property
    def plan(self) -> Plan:
        plan = self._relation.query.plan
        if list(self.columns) == list(plan.schema):
            return plan
        return Project(plan, tuple(self.columns.items()))


def union(left: Query, right: Query) -> Query:
    """UNION ALL: columns by position, named as on the left."""
    first, second = left.plan.schema, right.plan.schema
    if len(first) != len(second):
        raise NotOnRings(f"UNION ALL of {len(first)} and {len(second)} columns")
    for (name, (kind, _)), (_, (other, _)) in zip(first.items(), second.items(), strict=True):
        if kind != other:
            raise NotOnRings(f"UNION ALL of {kind} and {other} in column {name}")
    return left.union(
        right.select(*(col(mine).alias(name) for name, mine in zip(first, second, strict=True)))
    )
