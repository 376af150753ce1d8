"""Source of the compiled update and merge of a window operator over panes."""

from __future__ import annotations

from typing import Any

from .aggregate_fragments import (
    Source,
    add_group_start,
    add_key_words,
    add_log_entry,
    add_merges,
    add_null_words,
    add_start,
    add_updates,
    null_test,
)
from .aggregate_state import GroupLayout
from .group_lookup import add_entry, add_lookup, add_table_loads
from .window_math import PaneMath


def write_update(
    source: Source,
    layout: GroupLayout,
    panes: PaneMath,
    *,
    lateness: int,
    late: dict[str, Any],
    row_watermarks: bool,
) -> None:
    """``update``: add rows to their panes until the end, or until the caller has to do something.

    Nothing of a row has been taken when the function returns before its end, except with
    fan-out, where NEXT_PART names the pane to go on with.
    """
    fans_out = panes.stretch is None
    add = source.add
    add(0, "@kernel\ndef update(rows, first, last, heap, heap_mask, state):")
    add(
        1,
        """
directory = load_int64(state + DIRECTORY)
directory_mask = load_int64(state + DIRECTORY_MASK)
watermark = load_int64(state + WATERMARK)
next_close = load_int64(state + NEXT_CLOSE)
sequence = load_int64(state + SEQUENCE)
behind = load_int64(state + BEHIND)
stop = DONE
moved = np.int64(-1)
row = first
""",
    )
    add_table_loads(source, layout, 1)
    if not fans_out:
        add(1, "low = np.int64(1)\nmiddle = high = np.int64(0)")
    add(1, "while row < last:")
    add(2, f"at = rows + row * {layout.row.row_bytes}")
    add(2, f"ts = load_int64(at + {layout.row.offset('_ts')})")
    if row_watermarks:
        add(2, f"row_watermark = load_int64(at + {layout.row.offset('_watermark')})")
        add(
            2,
            """
if row_watermark > watermark:
    watermark = row_watermark
    if watermark >= next_close:
        stop = CLOSE_DUE
        break
""",
        )
    if fans_out:
        _write_windows_of_row(source, layout, panes, lateness, late)
    else:
        _write_pane_of_row(source, panes, lateness, late)
        _write_group(source, layout, 2)
        _write_group_update(source, layout, 2)
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


def write_row_end(source: Source, late: dict[str, Any], indent: int) -> None:
    """Count a row that was taken."""
    if late["policy"] == "reassign":
        source.add(indent, "if moved == row:")
        source.add(indent + 1, "behind += 1")
        source.add(indent + 1, "reassigned = load_int64(state + LATE_REASSIGNED)")
        source.add(indent + 1, "store_int64(state + LATE_REASSIGNED, reassigned + 1)")
    source.add(indent, "behind += np.int64(ts < watermark)\nsequence += 1\nrow += 1")


def write_late(source: Source, late: dict[str, Any], indent: int) -> None:
    """What happens to a row that no open window can take."""
    policy = late["policy"]
    if policy == "reassign":
        # Counted when the row is taken: an update that has to stop first comes here again.
        source.add(indent, f"if watermark - ts <= {int(late['max_lateness'])}:")
        source.add(indent + 1, "ts = watermark\nmoved = row")
        source.add(indent, "else:")
        indent += 1
    source.add(
        indent,
        """
behind += 1
sequence += 1
late_count = load_int64(state + LATE_COUNT)
store_int64(state + LATE_COUNT, late_count + 1)
""",
    )
    if policy == "side_output":
        source.add(indent, "store_int64(load_int64(state + LATE_ROWS) + late_count * 8, row)")
    source.add(indent, "row += 1\ncontinue")


def _write_pane_of_row(source: Source, panes: PaneMath, lateness: int, late: dict[str, Any]) -> None:
    """The pane of the row. Rows may take turns between two panes, which no branch has to foresee."""
    add = source.add
    assert panes.stretch is not None
    add(2, "if not (low <= ts < high):")
    add(3, f"number = np.int64({panes.first})")
    if panes.last_end:
        add(3, f"if {panes.last_end} + {lateness} <= watermark:")
        write_late(source, late, 4)
        if late["policy"] == "reassign":
            add(4, f"number = np.int64({panes.first})")
    add(
        3,
        f"""
pane = find_pane(directory, directory_mask, number)
if pane == 0:
    store_int64(state + WANTED_PANE, number)
    stop = PANE_MISSING
    break
start = np.int64({panes.stretch[0]})
end = np.int64({panes.stretch[1]})
# Two panes that follow each other are kept: [low, middle) and [middle, high).
if low < high and end == low:
    store_int64(state + RECENT_PANES + 8, load_int64(state + RECENT_PANES))
    store_int64(state + RECENT_PANES, pane)
    high = middle
    middle = low
    low = start
elif low < high and start == high:
    if middle < high:
        store_int64(state + RECENT_PANES, load_int64(state + RECENT_PANES + 8))
        low = middle
    store_int64(state + RECENT_PANES + 8, pane)
    middle = start
    high = end
else:
    store_int64(state + RECENT_PANES, pane)
    low = start
    middle = high = end
""",
    )
    add(2, "pane = load_int64(state + RECENT_PANES + 8 * np.int64(ts >= middle))")


