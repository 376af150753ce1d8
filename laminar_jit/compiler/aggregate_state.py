"""The layout of a group record: header, keys, accumulators, and how each is read from a row.

    hash | key NULL bits | keys | session links | first arrival | dirty | components | emitted components
    | shown row and values of a session

Every part is whole words; a part that the plan does not need is left out.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..aggregate_definition import AggregateDefinition
from ..errors import UnsupportedClause
from ..kernels.accumulators import STRING_AT
from ..kernels.sessions import SESSION_WORDS
from ..runtime.rows import RowLayout
from ..types import DataType
from .aggregate_functions import Component, Recipe, recipe


@dataclass(frozen=True)
class KeyColumn:
    """A grouping key: the row field it stands in, and its name and type in the result."""

    field: int
    name: str
    type: DataType


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate: function, argument fields with their types, and an optional bool field as FILTER."""

    name: str
    function: str
    fields: tuple[int, ...] = ()
    types: tuple[DataType, ...] = ()
    filter: int | None = None
    distinct: bool = False
    parameters: tuple[Any, ...] = ()


@dataclass
class GroupLayout:
    """Byte offsets of everything in a group record."""

    row: RowLayout
    keys: tuple[KeyColumn, ...]
    recipes: tuple[Recipe, ...]
    not_null: frozenset[int]
    has_arrival: bool
    has_session: bool
    keeps_emitted: bool
    #: Sessions that are shown before they close know whether they changed, and the row that was shown.
    shows_early: bool = False
    key_at: list[int] = field(default_factory=list)
    #: (row NULL word, mask of its key bits, offset in the record)
    key_nulls: list[tuple[int, int, int]] = field(default_factory=list)
    component_at: dict[Component, int] = field(default_factory=dict)
    #: Aggregates that take entries of the log, by their bit; where values stand in an entry.
    logged: list[Component] = field(default_factory=list)
    log_at: dict[tuple[str, int], int] = field(default_factory=dict)
    log_bytes: int = 0
    session_at: int = 0
    arrival_at: int = 0
    dirty_at: int = 0
    components_from: int = 0
    components_to: int = 0
    emitted_at: int = 0
    shown_at: int = 0
    values_at: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        at = 8
        masks: dict[int, int] = {}
        for key in self.keys:
            if key.field not in self.not_null:
                masks[key.field // 64] = masks.get(key.field // 64, 0) | 1 << (key.field % 64)
        for word, mask in sorted(masks.items()):
            self.key_nulls.append((word, signed(mask), at))
            at += 8
        for key in self.keys:
            self.key_at.append(at)
            at += 16 if self.kind(key.field) in ("string", "wide") else 8
        if self.has_session:
            self.session_at = at
            at += 8 * SESSION_WORDS
        if self.has_arrival:
            self.arrival_at = at
            at += 8
        if self.keeps_emitted or self.shows_early:
            # One word of flags: changed since the last emission, and emitted before.
            self.dirty_at = at
            at += 8
        self.components_from = at
        for one in self.recipes:
            for component in one.components.values():
                stored = self.stored(component)
                if stored.kind == "log":
                    self._add_logged(stored)
                elif stored not in self.component_at:
                    self.component_at[stored] = at
                    at += 8 * stored.words
        self.components_to = at
        if self.keeps_emitted:
            self.emitted_at = at
            at += self.components_to - self.components_from
        if self.shows_early:
            self.shown_at = at
            at += 8
        if self.has_session and self.logged:
            # The list of the session's entries in the log: first and last.
            self.values_at = at
            at += 16
        self.bytes = at

    def _add_logged(self, component: Component) -> None:
        if component in self.logged:
            return
        self.logged.append(component)
        if len(self.logged) > 63:
            raise UnsupportedClause("more than 63 aggregates that need all values of a group in one query")
        self.log_bytes = self.log_bytes or LOG_HEADER_BYTES
        for value in component.arguments:
            if value not in self.log_at:
                self.log_at[value] = self.log_bytes
                self.log_bytes += 16 if value[0] == "string" else 8

    def kind(self, number: int) -> str:
        """The storage kind of a row field."""
        return self.row.fields[number].kind

    def stored(self, component: Component) -> Component:
        """The component that is kept: checks of fields that are never NULL are left out."""
        fields = tuple(one for one in component.fields if one not in self.not_null)
        return dataclasses.replace(component, fields=fields)

    @functools.cached_property
    def direct_key(self) -> int | None:
        """The row field of the one key, where panes may have a table of it."""
        if self.has_session or len(self.keys) != 1 or self.kind(self.keys[0].field) not in DIRECT_KINDS:
            return None
        return self.keys[0].field

    @functools.cached_property
    def user_calls(self) -> tuple[Component, ...]:
        """The states of user aggregates."""
        return tuple(component for component in self.component_at if component.user is not None)

    @functools.cached_property
    def users(self) -> tuple[AggregateDefinition, ...]:
        """The user aggregates among them, each once."""
        return tuple(dict.fromkeys(call.user for call in self.user_calls if call.user is not None))

    @property
    def string_offsets(self) -> list[int]:
        """Where strings that may refer to the pane's heap stand in a record."""
        found = [
            at for key, at in zip(self.keys, self.key_at, strict=True) if self.kind(key.field) == "string"
        ]
        copies = (0, self.emitted_at - self.components_from) if self.keeps_emitted else (0,)
        for component, at in self.component_at.items():
            if component.kind in STRING_AT:
                found += [at + STRING_AT[component.kind] + copy for copy in copies]
        return found

    @property
    def string_fields(self) -> list[int]:
        """Row fields whose long strings may be copied to the heap, once for each copy made of a row."""
        found = [key.field for key in self.keys if self.kind(key.field) == "string"]
        for component in self.component_at:
            found += [number for form, number in component.arguments if form == "string"]
        return found + [number for form, number in self.log_at if form == "string"]

    def to_spec(self) -> dict[str, Any]:
        """What the runtime needs to read records."""
        return {
            "group_bytes": self.bytes,
            "key_at": self.key_at,
            "key_nulls": [self._null_place(key) for key in self.keys],
            "direct_at": None if self.direct_key is None else [self.key_at[0], *self._direct_null()],
            "string_offsets": self.string_offsets,
            "session_at": self.session_at,
            "arrival_at": self.arrival_at,
            "dirty_at": self.dirty_at,
            "components": [self.components_from, self.components_to],
            "emitted_at": self.emitted_at,
            "shown_at": self.shown_at,
            "values_at": self.values_at,
            "log_string_offsets": [at for (form, _), at in self.log_at.items() if form == "string"],
            "log_bytes": self.log_bytes,
            "log_strings": any(form == "string" for form, _ in self.log_at),
        }

    def _direct_null(self) -> list[int]:
        """Where a word stands that is not zero when the key is NULL; the key's own place if there is none."""
        return [self.key_nulls[0][2] if self.key_nulls else 0]

    def _null_place(self, key: KeyColumn) -> list[int] | None:
        for word, mask, at in self.key_nulls:
            if key.field // 64 == word and mask & signed(1 << (key.field % 64)):
                return [at, key.field % 64]
        return None


#: Kinds of keys that may stand in a table: whole numbers of one word.
DIRECT_KINDS = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))

#: Group number, event time and bits of an entry of the log.
LOG_HEADER_BYTES = 24


def signed(word: int) -> int:
    """The int64 with the bits of an unsigned word."""
    return word - (1 << 64) if word >= 1 << 63 else word


def build_layout(
    row: RowLayout,
    keys: Sequence[KeyColumn],
    aggregates: Sequence[AggregateCall],
    *,
    not_null: frozenset[int],
    has_arrival: bool,
    has_session: bool,
    keeps_emitted: bool,
    shows_early: bool = False,
) -> GroupLayout:
    """Lay out the record of a plan's groups."""
    recipes = tuple(
        recipe(call.function, call.fields, call.types, call.filter, call.distinct, call.parameters)
        for call in aggregates
    )
    for call in aggregates:
        if call.filter is not None and row.fields[call.filter].kind != "bool":
            raise UnsupportedClause(
                f"FILTER of {call.name!r} is a {row.fields[call.filter].kind} field; expected a bool"
            )
    return GroupLayout(
        row, tuple(keys), recipes, not_null, has_arrival, has_session, keeps_emitted, shows_early
    )
