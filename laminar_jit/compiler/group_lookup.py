"""Source of finding a key's group in a pane, shared by update and merge.

A plan with one integer key looks first into the pane's table of keys, if it has one:
a position for each key of a range that Python chose because most of it is in use.
Every other key stands in the pane's index, by its hash.
"""

from __future__ import annotations

from .aggregate_fragments import Source, key_match
from .aggregate_state import GroupLayout


def add_table_loads(source: Source, layout: GroupLayout, indent: int) -> None:
    """Load what is the same for all rows."""
    if layout.direct_key is not None:
        source.add(
            indent,
            """
direct_first = load_int64(state + DIRECT_FIRST)
direct_last = load_int64(state + DIRECT_LAST)
""",
        )


def add_lookup(source: Source, layout: GroupLayout, indent: int) -> None:
    """``entry`` and ``group`` of the key in ``pane``; an entry of zero: there is none yet."""
    source.add(indent, "groups = load_int64(pane + GROUPS)")
    if layout.direct_key is None:
        _add_probe(source, layout, indent)
        return
    source.add(indent, "direct = load_int64(pane + DIRECT)")
    terms = ["direct != 0", "direct_first <= key0 <= direct_last"]
    terms += [f"key_nulls{word} == 0" for word, _, _ in layout.key_nulls]
    source.add(indent, f"near = {' and '.join(terms)}")
    source.add(indent, "slot = tag = index = np.int64(0)")
    source.add(indent, "if near:")
    source.add(
        indent + 1,
        f"""
slot = direct + (key0 - direct_first) * 4
entry = np.int64(load_uint32(slot))
group = groups + (entry - 1) * {layout.bytes}
""",
    )
    source.add(indent, "else:")
    _add_probe(source, layout, indent + 1)


def _add_probe(source: Source, layout: GroupLayout, indent: int) -> None:
    source.add(
        indent,
        """
index = load_int64(pane + INDEX)
index_mask = load_int64(pane + INDEX_MASK)
""",
    )
    if layout.string_offsets:
        source.add(indent, "pane_heap = load_int64(pane + HEAP)")
    source.add(
        indent,
        """
tag = hashed & TAG
slot = (hashed >> 32) & index_mask
group = groups
entry = load_int64(index + slot * 8)
while entry != 0:
    if entry & TAG == tag:
""",
    )
    source.add(indent + 2, f"group = groups + ((entry & NUMBER) - 1) * {layout.bytes}")
    source.add(indent + 2, f"if {key_match(layout)}:\n    break")
    source.add(indent + 1, "slot = (slot + 1) & index_mask\nentry = load_int64(index + slot * 8)")


def add_entry(source: Source, layout: GroupLayout, indent: int, *, checked: bool) -> None:
    """Enter group number ``count`` where the lookup ended. *checked*: the index may be full."""
    taken = """
store_int64(index + slot * 8, tag | (count + 1))
"""
    if layout.direct_key is None:
        source.add(indent, taken)
    else:
        source.add(indent, "if near:\n    store_uint32(slot, np.uint32(count + 1))\nelse:")
        source.add(indent + 1, "indexed = load_int64(pane + INDEXED)")
        if checked:
            source.add(
                indent + 1,
                """
if 2 * indexed > index_mask:
    store_int64(state + FULL_PANE, pane)
    stop = GROUPS_FULL
    break
""",
            )
        source.add(indent + 1, "store_int64(pane + INDEXED, indexed + 1)")
        source.add(indent + 1, taken)
    source.add(indent, "store_int64(pane + GROUP_COUNT, count + 1)")
