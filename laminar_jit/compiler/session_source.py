"""Source of the compiled update of a session operator."""

from __future__ import annotations

from typing import Any

from ..kernels.accumulators import STRING_AT
from .aggregate_fragments import (
    Source,
    add_group_start,
    add_key_words,
    add_merges,
    add_null_words,
    add_updates,
    key_match,
)
from .aggregate_state import GroupLayout
from .session_extras import (
    write_changed,
    write_early_start,
    write_merged_away,
    write_value,
    write_values_merge,
    write_values_start,
)
from .window_source import write_heap_check, write_late, write_row_end


def write_session_update(
    source: Source,
    layout: GroupLayout,
    *,
    gap: int,
    lateness: int,
    width: int,
    late: dict[str, Any],
    row_watermarks: bool,
    ticks: bool = False,
    retracts: bool = False,
) -> None:
    """``update``: add rows to the sessions they reach, make new ones, merge two that a row connects.

    A session whose time has come under a row's watermark takes no more rows, whether or not it
    has been emitted yet; so nothing has to happen between two rows, and closing can wait for the
    end of the batch. With *ticks* it stops at the row whose watermark makes something due; with
    *retracts* a session that was shown is listed when it is merged into another.
    """
    add = source.add
    add(0, "@kernel\ndef update(rows, first, last, heap, heap_mask, state, pane):")
    add(
        1,
        """
watermark = load_int64(state + WATERMARK)
sequence = load_int64(state + SEQUENCE)
behind = load_int64(state + BEHIND)
wheel = load_int64(state + WHEEL)
index = load_int64(pane + INDEX)
index_mask = load_int64(pane + INDEX_MASK)
groups = load_int64(pane + GROUPS)
pane_heap = load_int64(pane + HEAP)
other_pane = pane
stop = DONE
moved = np.int64(-1)
row = first
while row < last:
""",
    )
    add(2, f"at = rows + row * {layout.row.row_bytes}")
    add(2, f"ts = load_int64(at + {layout.row.offset('_ts')})")
    if late["policy"] == "reassign":
        add(2, "if moved == row:\n    ts = watermark")
    if row_watermarks and ticks:
        add(2, f"row_watermark = load_int64(at + {layout.row.offset('_watermark')})")
        add(
            2,
            """
if row_watermark > watermark:
    watermark = row_watermark
    if watermark >= load_int64(state + NEXT_CLOSE):
        stop = CLOSE_DUE
        break
""",
        )
    elif row_watermarks:
        add(2, f"watermark = max(watermark, load_int64(at + {layout.row.offset('_watermark')}))")
    add_null_words(source, layout, 2)
    write_heap_check(source, layout, 2)
    add_key_words(source, layout, 2)
    _write_find_session(source, layout, gap, lateness)
    add(2, "if reached == 0:")
    _write_new_session(source, layout, gap, lateness, width, late)
    add(2, "else:")
    _write_join(source, layout, gap, lateness, retracts)
    add_updates(source, layout, 2)
    write_value(source, layout, 2)
    write_changed(source, layout, 2, "group")
    write_row_end(source, late, 2)
    add(
        1,
        """
store_int64(state + WATERMARK, watermark)
store_int64(state + SEQUENCE, sequence)
store_int64(state + BEHIND, behind)
store_int64(state + NEXT_ROW, row)
return stop
""",
    )


def _write_find_session(source: Source, layout: GroupLayout, gap: int, lateness: int) -> None:
    """``reached``: the number plus one of the latest open session the row reaches, or zero.

    ``newer`` is the session after the row's place in the chain, ``link`` the one at or before it.
    """
    at = layout.session_at
    add = source.add
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
    add(2, "reached = newer = np.int64(0)")
    add(2, "link = entry & NUMBER")
    add(2, f"while link != 0 and load_int64(group + {at} + SESSION_START) - {gap} > ts:")
    add(3, "newer = link")
    add(3, f"link = load_int64(group + {at} + SESSION_NEXT)")
    add(3, f"group = groups + (link - 1) * {layout.bytes}")
    add(2, "if link != 0:")
    add(3, f"reach = load_int64(group + {at} + SESSION_LAST) + {gap}")
    add(3, f"if ts <= reach and watermark <= reach + {lateness}:\n    reached = link")


