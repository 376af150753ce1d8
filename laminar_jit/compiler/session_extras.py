"""Source of what only some session operators do: keep all values, and be shown before they close.

Nothing here is written into the update of a plan that does not ask for it.
"""

from __future__ import annotations

from .aggregate_fragments import Source, argument, condition_of, null_test
from .aggregate_state import GroupLayout


def write_early_start(source: Source, layout: GroupLayout, indent: int) -> None:
    """A new session was never shown. Follows an ``if`` that holds for a record used before."""
    if not layout.shows_early:
        return
    # A record used before may still stand in the list of changed ones: its mark stays with it.
    source.add(indent, f"else:\n    store_int64(group + {layout.dirty_at}, 0)")
    source.add(indent, f"store_int64(group + {layout.shown_at}, 0)")


def write_changed(source: Source, layout: GroupLayout, indent: int, record: str) -> None:
    """Enter *record* into the list of changed sessions, once."""
    if not layout.shows_early:
        return
    source.add(
        indent,
        f"""
if load_int64({record} + {layout.dirty_at}) == 0:
    store_int64({record} + {layout.dirty_at}, 1)
    dirty_count = load_int64(pane + DIRTY_COUNT)
    store_int64(load_int64(pane + DIRTY) + dirty_count * 8, ({record} - groups) // {layout.bytes})
    store_int64(pane + DIRTY_COUNT, dirty_count + 1)
""",
    )


def write_merged_away(source: Source, layout: GroupLayout, indent: int) -> None:
    """What was shown of ``other`` has to be taken back: list it too."""
    source.add(indent, f"if load_int64(other + {layout.shown_at}) != 0:")
    write_changed(source, layout, indent + 1, "other")


def write_values_start(source: Source, layout: GroupLayout, indent: int) -> None:
    """A new session has no values."""
    if layout.logged:
        source.add(indent, f"store_int64(group + {layout.values_at}, 0)")
        source.add(indent, f"store_int64(group + {layout.values_at + 8}, 0)")


def write_value(source: Source, layout: GroupLayout, indent: int) -> None:
    """Put the row's values in front of the session's list, if some aggregate takes them.

    An entry is that of ``aggregate_fragments.add_log_entry``, with the link to the next entry of
    the session, plus one, in place of the group's number.
    """
    if not layout.logged:
        return
    source.add(indent, "bits = np.int64(0)")
    for bit, component in enumerate(layout.logged):
        condition = condition_of(layout, component)
        taken = f"bits |= {1 << bit}"
        source.add(indent, f"if {condition}:\n    {taken}" if condition else taken)
    source.add(indent, "if bits != 0:")
    inner = indent + 1
    source.add(
        inner,
        f"""
log_used = load_int64(pane + LOG_USED) + 1
entry_at = load_int64(pane + LOG) + (log_used - 1) * {layout.log_bytes}
store_int64(pane + LOG_USED, log_used)
store_int64(entry_at, load_int64(group + {layout.values_at}))
store_int64(entry_at + 8, ts)
store_int64(entry_at + 16, bits)
store_int64(group + {layout.values_at}, log_used)
if load_int64(group + {layout.values_at + 8}) == 0:
    store_int64(group + {layout.values_at + 8}, log_used)
""",
    )
    for (form, number), at in layout.log_at.items():
        if form == "string":
            null = null_test(layout, number)
            keep = f"keep_string(entry_at + {at}, at + F{number}, heap, heap_mask, pane)"
            if null:
                # An empty string: whoever moves strings to another heap reads every entry.
                source.add(inner, f"if {null}:\n    store_int64(entry_at + {at}, 0)")
                source.add(inner, f"    store_int64(entry_at + {at + 8}, 0)\nelse:\n    {keep}")
            else:
                source.add(inner, keep)
        else:
            source.add(inner, f"store_int64(entry_at + {at}, {argument(layout, form, number)})")


def write_values_merge(source: Source, layout: GroupLayout, indent: int) -> None:
    """The list of ``other`` goes in front of that of ``group``: two links, whatever their lengths."""
    if not layout.logged:
        return
    first, last = layout.values_at, layout.values_at + 8
    source.add(
        indent,
        f"""
if load_int64(other + {last}) != 0:
    entry_at = load_int64(pane + LOG) + (load_int64(other + {last}) - 1) * {layout.log_bytes}
    store_int64(entry_at, load_int64(group + {first}))
    store_int64(group + {first}, load_int64(other + {first}))
    if load_int64(group + {last}) == 0:
        store_int64(group + {last}, load_int64(other + {last}))
""",
    )
