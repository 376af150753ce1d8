"""Pieces of source shared by the generated update and merge functions of stateful operators."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..kernels.accumulators import STRING_AT
from .aggregate_functions import Component
from .aggregate_state import GroupLayout, signed
from .user_aggregate_source import add_user_merge, add_user_start, add_user_update, argument_as


@dataclass
class Source:
    """Lines of a generated module, with the names it must import."""

    lines: list[str] = field(default_factory=list)
    accumulators: set[str] = field(default_factory=set)

    def add(self, indent: int, text: str) -> None:
        """Append *text*, which may have several lines, at *indent* levels."""
        for line in text.strip("\n").split("\n"):
            self.lines.append("    " * indent + line if line.strip() else "")

    def accumulator(self, name: str) -> str:
        """Use a function of ``kernels/accumulators.py``."""
        self.accumulators.add(name)
        return name


def word_of(layout: GroupLayout, number: int) -> str:
    """A field as the int64 word it is stored as: integers widened, floats by their bits."""
    kind, at = layout.kind(number), f"at + F{number}"
    if kind in ("int64", "uint64", "float64"):
        return f"load_int64({at})"
    reader = {"float32": "load_int32", "bool": "load_uint8"}.get(kind, f"load_{kind}")
    return f"np.int64({reader}({at}))"


def key_word(layout: GroupLayout, number: int) -> str:
    """A field as a key word: floats have one NaN and one zero."""
    kind = layout.kind(number)
    word = word_of(layout, number)
    return f"key_{kind}({word})" if kind in ("float32", "float64") else word


def argument(layout: GroupLayout, form: str, number: int) -> str:
    """Read an aggregate's argument from the row at ``at`` in the form its component takes."""
    kind = layout.kind(number) if number >= 0 else ""
    if form == "time":
        return "ts"
    if form == "string":
        return f"at + F{number}, heap, heap_mask, pane"
    if form == "float":
        return f"np.float64(load_{kind}(at + F{number}))"
    if form == "hashed_string":
        return f"hashed_string(at + F{number}, heap, heap_mask)"
    if form == "hashed":
        return f"hashed_word({key_word(layout, number)})"
    if form.startswith("as "):
        return argument_as(kind, form.removeprefix("as "), number)
    word = word_of(layout, number)
    if form == "order" and kind in ("float32", "float64", "uint64"):
        return f"order_{kind}({word})"
    return word