def _write_new_session(
    source: Source, layout: GroupLayout, gap: int, lateness: int, width: int, late: dict[str, Any]
) -> None:
    at = layout.session_at
    add = source.add
    add(3, f"if ts + {gap + lateness} < watermark:")
    write_late(source, late, 4)
    if late["policy"] == "reassign":
        # Its place among the sessions of the key is another one now: look again.
        add(4, "continue")
    add(
        3,
        """
made = load_int64(pane + FREE_GROUP)
if made == 0:
    count = load_int64(pane + GROUP_COUNT)
    if count >= load_int64(pane + GROUP_LIMIT):
        store_int64(state + FULL_PANE, pane)
        stop = GROUPS_FULL
        break
    made = count + 1
    store_int64(pane + GROUP_COUNT, made)
""",
    )
    add(3, f"group = groups + (made - 1) * {layout.bytes}")
    add(3, f"session = group + {at}")
    add(3, "if made == load_int64(pane + FREE_GROUP):")
    add(4, "store_int64(pane + FREE_GROUP, load_int64(session + SESSION_NEXT))")
    write_early_start(source, layout, 3)
    write_values_start(source, layout, 3)
    add(
        3,
        """
store_int64(session + SESSION_START, ts)
store_int64(session + SESSION_LAST, ts)
store_int64(session + SESSION_NEXT, link)
store_int64(session + SESSION_NEWER, newer)
store_int64(session + SESSION_STATUS, OPEN)
""",
    )
    add(3, f"set_newer(groups, {layout.bytes}, {at}, link, made)")
    add(3, f"register_timer(wheel, session, made - 1, ts + {gap + lateness}, {width})")
    add(3, "if newer == 0:\n    store_int64(index + slot * 8, tag | made)")
    add(3, "else:")
    add(4, f"store_int64(groups + (newer - 1) * {layout.bytes} + {at} + SESSION_NEXT, made)")
    add(3, "store_int64(state + OPEN_SESSIONS, load_int64(state + OPEN_SESSIONS) + 1)")
    add_group_start(source, layout, 3)


def _write_join(source: Source, layout: GroupLayout, gap: int, lateness: int, retracts: bool) -> None:
    at = layout.session_at
    add = source.add
    add(3, f"session = group + {at}")
    add(3, "if ts > load_int64(session + SESSION_LAST):\n    store_int64(session + SESSION_LAST, ts)")
    add(3, "elif ts < load_int64(session + SESSION_START):")
    add(4, "older = load_int64(session + SESSION_NEXT)\nstart = ts\nif older != 0:")
    add(5, f"other = groups + (older - 1) * {layout.bytes}")
    add(5, f"reach = load_int64(other + {at} + SESSION_LAST) + {gap}")
    add(5, f"if ts <= reach and watermark <= reach + {lateness}:")
    strings = [
        offset + STRING_AT[component.kind]
        for component, offset in layout.component_at.items()
        if component.kind in STRING_AT
    ]
    if strings:
        # Copies of the other session's strings, on top of what the row may need.
        needs = " + ".join(f"kept_bytes(other + {offset})" for offset in strings)
        add(
            6,
            f"""
needed += {needs}
if needed > load_int64(pane + HEAP_LIMIT) - load_int64(pane + HEAP_USED):
    store_int64(state + WANTED_BYTES, needed)
    store_int64(state + FULL_PANE, pane)
    stop = HEAP_FULL
    break
""",
        )
    add_merges(source, layout, 6)
    write_values_merge(source, layout, 6)
    if retracts:
        write_merged_away(source, layout, 6)
    add(6, f"start = load_int64(other + {at} + SESSION_START)")
    add(6, f"older = load_int64(other + {at} + SESSION_NEXT)")
    add(6, "store_int64(session + SESSION_NEXT, older)")
    add(6, f"set_newer(groups, {layout.bytes}, {at}, older, reached)")
    add(6, f"store_int64(other + {at} + SESSION_STATUS, MERGED)")
    add(
        6,
        f"""
if load_int64(other + {layout.arrival_at}) < load_int64(group + {layout.arrival_at}):
    store_int64(group + {layout.arrival_at}, load_int64(other + {layout.arrival_at}))
store_int64(state + OPEN_SESSIONS, load_int64(state + OPEN_SESSIONS) - 1)
store_int64(state + MERGED_SESSIONS, load_int64(state + MERGED_SESSIONS) + 1)
""",
    )
    if layout.string_offsets:
        add(
            6,
            f"forget_strings(other, load_int64(state + STRING_OFFSETS), {len(layout.string_offsets)}, pane)",
        )
    add(4, "store_int64(session + SESSION_START, start)")
