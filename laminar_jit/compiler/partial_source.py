"""Source of what brings sessions of two operators together: those that reach each other become one."""

from __future__ import annotations

from ..kernels.accumulators import STRING_AT
from .aggregate_fragments import Source, add_merges, add_start, key_match
from .aggregate_state import GroupLayout


def write_session_absorb(source: Source, layout: GroupLayout, gap: int) -> None:
    """``absorb``: take the sessions of ``other_pane``, in the order that *order* gives, from *first* on.

    ``pane`` has room for all of them. Returns the place of the first session that was not
    taken: *last*, or one whose strings need WANTED_BYTES more. Timers are registered by the
    caller when all are in.
    """
    add, at = source.add, layout.session_at
    add(0, "\n\n@kernel\ndef absorb(pane, other_pane, order, first, last, state):")
    add(
        1,
        """
index = load_int64(pane + INDEX)
index_mask = load_int64(pane + INDEX_MASK)
groups = load_int64(pane + GROUPS)
pane_heap = load_int64(pane + HEAP)
given_pane = other_pane
heap = load_int64(given_pane + HEAP)
heap_mask = WHOLE
others = load_int64(given_pane + GROUPS)
place = first
while place < last:
    other_pane = given_pane
""",
    )
    add(2, f"given = others + load_int64(order + place * 8) * {layout.bytes}")
    add(2, "other = given\nhashed = load_int64(other)")
    for word, _, null_at in layout.key_nulls:
        add(2, f"key_nulls{word} = load_int64(other + {null_at})")
    for number, (key, key_at) in enumerate(zip(layout.keys, layout.key_at, strict=True)):
        add(2, f"key{number} = load_int64(other + {key_at})")
        kind = layout.kind(key.field)
        if kind in ("string", "wide"):
            tail = "rest" if kind == "string" else "high"
            add(2, f"key{number}_{tail} = load_int64(other + {key_at + 8})")
    add(
        2,
        """
tag = hashed & TAG
slot = (hashed >> 32) & index_mask
group = groups
entry = load_int64(index + slot * 8)
while entry != 0:
    if entry & TAG == tag:
""",
    )
    add(4, f"group = groups + ((entry & NUMBER) - 1) * {layout.bytes}")
    add(4, f"if {key_match(layout)}:\n    break")
    add(3, "slot = (slot + 1) & index_mask\nentry = load_int64(index + slot * 8)")
    _write_place_in_chain(source, layout, gap)
    _write_room(source, layout, gap)
    _write_new(source, layout)
    add_merges(source, layout, 2)
    add(
        2,
        f"""
session = group + {at}
store_int64(session + SESSION_START, min(start, load_int64(session + SESSION_START)))
store_int64(session + SESSION_LAST, max(latest, load_int64(session + SESSION_LAST)))
""",
    )
    _write_earlier_arrival(source, layout, 2)
    _write_bridge(source, layout, gap)
    add(2, "place += 1")
    add(1, "return place")


def _write_place_in_chain(source: Source, layout: GroupLayout, gap: int) -> None:
    """``link``: the latest session of the key that starts at most a gap behind the given one, or zero."""
    add, at = source.add, layout.session_at
    add(2, f"start = load_int64(given + {at} + SESSION_START)")
    add(2, f"latest = load_int64(given + {at} + SESSION_LAST)")
    add(2, "newer = np.int64(0)\nlink = entry & NUMBER")
    add(2, f"while link != 0 and load_int64(group + {at} + SESSION_START) - {gap} > latest:")
    add(3, "newer = link")
    add(3, f"link = load_int64(group + {at} + SESSION_NEXT)")
    add(3, f"group = groups + (link - 1) * {layout.bytes}")
    add(
        2,
        f"reached = link != 0 and start <= load_int64(group + {at} + SESSION_LAST) + {gap}",
    )


