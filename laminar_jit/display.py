"""Results on the screen and in other libraries: ``lj.show``, ``lj.to_polars``, and tables in notebooks.

``run`` and ``lj.sql`` return a ``pyarrow.Table``, which no subclass can carry data for
and to which no method can be added (docs/decisions/067).
"""

from __future__ import annotations

import html
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from .errors import PlanError, TypeMismatch

if TYPE_CHECKING:
    import polars

#: Rows and columns that are shown of a larger table.
SHOWN_ROWS = 20
SHOWN_COLUMNS = 30

#: Longer texts are cut.
_LONGEST_CELL = 48
_CUT = "…"

#: For terminals that know no frames.
_WITHOUT_FRAMES = str.maketrans("─│┌┬┐├┼┤└┴┘", "-|+++++++++") | {ord(_CUT): "..."}


def show(table: Any, rows: int = SHOWN_ROWS, *, file: TextIO | None = None) -> None:
    """Print *table* with its types, as wide as the terminal; of a long one the first and last rows."""
    out = sys.stdout if file is None else file
    width = shutil.get_terminal_size((120, 24)).columns if out.isatty() else None
    text = as_text(_table(table), rows, width)
    try:
        text.encode(getattr(out, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_WITHOUT_FRAMES).encode("ascii", "backslashreplace").decode()
    out.write(text + "\n")


def to_polars(table: Any) -> polars.DataFrame:
    """*table*, or whatever speaks Arrow, as a Polars data frame, without a copy where the types fit."""
    try:
        import polars
    except ImportError:
        raise PlanError(
            "to_polars needs Polars, which is not installed: pip install polars. "
            "A result is a pyarrow.Table, and any library that reads Arrow takes it."
        ) from None
    frame = polars.from_arrow(_table(table))
    assert isinstance(frame, polars.DataFrame)
    return frame


def as_text(table: pa.Table, rows: int = SHOWN_ROWS, width: int | None = None) -> str:
    """*table* as lines of text: a frame, names, types and rows."""
    names, kinds, lines, numeric = _cells(table, rows)
    columns = [[name, kind, *cells] for name, kind, *cells in zip(names, kinds, *lines)]
    widths = [max(map(len, column)) for column in columns]
    kept = _that_fit(widths, width)
    if len(kept) < len(columns):
        middle = (len(kept) + 1) // 2
        columns = [columns[at] for at in kept]
        columns.insert(middle, [_CUT] * (2 + len(lines)))
        numeric = [numeric[at] for at in kept[:middle]] + [False] + [numeric[at] for at in kept[middle:]]
        widths = [max(map(len, column)) for column in columns]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(size) if right else cell.ljust(size)
            for cell, size, right in zip(cells, widths, numeric)
        ]
        return "│ " + " │ ".join(padded) + " │"

    def rule(left: str, cross: str, right: str) -> str:
        return left + cross.join("─" * (size + 2) for size in widths) + right

    rows_of_text = [[column[at] for column in columns] for at in range(2 + len(lines))]
    if not columns:
        return _summary(table)
    return "\n".join(
        [
            rule("┌", "┬", "┐"),
            *map(line, rows_of_text[:2]),
            rule("├", "┼", "┤"),
            *map(line, rows_of_text[2:]),
            rule("└", "┴", "┘"),
            _summary(table),
        ]
    )


def as_html(table: pa.Table, rows: int = SHOWN_ROWS) -> str:
    """*table* for a notebook; whatever a text holds is shown, and never read as HTML."""
    names, kinds, lines, numeric = _cells(table, rows)

    def row(tag: str, cells: list[str]) -> str:
        sides = [' style="text-align: right"' if right else ' style="text-align: left"' for right in numeric]
        inner = "".join(f"<{tag}{side}>{html.escape(cell)}</{tag}>" for cell, side in zip(cells, sides))
        return f"<tr>{inner}</tr>"

    head = row("th", names) + row("td", kinds)
    body = "".join(row("td", cells) for cells in lines)
    return (
        f'<table class="dataframe"><thead>{head}</thead><tbody>{body}</tbody></table>'
        f"<small>{html.escape(_summary(table))}</small>"
    )


def register_formatters(shell: Any) -> None:
    """Let an IPython *shell* or notebook show ``pyarrow`` tables, unless somebody else does already."""
    for name in ("Table", "RecordBatch"):
        for kind, formatter in (("text/html", as_html), ("text/plain", as_text)):
            known = shell.display_formatter.formatters[kind]
            kind_of_table = getattr(pa, name)
            taken = kind_of_table in known.type_printers or ("pyarrow.lib", name) in known.deferred_printers
            if not taken:
                known.for_type(kind_of_table, _printer(kind, formatter))


def _printer(kind: str, formatter: Any) -> Any:
    if kind == "text/html":
        return lambda table: formatter(_table(table))

    def plain(table: Any, printer: Any, cycle: bool) -> None:
        printer.text(formatter(_table(table), width=shutil.get_terminal_size((120, 24)).columns))

    return plain


def _table(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if hasattr(given, "__arrow_c_stream__") or isinstance(given, dict):
        return pa.table(given)
    raise TypeMismatch(
        f"a {type(given).__name__} was given; expected a table: what run(), lj.sql() or Session.read() "
        "returned, or other Arrow data."
    )


def _cells(table: pa.Table, rows: int) -> tuple[list[str], list[str], list[list[str]], list[bool]]:
    """Names, types, the cells of the rows to be shown, and which columns hold numbers."""
    shown = table
    cut = None
    if table.num_rows > rows:
        cut = (rows + 1) // 2
        shown = pa.concat_tables([table.slice(0, cut), table.slice(table.num_rows - (rows - cut))])
    columns = [[_cell(value) for value in column] for column in shown.columns]
    lines = [list(cells) for cells in zip(*columns)]
    if cut is not None:
        lines.insert(cut, [_CUT] * table.num_columns)
    numeric = [_is_number(kind) for kind in table.schema.types]
    return (
        [_cut(name) for name in table.column_names],
        [_cut(str(kind)) for kind in table.schema.types],
        lines,
        numeric,
    )


def _cell(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    try:
        return _cut(str(value.as_py()))
    except (OverflowError, ValueError):  # a time beyond the calendar of Python, or of nanoseconds
        return _cut(str(value.cast(pa.string())))


def _cut(text: str) -> str:
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + _CUT


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _summary(table: pa.Table) -> str:
    rows, columns = table.num_rows, table.num_columns
    return f"{rows:,} row{'s' * (rows != 1)}, {columns} column{'s' * (columns != 1)}"


def _that_fit(widths: list[int], width: int | None) -> list[int]:
    """The first and last columns that fit into *width*; at least one of each."""
    chosen = list(range(len(widths)))
    taken = [size + 3 for size in widths]
    while len(chosen) > 2 and (
        len(chosen) > SHOWN_COLUMNS
        or (
            width is not None
            and 1 + sum(taken[at] for at in chosen) + (4 if len(chosen) < len(widths) else 0) > width
        )
    ):
        del chosen[len(chosen) // 2]
    return chosen
