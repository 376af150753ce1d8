"""The kernels expressions are made of, against Python's own strings, integers and calendar."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.compiler.emit_strings import compile_pattern, simplest_match
from laminar_jit.kernels import arithmetic, calendar, numerals, search, strings

pytestmark = pytest.mark.kernels_logic

# Few characters, so that they meet; of one, two, three and four bytes.
texts = st.text(alphabet="ab,é語😀 ", max_size=12)
patterns = st.text(alphabet="ab%_\\é語", max_size=6)
int64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20), st.sampled_from([-(2**63), 2**63 - 1])
)


class Placed:
    """Bytes at an address, with nothing readable promised behind them."""

    def __init__(self, content: str | bytes) -> None:
        self.content = content.encode() if isinstance(content, str) else content
        self._memory = np.frombuffer(bytearray(self.content) or bytearray(1), np.uint8)

    @property
    def pair(self) -> tuple[int, int]:
        return self._memory.ctypes.data, len(self.content)

    def part(self, address: int, length: int) -> bytes:
        start = address - self._memory.ctypes.data
        assert 0 <= start <= start + length <= len(self.content)
        return self.content[start : start + length]


def like_as_regex(pattern: str) -> re.Pattern[str]:
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


@given(texts, patterns)
def test_like(text, pattern):
    expected = like_as_regex(pattern).fullmatch(text) is not None
    compiled = compile_pattern(pattern)
    subject, wanted = Placed(text), Placed(compiled)
    assert strings.like(*subject.pair, *wanted.pair) == expected
    function, part = simplest_match(compiled)
    simple = Placed(part)
    assert getattr(strings, function)(*subject.pair, *simple.pair) == expected


@pytest.mark.parametrize(
    ("pattern", "function"),
    [
        ("abc", "string_equal"),
        ("a%", "starts_with"),
        ("%a", "ends_with"),
        ("%a%", "contains"),
        ("a%b", "like"),
        ("%", "contains"),
        ("a_", "like"),
        ("a\\%", "string_equal"),
        ("%%a%%", "contains"),
    ],
)  # fmt: skip
def test_a_simple_pattern_is_matched_simply(pattern, function):
    assert simplest_match(compile_pattern(pattern))[0] == function


@given(texts, texts)
def test_comparison_and_search(text, other):
    left, right = Placed(text), Placed(other)
    assert strings.string_equal(*left.pair, *right.pair) == (text == other)
    order = strings.string_compare(*left.pair, *right.pair)
    assert np.sign(order) == (left.content > right.content) - (left.content < right.content)
    assert strings.starts_with(*left.pair, *right.pair) == text.startswith(other)
    assert strings.ends_with(*left.pair, *right.pair) == text.endswith(other)
    assert strings.contains(*left.pair, *right.pair) == (other in text)
    assert strings.character_position(*left.pair, *right.pair) == text.find(other) + 1
    assert strings.character_count(*left.pair) == len(text)


@given(texts, st.text(alphabet="ab語 ", max_size=3))
def test_trim(text, characters):
    subject, taken = Placed(text), Placed(characters)
    left = subject.part(*strings.trim_left(*subject.pair, *taken.pair)).decode()
    right = subject.part(*strings.trim_right(*subject.pair, *taken.pair)).decode()
    assert (left, right) == (
        (text.lstrip(characters), text.rstrip(characters)) if characters else (text, text)
    )


@given(texts, int64, int64)
def test_substr(text, start, count):
    subject = Placed(text)
    positions = range(start, start + max(count, 0))
    expected = "".join(character for at, character in enumerate(text, 1) if at in positions)
    assert subject.part(*strings.substr_characters(*subject.pair, start, count)).decode() == expected
    in_bytes = bytes(byte for at, byte in enumerate(subject.content, 1) if at in positions)
    assert subject.part(*strings.substr_bytes(*subject.pair, start, count)) == in_bytes


@given(texts, st.text(alphabet="ab,", min_size=1, max_size=2), st.integers(-2, 5))
def test_split_index(text, separator, index):
    subject, between = Placed(text), Placed(separator)
    address, length, found = strings.split_index(*subject.pair, *between.pair, index)
    parts = text.split(separator)
    assert found == (0 <= index < len(parts))
    assert subject.part(address, length).decode() == (parts[index] if found else "")


@given(texts, st.text(alphabet="ab", min_size=1, max_size=2), texts)
def test_replace_and_reverse(text, part, replacement):
    subject, sought, put = Placed(text), Placed(part), Placed(replacement)
    expected = text.replace(part, replacement).encode()
    length = strings.replaced_length(*subject.pair, *sought.pair, put.pair[1])
    assert length == len(expected)
    target = np.zeros(length + 1, np.uint8)
    strings.replace_into(target.ctypes.data, *subject.pair, *sought.pair, *put.pair)
    assert target[:length].tobytes() == expected
    back = np.zeros(len(subject.content) + 1, np.uint8)
    strings.reverse_into(back.ctypes.data, *subject.pair)
    assert back[:-1].tobytes().decode() == text[::-1]


@given(st.binary(max_size=40), st.integers(0, 300))
def test_a_string_in_a_row_reads_back(content, position):
    subject = Placed(content)
    row, heap = np.zeros(16, np.uint8), np.zeros(64, np.uint8)
    after = strings.store_string(
        row.ctypes.data, *subject.pair, heap.ctypes.data, position, position + 64, 63
    )
    head, rest = struct.unpack("<QQ", row.tobytes())
    assert head & 0xFFFFFFFF == len(content)
    assert struct.pack("<Q", head)[4:] == content[:4].ljust(4, b"\0")
    if len(content) <= 12:
        assert after == position
        assert struct.pack("<Q", rest) == content[4:].ljust(8, b"\0")
        return
    if after == strings.NO_ROOM:
        assert position % 64 + len(content) > 64
        return
    assert rest >= position
    assert rest % 64 + len(content) <= 64
    assert heap[rest % 64 : rest % 64 + len(content)].tobytes() == content
    assert after == rest + len(content)


@given(int64, st.integers(0, 18))
def test_numbers_as_text_and_back(value, scale):
    expected = format(decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=50)), "f").encode()
    length = numerals.decimal_length(value, scale)
    target = np.zeros(length + 1, np.uint8)
    numerals.write_decimal(target.ctypes.data, value, scale, length)
    assert target[:length].tobytes() == expected
    written = Placed(f" {value}\t")
    assert numerals.parse_int64(*written.pair) == (value, True)
    assert numerals.parse_uint64(*written.pair)[1] == (value >= 0)


@given(st.text(alphabet="+-0123456789 .a", max_size=24))
def test_what_is_no_integer_is_not_read_as_one(text):
    subject = Placed(text)
    number = int(text.strip(), 10) if re.fullmatch(r"[+-]?[0-9]+", text.strip()) else None
    fits_signed = number is not None and -(2**63) <= number < 2**63
    fits_unsigned = number is not None and 0 <= number < 2**64
    value, fits = numerals.parse_int64(*subject.pair)
    assert (fits, value if fits else None) == (fits_signed, number if fits_signed else None)
    value, fits = numerals.parse_uint64(*subject.pair)
    assert (fits, int(value) if fits else None) == (fits_unsigned, number if fits_unsigned else None)


@given(st.integers(-3_000_000, 3_000_000))
def test_the_calendar_of_python_is_ours(day):
    date = datetime.date(1970, 1, 1).toordinal() + day
    if not 1 <= date <= datetime.date.max.toordinal():
        # Beyond Python's years: there and back, which the next test ties to the known ones.
        assert calendar.days_from_civil(*calendar.civil_from_days(day)) == day
        return
    expected = datetime.date.fromordinal(date)
    assert tuple(calendar.civil_from_days(day)) == (expected.year, expected.month, expected.day)
    assert calendar.days_from_civil(expected.year, expected.month, expected.day) == day
    assert calendar.iso_weekday(day) == expected.isoweekday()
    assert calendar.weekday(day) == expected.isoweekday() % 7
    assert calendar.day_of_year(day) == expected.timetuple().tm_yday
    assert (calendar.iso_year(day), calendar.iso_week(day)) == expected.isocalendar()[:2]
    assert calendar.quarter_of(day) == (expected.month + 2) // 3
    assert calendar.month_start(day) == day - expected.day + 1
    assert calendar.week_start(day) == day - expected.isoweekday() + 1
    assert calendar.year_start(day) == day - expected.timetuple().tm_yday + 1


@given(st.integers(-(2**31), 2**31 - 1))
def test_the_calendar_repeats_after_400_years(day):
    year, month, number = calendar.civil_from_days(day)
    assert tuple(calendar.civil_from_days(day + 146_097)) == (year + 400, month, number)
    assert calendar.days_in_month(year, month) == calendar.days_in_month(year + 400, month)


@given(int64, int64)
def test_checked_arithmetic(left, right):
    for name, exact in (("add", left + right), ("subtract", left - right), ("multiply", left * right)):
        value, fits = getattr(arithmetic, f"{name}_int64")(left, right)
        assert fits == (-(2**63) <= exact < 2**63)
        assert not fits or value == exact
        unsigned = np.uint64(left % 2**64), np.uint64(right % 2**64)
        value, fits = getattr(arithmetic, f"{name}_uint64")(*unsigned)
        exact = {"add": int.__add__, "subtract": int.__sub__, "multiply": int.__mul__}[name](
            *map(int, unsigned)
        )
        assert fits == (0 <= exact < 2**64)
        assert not fits or int(value) == exact
    if right != 0:
        quotient, fits = arithmetic.divide_int64(left, right)
        exact = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        assert fits == (exact < 2**63)
        assert not fits or quotient == exact
        assert arithmetic.modulo_int64(left, right) == int(math.copysign(1, left)) * (abs(left) % abs(right))
    if right > 0:
        assert arithmetic.floor_divide(left, right) == left // right
        assert arithmetic.floor_modulo(left, right) == left % right


@given(st.lists(int64, max_size=20), int64)
def test_search_in_a_sorted_table(values, wanted):
    table = np.array(sorted(set(values)), np.int64)
    assert search.find_int64(wanted, table.ctypes.data, len(table)) == (wanted in values)
    assert all(search.find_int64(value, table.ctypes.data, len(table)) for value in values)
    floats = np.array(sorted({float(value) for value in values}), np.float64)
    assert search.find_float64(float(wanted), floats.ctypes.data, len(floats)) == (float(wanted) in floats)
    assert not search.find_float64(math.nan, floats.ctypes.data, len(floats))


@given(st.floats())
def test_floats_become_integers_or_say_so(value):
    whole = math.trunc(value) if math.isfinite(value) else None
    found, fits = arithmetic.float_to_int64(value)
    assert fits == (whole is not None and -(2**63) <= whole < 2**63)
    assert not fits or found == whole
    found, fits = arithmetic.float_to_uint64(value)
    assert fits == (whole is not None and 0 <= whole < 2**64)
    assert not fits or int(found) == whole