def _write_room(source: Source, layout: GroupLayout, gap: int) -> None:
    """Stop before anything is changed when the strings of this step might not fit the heap."""
    if not layout.string_offsets:
        return
    add, at = source.add, layout.session_at
    kept = [
        offset + STRING_AT[component.kind]
        for component, offset in layout.component_at.items()
        if component.kind in STRING_AT
    ]
    needs = " + ".join(f"kept_bytes(given + {offset})" for offset in layout.string_offsets)
    add(2, f"needed = {needs}")
    if kept:
        # Every session that this one connects hands its strings on.
        add(2, "walk = link if reached else np.int64(0)\nhull = start\nwhile walk != 0:")
        add(3, f"passed = groups + (walk - 1) * {layout.bytes}")
        add(3, f"if hull > load_int64(passed + {at} + SESSION_LAST) + {gap}:\n    break")
        add(3, f"hull = min(hull, load_int64(passed + {at} + SESSION_START))")
        add(3, f"needed += {' + '.join(f'kept_bytes(passed + {offset})' for offset in kept)}")
        add(3, f"walk = load_int64(passed + {at} + SESSION_NEXT)")
    add(
        2,
        """
if needed > load_int64(pane + HEAP_LIMIT) - load_int64(pane + HEAP_USED):
    store_int64(state + WANTED_BYTES, needed)
    break
""",
    )


def _write_new(source: Source, layout: GroupLayout) -> None:
    """Where no session is reached: an empty one of the same key, at its place in the chain."""
    add, at = source.add, layout.session_at
    add(2, "if not reached:")
    add(
        3,
        """
made = load_int64(pane + GROUP_COUNT) + 1
store_int64(pane + GROUP_COUNT, made)
""",
    )
    add(3, f"group = groups + (made - 1) * {layout.bytes}")
    add(3, f"copy_bytes(group, given, {layout.components_from})")
    for key, key_at in zip(layout.keys, layout.key_at, strict=True):
        if layout.kind(key.field) == "string":
            add(3, f"keep_string(group + {key_at}, given + {key_at}, heap, heap_mask, pane)")
    add(3, f"store_int64(group + {at} + SESSION_NEXT, link)")
    add(3, f"store_int64(group + {at} + SESSION_NEWER, newer)")
    add(3, f"set_newer(groups, {layout.bytes}, {at}, link, made)")
    add(3, f"store_int64(group + {at} + SESSION_STATUS, OPEN)")
    add(3, "if newer == 0:\n    store_int64(index + slot * 8, tag | made)")
    add(3, "else:")
    add(4, f"store_int64(groups + (newer - 1) * {layout.bytes} + {at} + SESSION_NEXT, made)")
    for component, offset in layout.component_at.items():
        add_start(source, layout, component, offset, 3, row=False)


def _write_bridge(source: Source, layout: GroupLayout, gap: int) -> None:
    """Merge the sessions before it that it now reaches too."""
    add, at = source.add, layout.session_at
    add(2, "other_pane = pane")
    add(2, f"older = load_int64(group + {at} + SESSION_NEXT)")
    add(2, f"other = groups + (older - 1) * {layout.bytes}")
    add(
        2,
        f"while older != 0 and load_int64(group + {at} + SESSION_START) <= "
        f"load_int64(other + {at} + SESSION_LAST) + {gap}:",
    )
    add_merges(source, layout, 3)
    add(
        3,
        f"""
start = min(load_int64(group + {at} + SESSION_START), load_int64(other + {at} + SESSION_START))
store_int64(group + {at} + SESSION_START, start)
older = load_int64(other + {at} + SESSION_NEXT)
store_int64(group + {at} + SESSION_NEXT, older)
set_newer(groups, {layout.bytes}, {at}, older, (group - groups) // {layout.bytes} + 1)
store_int64(other + {at} + SESSION_STATUS, MERGED)
store_int64(state + MERGED_SESSIONS, load_int64(state + MERGED_SESSIONS) + 1)
""",
    )
    _write_earlier_arrival(source, layout, 3)
    if layout.string_offsets:
        add(
            3,
            f"forget_strings(other, load_int64(state + STRING_OFFSETS), {len(layout.string_offsets)}, pane)",
        )
    add(3, f"other = groups + (older - 1) * {layout.bytes}")


def _write_earlier_arrival(source: Source, layout: GroupLayout, indent: int) -> None:
    source.add(
        indent,
        f"""
if load_int64(other + {layout.arrival_at}) < load_int64(group + {layout.arrival_at}):
    store_int64(group + {layout.arrival_at}, load_int64(other + {layout.arrival_at}))
""",
    )