def null_masks(fields: tuple[int, ...]) -> dict[int, int]:
    """For each NULL word of a row the mask of the bits that belong to *fields*."""
    masks: dict[int, int] = {}
    for number in fields:
        masks[number // 64] = masks.get(number // 64, 0) | 1 << (number % 64)
    return {word: signed(mask) for word, mask in masks.items()}


def condition_of(layout: GroupLayout, component: Component) -> str:
    """When a row is added to a component; empty for always."""
    fields = component.fields
    terms = []
    if component.condition is not None:
        if component.condition not in layout.not_null:
            fields = (*fields, component.condition)
        terms.append(f"load_uint8(at + F{component.condition}) != 0")
    terms = [f"nulls{word} & {mask} == 0" for word, mask in null_masks(fields).items()] + terms
    return " and ".join(terms)


def add_updates(source: Source, layout: GroupLayout, indent: int) -> None:
    """Add the row at ``at`` to every component of ``group``, rows of one condition together."""
    by_condition: dict[str, list[tuple[Component, int]]] = {}
    for component, offset in layout.component_at.items():
        by_condition.setdefault(condition_of(layout, component), []).append((component, offset))
    for condition, members in by_condition.items():
        inner = indent
        if condition:
            source.add(indent, f"if {condition}:")
            inner += 1
        for component, offset in members:
            values = [argument(layout, form, number) for form, number in component.arguments]
            if component.user is not None:
                add_user_update(source, layout, component, offset, values, inner)
                continue
            call = source.accumulator(f"{component.kind}_add")
            source.add(inner, f"{call}({', '.join([f'group + {offset}', *values])})")


def add_log_entry(source: Source, layout: GroupLayout, indent: int) -> None:
    """Append the row's values to the log of ``pane``, if some aggregate takes them."""
    if not layout.logged:
        return
    source.add(indent, "bits = np.int64(0)")
    for bit, component in enumerate(layout.logged):
        condition = condition_of(layout, component)
        if condition:
            source.add(indent, f"if {condition}:\n    bits |= {1 << bit}")
        else:
            source.add(indent, f"bits |= {1 << bit}")
    source.add(indent, "if bits != 0:")
    inner = indent + 1
    source.add(
        inner,
        f"""
log_used = load_int64(pane + LOG_USED)
entry_at = load_int64(pane + LOG) + log_used * {layout.log_bytes}
store_int64(pane + LOG_USED, log_used + 1)
store_int64(entry_at, (group - groups) // {layout.bytes})
store_int64(entry_at + 8, ts)
store_int64(entry_at + 16, bits)
""",
    )
    for (form, number), at in layout.log_at.items():
        if form == "string":
            null = null_test(layout, number)
            keep = f"keep_string(entry_at + {at}, at + F{number}, heap, heap_mask, pane)"
            source.add(inner, f"if not ({null}):\n    {keep}" if null else keep)
        else:
            source.add(inner, f"store_int64(entry_at + {at}, {argument(layout, form, number)})")


def add_group_start(source: Source, layout: GroupLayout, indent: int) -> None:
    """Write hash, keys and empty accumulators of the new record ``group``."""
    source.add(indent, "store_int64(group, hashed)")
    for word, _, at in layout.key_nulls:
        source.add(indent, f"store_int64(group + {at}, key_nulls{word})")
    for number, (key, at) in enumerate(zip(layout.keys, layout.key_at, strict=True)):
        kind = layout.kind(key.field)
        if kind == "string":
            keep = f"keep_string(group + {at}, at + F{key.field}, heap, heap_mask, pane)"
            null = null_test(layout, key.field)
            if null:
                source.add(indent, f"if {null}:")
                source.add(indent + 1, f"store_int64(group + {at}, 0)\nstore_int64(group + {at + 8}, 0)")
                source.add(indent, "else:")
                source.add(indent + 1, keep)
            else:
                source.add(indent, keep)
        else:
            source.add(indent, f"store_int64(group + {at}, key{number})")
            if kind == "wide":
                source.add(indent, f"store_int64(group + {at + 8}, key{number}_high)")
    if layout.has_arrival:
        source.add(indent, f"store_int64(group + {layout.arrival_at}, sequence)")
    if layout.keeps_emitted:
        source.add(indent, f"store_int64(group + {layout.dirty_at}, 0)")
    for component, offset in layout.component_at.items():
        add_start(source, layout, component, offset, indent)
        if layout.keeps_emitted and component.kind in STRING_AT:
            # Nothing was shown yet: the copy refers to no string.
            copy = offset + STRING_AT[component.kind] + layout.emitted_at - layout.components_from
            source.add(indent, f"store_int64(group + {copy}, -1)")


def add_start(
    source: Source, layout: GroupLayout, component: Component, offset: int, indent: int, *, row: bool = True
) -> None:
    """An empty accumulator in ``group``. *row*: inside an update, where a row is at hand."""
    if component.user is not None:
        add_user_start(source, layout, component, offset, indent, row=row)
    else:
        source.add(indent, f"{source.accumulator(component.kind + '_start')}(group + {offset})")


def null_test(layout: GroupLayout, number: int) -> str:
    """Whether the row's field is NULL, as an expression over its NULL words; empty if it never is."""
    if number in layout.not_null:
        return ""
    return f"nulls{number // 64} & {signed(1 << (number % 64))} != 0"


def add_null_words(source: Source, layout: GroupLayout, indent: int) -> None:
    """Load the row's NULL words."""
    for word in range(layout.row.null_words):
        source.add(indent, f"nulls{word} = load_int64(at + {layout.row.offset('_nulls') + 8 * word})")


def add_key_words(source: Source, layout: GroupLayout, indent: int) -> None:
    """Load the row's hash and key words; a NULL key has zero words, whatever the slot holds."""
    source.add(indent, f"hashed = load_int64(at + {layout.row.offset('_hash')})")
    for word, mask, _ in layout.key_nulls:
        source.add(indent, f"key_nulls{word} = nulls{word} & {mask}")
    for number, key in enumerate(layout.keys):
        kind = layout.kind(key.field)
        if kind in ("string", "wide"):
            tail = "rest" if kind == "string" else "high"
            source.add(
                indent,
                f"key{number} = load_int64(at + F{key.field})\n"
                f"key{number}_{tail} = load_int64(at + F{key.field} + 8)",
            )
        else:
            source.add(indent, f"key{number} = {key_word(layout, key.field)}")
    for word, _, _ in layout.key_nulls:
        source.add(indent, f"if key_nulls{word} != 0:")
        for number, key in enumerate(layout.keys):
            if key.field // 64 != word or key.field in layout.not_null:
                continue
            kind = layout.kind(key.field)
            source.add(indent + 1, f"if {null_test(layout, key.field)}:")
            source.add(indent + 2, f"key{number} = np.int64(0)")
            if kind in ("string", "wide"):
                tail = "rest" if kind == "string" else "high"
                source.add(indent + 2, f"key{number}_{tail} = np.int64(0)")


def key_match(layout: GroupLayout) -> str:
    """Whether the record ``group`` has the row's keys, exactly."""
    terms = [f"load_int64(group + {at}) == key_nulls{word}" for word, _, at in layout.key_nulls]
    for number, (key, at) in enumerate(zip(layout.keys, layout.key_at, strict=True)):
        kind = layout.kind(key.field)
        if kind == "string":
            terms.append(
                f"same_string(group + {at}, pane_heap, key{number}, key{number}_rest, heap, heap_mask)"
            )
        else:
            terms.append(f"load_int64(group + {at}) == key{number}")
            if kind == "wide":
                terms.append(f"load_int64(group + {at + 8}) == key{number}_high")
    if any(layout.kind(key.field) == "string" for key in layout.keys):
        # Strings of other groups with the same tag differ in the hash, which is cheaper to see.
        terms.insert(0, "load_int64(group) == hashed")
    return " and ".join(terms) or "True"


def add_merges(source: Source, layout: GroupLayout, indent: int) -> None:
    """Merge every component of ``other`` into ``group``."""
    for component, offset in layout.component_at.items():
        if component.user is not None:
            add_user_merge(source, layout, component, offset, indent)
            continue
        call = source.accumulator(f"{component.kind}_merge")
        panes = ", pane, other_pane" if component.kind in STRING_AT else ""
        source.add(indent, f"{call}(group + {offset}, other + {offset}{panes})")
