"""Results are shown as people expect: in a terminal, in IPython and as Polars data frames."""

from __future__ import annotations

import html.parser
import io
import json
import subprocess
import sys
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import laminar_jit as lj
from laminar_jit import display
from laminar_jit.errors import PlanError, TypeMismatch

TABLE = pa.table({"name": ["ada", None, "<b>bob</b>\x1b"], "n": [1, 22, None]})


def test_a_table_is_printed_under_its_names_and_types() -> None:
    out = io.StringIO()
    lj.show(TABLE, file=out)
    assert out.getvalue() == (
        "┌────────────────┬───────┐\n"
        "│ name           │     n │\n"
        "│ string         │ int64 │\n"
        "├────────────────┼───────┤\n"
        "│ ada            │     1 │\n"
        "│ NULL           │    22 │\n"
        "│ <b>bob</b>\\x1b │  NULL │\n"
        "└────────────────┴───────┘\n"
        "3 rows, 2 columns\n"
    )


def test_a_long_table_shows_its_first_and_last_rows() -> None:
    lines = display.as_text(pa.table({"n": range(1000)}), rows=5).splitlines()
    shown = [line.strip("│ ") for line in lines[4:-2]]
    assert shown == ["0", "1", "2", "…", "998", "999"]
    assert lines[-1] == "1,000 rows, 1 column"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_wide_table_shows_its_outer_columns(width: int) -> None:
    table = pa.table({f"column {at}": ["x" * 100] for at in range(20)} | {"last": [1]})
    table = table.select(["last", *table.column_names[:-1]])
    lines = display.as_text(table, width=max(width, 66)).splitlines()
    assert max(map(len, lines)) <= max(width, 66)
    assert " last " in lines[1] and "column 19" in lines[1] and "…" in lines[1]
    assert lines[-1] == "1 row, 21 columns"


def test_what_python_cannot_hold_is_shown_too() -> None:
    times = pa.array([2**62, 1], pa.timestamp("us"))
    assert str(2**62) in display.as_text(pa.table({"t": times}))
    # Without pandas Python has no nanoseconds either.
    assert "000000001" in display.as_text(pa.table({"t": pa.array([1], pa.timestamp("ns"))}))


def test_a_terminal_without_frames_gets_plain_lines() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    lj.show({"k": ["ä"]}, file=out)
    out.seek(0)
    assert out.read().splitlines()[3:5] == ["+--------+", "| \\xe4      |"]


def test_results_become_data_frames() -> None:
    query = lj.source("s", {"k": "string", "n": "int64"}).filter(lj.col("n") > 1)
    result = query.run(s=pa.table({"k": ["a", "b", "c"], "n": [1, 2, 3]}))
    assert isinstance(result, pa.Table)
    frame = lj.to_polars(result)
    assert isinstance(frame, polars.DataFrame)
    assert frame.rows() == [("b", 2), ("c", 3)]
    assert result.to_pandas()["n"].tolist() == [2, 3]
    assert lj.to_polars(result.to_batches()[0]).rows() == frame.rows()


def test_without_polars_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PlanError, match="pip install polars"):
        lj.to_polars(TABLE)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="a list was given"):
        lj.show([1, 2])


class Cells(html.parser.HTMLParser):
    """The texts of a page, and its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(autouse=True)
def no_profile_of_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))


@pytest.fixture
def shell() -> InteractiveShell:
    return InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))


def test_a_notebook_shows_a_table_and_runs_nothing_of_it(shell: InteractiveShell) -> None:
    before, _ = shell.display_formatter.format(TABLE)
    assert "text/html" not in before
    lj.load_ipython_extension(shell)
    shown, _ = shell.display_formatter.format(TABLE)
    cells = Cells(shown["text/html"])
    assert cells.texts[:4] == ["name", "n", "string", "int64"]
    assert "<b>bob</b>\\x1b" in cells.texts and "b" not in cells.tags
    assert "│ ada" in shown["text/plain"]
    batch, _ = shell.display_formatter.format(TABLE.to_batches()[0])
    assert batch["text/html"] == shown["text/html"]


def test_a_formatter_of_somebody_else_stays(shell: InteractiveShell) -> None:
    shell.display_formatter.formatters["text/html"].for_type(pa.Table, lambda table: "mine")
    lj.load_ipython_extension(shell)
    assert shell.display_formatter.format(TABLE)[0]["text/html"] == "mine"


def test_the_extension_is_loaded_by_name(shell: InteractiveShell) -> None:
    with capture_output() as printed:
        shell.run_cell("%load_ext laminar_jit\nimport pyarrow\npyarrow.table({'n': [7]})")
    assert "│     7 │" in printed.stdout


def test_importing_it_in_ipython_is_enough_and_elsewhere_touches_nothing() -> None:
    program = (
        "import json, sys\n"
        "hook = sys.displayhook\n"
        "import laminar_jit, pyarrow\n"
        "alone = ['IPython' in sys.modules, 'pandas' in sys.modules, sys.displayhook is hook]\n"
        "del sys.modules['laminar_jit']\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "import laminar_jit\n"
        "shown, _ = shell.display_formatter.format(pyarrow.table({'n': [7]}))\n"
        "print(json.dumps([alone, sorted(shown)]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [[False, False, True], ["text/html", "text/plain"]]