def _write_windows_of_row(
    source: Source, layout: GroupLayout, panes: PaneMath, lateness: int, late: dict[str, Any]
) -> None:
    add = source.add
    add(2, f"last_number = np.int64({panes.last})")
    add(2, "number = last_number")
    add(2, f"if {panes.last_end} + {lateness} <= watermark:")
    write_late(source, late, 3)
    if late["policy"] == "reassign":
        add(3, f"last_number = np.int64({panes.last})")
    # A call that goes on in the middle of a row leaves out the windows that have it already.
    add(2, f"number = max(np.int64({panes.first}), load_int64(state + NEXT_PART))")
    add(2, "while number <= last_number:")
    add(3, f"if {panes.last_end} + {lateness} <= watermark:\n    number += 1\n    continue")
    add(
        3,
        """
pane = find_pane(directory, directory_mask, number)
if pane == 0:
    store_int64(state + WANTED_PANE, number)
    stop = PANE_MISSING
    break
""",
    )
    _write_group(source, layout, 3)
    _write_group_update(source, layout, 3)
    add(3, "number += 1")
    add(2, "if stop != DONE:\n    store_int64(state + NEXT_PART, number)\n    break")
    add(2, "store_int64(state + NEXT_PART, NO_WATERMARK)")


def write_heap_check(source: Source, layout: GroupLayout, indent: int) -> None:
    """Stop before a row whose strings might not fit the heap of ``pane``."""
    needs = []
    for number in layout.string_fields:
        null = null_test(layout, number)
        needs.append(
            f"(0 if {null} else heap_bytes(at + F{number}))" if null else f"heap_bytes(at + F{number})"
        )
    if layout.logged:
        source.add(
            indent,
            """
if load_int64(pane + LOG_USED) >= load_int64(pane + LOG_LIMIT):
    store_int64(state + FULL_PANE, pane)
    stop = LOG_FULL
    break
""",
        )
    if not needs:
        return
    source.add(indent, f"needed = {' + '.join(needs)}")
    source.add(
        indent,
        """
if needed > 0 and needed > load_int64(pane + HEAP_LIMIT) - load_int64(pane + HEAP_USED):
    store_int64(state + WANTED_BYTES, needed)
    store_int64(state + FULL_PANE, pane)
    stop = HEAP_FULL
    break
""",
    )


def _write_group(source: Source, layout: GroupLayout, indent: int) -> None:
    """Find the group of the row's key in ``pane``, or make it."""
    add = source.add
    add_null_words(source, layout, indent)
    write_heap_check(source, layout, indent)
    add_key_words(source, layout, indent)
    add_lookup(source, layout, indent)
    add(
        indent,
        """
if entry == 0:
    count = load_int64(pane + GROUP_COUNT)
    if count >= load_int64(pane + GROUP_LIMIT):
        store_int64(state + FULL_PANE, pane)
        stop = GROUPS_FULL
        break
""",
    )
    add_entry(source, layout, indent + 1, checked=True)
    add(indent + 1, f"group = groups + count * {layout.bytes}")
    add_group_start(source, layout, indent + 1)


def _write_group_update(source: Source, layout: GroupLayout, indent: int) -> None:
    add_updates(source, layout, indent)
    add_log_entry(source, layout, indent)
    if layout.keeps_emitted:
        source.add(
            indent,
            f"""
flags = load_int64(group + {layout.dirty_at})
if flags & 1 == 0:
    store_int64(group + {layout.dirty_at}, flags | 1)
    dirty_count = load_int64(pane + DIRTY_COUNT)
    store_int64(load_int64(pane + DIRTY) + dirty_count * 8, (group - groups) // {layout.bytes})
    store_int64(pane + DIRTY_COUNT, dirty_count + 1)
""",
        )


def write_merge(source: Source, layout: GroupLayout) -> None:
    """``merge``: merge every group of one pane into another, which has room for all of them.

    *places* receives, for each group, its number in the other pane.
    """
    add = source.add
    add(0, "\n\n@kernel\ndef merge(pane, other_pane, places, state):")
    add_table_loads(source, layout, 1)
    add(
        1,
        """
heap = load_int64(other_pane + HEAP)
heap_mask = WHOLE
others = load_int64(other_pane + GROUPS)
for number in range(load_int64(other_pane + GROUP_COUNT)):
""",
    )
    add(2, f"other = others + number * {layout.bytes}")
    add(2, "hashed = load_int64(other)")
    for word, _, at in layout.key_nulls:
        add(2, f"key_nulls{word} = load_int64(other + {at})")
    for number, (key, at) in enumerate(zip(layout.keys, layout.key_at, strict=True)):
        add(2, f"key{number} = load_int64(other + {at})")
        kind = layout.kind(key.field)
        if kind in ("string", "wide"):
            add(2, f"key{number}_{'rest' if kind == 'string' else 'high'} = load_int64(other + {at + 8})")
    add_lookup(source, layout, 2)
    add(2, "if entry == 0:\n    count = load_int64(pane + GROUP_COUNT)")
    add_entry(source, layout, 3, checked=False)
    add(3, f"group = groups + count * {layout.bytes}")
    add(3, f"copy_bytes(group, other, {layout.components_from})")
    for key, at in zip(layout.keys, layout.key_at, strict=True):
        if layout.kind(key.field) == "string":
            add(3, f"keep_string(group + {at}, other + {at}, heap, heap_mask, pane)")
    for component, offset in layout.component_at.items():
        add_start(source, layout, component, offset, 3, row=False)
    if layout.has_arrival:
        add(2, "else:")
        add(
            3,
            f"""
if load_int64(other + {layout.arrival_at}) < load_int64(group + {layout.arrival_at}):
    store_int64(group + {layout.arrival_at}, load_int64(other + {layout.arrival_at}))
""",
        )
    add_merges(source, layout, 2)
    add(2, f"store_int64(places + number * 8, (group - groups) // {layout.bytes})")
