"""Names and texts of users stay data, whatever they hold."""

from __future__ import annotations

import ast

import pyarrow as pa
import pytest

from laminar_jit import types
from laminar_jit.compiler.nullability import make
from laminar_jit.compiler.ring0 import Ring0Program, Ring0Spec
from laminar_jit.compiler.typed import column, literal
from tests.compiler.harness import assert_forms_agree, run

NASTY = [
    "'",
    '"',
    '"""',
    "'''",
    "\\",
    "\\n",
    "a\nimport os\nos._exit(66)",
    "x\r\n    raise SystemExit(66)",
    "\u2028raise SystemExit(66)",
    "\x00",
    "\x0craise SystemExit(66)",
    "{literals}",
    "{0.__class__}",
    "%s%d",
    "__import__('os')._exit(66)",
    "# -*- coding: utf-7 -*-",
    "coding: latin-1",
    "); raise SystemExit(66) #",
    "ring0_name",
    "def ring0_name(",
    "from laminar_jit.kernels.jit import kernel\n",
    "TARGET",
    "row",
    "state",
    "for",
    "日本語 😀 é",
    "a" * 5000,
    "",
]


def spec_with(name: str, text: str) -> Ring0Spec:
    """A plan in which *name* is a column, an alias, and *text* a constant everywhere one can stand."""
    subject = column(name, types.STRING)
    outputs = (
        (name, subject),
        (text, make("equal", (subject, literal(text, types.STRING)), types.BOOL)),
        ("part", make("contains", (subject,), types.BOOL, text)),
        (
            "like",
            make(
                "like",
                (subject,),
                types.BOOL,
                text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_"),
            ),
        ),
        ("glued", make("concat", (subject, literal(text, types.STRING)), types.STRING)),
        ("one of", make("is_in", (subject,), types.BOOL, (text, "other"))),
    )
    return Ring0Spec({name: (types.STRING, True)}, (), outputs, (0,))


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_nothing_but_the_data_changes(nasty):
    program = Ring0Program(spec_with(nasty, nasty))
    batch = pa.record_batch({nasty: [nasty, "other", None, nasty + "x"]})
    written = run(program, batch, "python")
    assert written.column(0) == [nasty.encode(), b"other", None, nasty.encode() + b"x"]
    assert written.column(1) == [True, nasty == "other", None, False]
    assert written.column(2) == [True, nasty in "other", None, True]
    assert written.column(3) == [True, False, None, False]
    assert written.column(4) == [
        nasty.encode() * 2,
        b"other" + nasty.encode(),
        None,
        nasty.encode() + b"x" + nasty.encode(),
    ]
    assert written.column(5) == [True, True, None, False]


def test_all_at_once_compiled():
    # Every third: plain Python has run the same source for all of them.
    chosen = NASTY[::3]
    outputs = tuple(
        (text, make("equal", (column(text, types.STRING), literal(text, types.STRING)), types.BOOL))
        for text in chosen
    )
    spec = Ring0Spec(dict.fromkeys(NASTY, (types.STRING, True)), (), outputs)
    batch = pa.record_batch({text: [text, text + "x"] for text in chosen})
    written = assert_forms_agree(spec, batch)
    assert all(written.column(number) == [True, False] for number in range(len(chosen)))


def code_of(source: str) -> str:
    """The syntax tree of *source* without its names: what is executed, whatever the comments say."""
    return ast.dump(ast.parse(source))


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_the_code_is_the_same_whatever_the_texts_are(nasty):
    harmless = Ring0Program(spec_with("n" * max(1, len(nasty)), "x" * len(nasty.encode())))
    program = Ring0Program(spec_with(nasty, nasty))
    assert program.source.isascii()
    assert all(len(line) < 200 for line in program.source.splitlines())
    if nasty in ("", "other"):
        # Of no length, or found among the other constants: another plan, not another code.
        return
    expected = code_of(harmless.source.replace(harmless.name, "kernel_name"))
    assert code_of(program.source.replace(program.name, "kernel_name")) == expected
