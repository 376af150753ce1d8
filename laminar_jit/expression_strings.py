"""The ``.str`` namespace: functions on strings.

Patterns, separators and replacements are constants, so that they are checked
and prepared once, when the query is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import TypeMismatch

if TYPE_CHECKING:
    from .expressions import Expr

BLANK = " "
WHITE_SPACE = " \t\n\r\f\v"


class StringMethods:
    """Functions on the strings of an expression; lengths and positions are code points."""

    def __init__(self, expression: Expr) -> None:
        self._expression = expression

    def starts_with(self, prefix: str | bytes) -> Expr:
        """Whether the value begins with *prefix*."""
        return self._expression.apply("starts_with", value=_constant(prefix, "starts_with"))

    def ends_with(self, suffix: str | bytes) -> Expr:
        """Whether the value ends with *suffix*."""
        return self._expression.apply("ends_with", value=_constant(suffix, "ends_with"))

    def contains(self, part: str | bytes) -> Expr:
        """Whether *part* occurs, taken as it stands; for a pattern use ``regexp_like``."""
        return self._expression.apply("contains", value=_constant(part, "contains"))

    def like(self, pattern: str) -> Expr:
        r"""SQL's LIKE: ``%`` any run, ``_`` one character, ``\`` escapes."""
        return self._expression.apply("like", value=_text(pattern, "like"))

    def ilike(self, pattern: str) -> Expr:
        """LIKE that ignores case."""
        return self._expression.apply("ilike", value=_text(pattern, "ilike"))

    def regexp_like(self, pattern: str) -> Expr:
        """Whether a regular expression (RE2) matches anywhere."""
        return self._expression.apply("regexp_like", value=_text(pattern, "regexp_like"))

    def position(self, part: str) -> Expr:
        """Where *part* first occurs, counted from 1; 0 when it does not."""
        return self._expression.apply("position", value=_text(part, "position"))

    def length(self) -> Expr:
        """Number of code points; of bytes for binary."""
        return self._expression.apply("length")

    len_chars = length

    def octet_length(self) -> Expr:
        """Number of bytes."""
        return self._expression.apply("octet_length")

    len_bytes = octet_length

    def upper(self) -> Expr:
        """In capital letters."""
        return self._expression.apply("upper")

    to_uppercase = upper

    def lower(self) -> Expr:
        """In small letters."""
        return self._expression.apply("lower")

    to_lowercase = lower

    def trim(self, characters: str = BLANK) -> Expr:
        """Without blanks, or the given *characters*, at both ends."""
        return self._expression.apply("trim", value=_text(characters, "trim"))

    def trim_left(self, characters: str = BLANK) -> Expr:
        """Without blanks, or the given *characters*, at the start."""
        return self._expression.apply("trim_left", value=_text(characters, "trim_left"))

    def trim_right(self, characters: str = BLANK) -> Expr:
        """Without blanks, or the given *characters*, at the end."""
        return self._expression.apply("trim_right", value=_text(characters, "trim_right"))

    def strip_chars(self, characters: str = WHITE_SPACE) -> Expr:
        """Without white space, or the given *characters*, at both ends."""
        return self.trim(characters)

    def strip_chars_start(self, characters: str = WHITE_SPACE) -> Expr:
        """Without white space, or the given *characters*, at the start."""
        return self.trim_left(characters)

    def strip_chars_end(self, characters: str = WHITE_SPACE) -> Expr:
        """Without white space, or the given *characters*, at the end."""
        return self.trim_right(characters)

    def substr(self, start: Any, length: Any = None) -> Expr:
        """The part from *start*, counted from 1, of *length* or to the end (SQL)."""
        if length is None:
            return self._expression.apply("substr", start)
        return self._expression.apply("substr", start, length)

    def slice(self, offset: int, length: Any = None) -> Expr:
        """The part from *offset*, counted from 0; a negative one counts from the end (Polars)."""
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise TypeMismatch(
                f"slice: offset is {offset!r}; expected a whole number. substr takes expressions."
            )
        start: Any = offset + 1
        if offset < 0:
            start = self.length() + offset + 1
        return self.substr(start, length)

    def left(self, count: Any) -> Expr:
        """The first *count* code points."""
        return self.substr(1, count)

    head = left

    def right(self, count: int) -> Expr:
        """The last *count* code points."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise TypeMismatch(f"right takes a count of 0 or more, got {count!r}")
        return self.substr(self.length() - count + 1)

    tail = right

    def concat(self, *others: Any) -> Expr:
        """This and *others* put together; NULL when one is NULL."""
        return self._expression.apply("concat", *others)

    def replace(self, part: str, replacement: str) -> Expr:
        """Every occurrence of *part* replaced, both taken as they stand."""
        return self._expression.apply(
            "replace", value=(_text(part, "replace"), _text(replacement, "replace"))
        )

    replace_all = replace

    def regexp_replace(self, pattern: str, replacement: str) -> Expr:
        r"""Every match of a regular expression (RE2) replaced; ``\1`` is the first group."""
        return self._expression.apply(
            "regexp_replace", value=(_text(pattern, "regexp_replace"), _text(replacement, "regexp_replace"))
        )

    def regexp_extract(self, pattern: str, group: int = 1) -> Expr:
        """What *group* of the first match holds; 0 is the whole match. NULL without a match."""
        return self._expression.apply("regexp_extract", value=(_text(pattern, "regexp_extract"), group))

    extract = regexp_extract

    def split_index(self, separator: str, index: Any) -> Expr:
        """Part number *index*, from 0, of the string cut at *separator*; NULL when there is none."""
        return self._expression.apply("split_index", index, value=_text(separator, "split_index"))

    def reverse(self) -> Expr:
        """The code points in reverse order."""
        return self._expression.apply("reverse")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeMismatch(f"{what} takes a constant string, got {value!r}")
    return value


def _constant(value: Any, what: str) -> str | bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeMismatch(f"{what} takes a constant string, got {value!r}")
    return value
