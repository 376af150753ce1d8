"""Time patterns of Java, PostgreSQL and C, parsed into the same tokens."""

from __future__ import annotations

import re

from .typed import TimeToken

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

Tokens = tuple[TimeToken, ...]


class PatternError(ValueError):
    """A pattern that cannot be read; the message says which part and what is known."""


def number(part: str, width: int) -> TimeToken:
    """A zero-padded number."""
    return TimeToken("number", part, width)


def text(given: str) -> TimeToken:
    """Text as it stands."""
    return TimeToken("text", texts=(given,))


def choice(part: str, texts: tuple[str, ...]) -> TimeToken:
    """One of several texts."""
    return TimeToken("choice", part, texts=texts)


def fraction(width: int) -> TimeToken:
    """Digits of the second's fraction."""
    return TimeToken("fraction", "fraction", width)


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:3] for name in names)


ISO_DATE: Tokens = (number("year", 4), text("-"), number("month", 2), text("-"), number("day", 2))


def parse_java(pattern: str) -> Tokens:
    """Patterns of Java's DateTimeFormatter and Spark's date_format."""
    tokens: list[TimeToken] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = at + 1
            quoted = ""
            while True:
                close = pattern.find("'", end)
                if close < 0:
                    raise PatternError(f"the quote at position {at + 1} is not closed")
                quoted += pattern[end:close]
                end = close + 1
                if not pattern.startswith("'", end):
                    break
                quoted += "'"
                end += 1
            tokens.append(text(quoted or "'"))
            at = end
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            tokens.append(_java_field(letter, end - at))
            at = end
        elif letter in "[]{}#":
            raise PatternError(f"{letter!r} is reserved; put it in single quotes")
        else:
            tokens.append(text(letter))
            at += 1
    return _merged(tokens)


_JAVA_NUMBERS = {
    "d": "day",
    "D": "doy",
    "H": "hour",
    "h": "hour12",
    "m": "minute",
    "s": "second",
}


def _java_field(letter: str, count: int) -> TimeToken:
    if letter in "yu":
        if letter == "y":
            return number("year2", 2) if count == 2 else number("era_year", count)
        return number("year2", 2) if count == 2 else number("year", count)
    if letter in "ML":
        if count <= 2:
            return number("month", count)
        return choice("month", MONTHS if count == 4 else _short(MONTHS))
    if letter == "E":
        return choice("isodow", DAYS if count == 4 else _short(DAYS))
    if letter in "Qq" and count <= 2:
        return number("quarter", count)
    if letter == "S":
        return fraction(count)
    if letter == "a" and count == 1:
        return choice("meridiem", ("AM", "PM"))
    if letter in _JAVA_NUMBERS and count <= (3 if letter == "D" else 2):
        return number(_JAVA_NUMBERS[letter], count)
    raise PatternError(
        f"{letter * count!r} is not known; known are y u M L d D H h m s S a E Q, and text in single quotes"
    )


def _cases(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return names, tuple(name.upper() for name in names), tuple(name.lower() for name in names)


def _padded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.ljust(9) for name in names)


def _postgres_fields() -> dict[str, TimeToken]:
    fields = {
        "YYYY": number("year", 4),
        "YY": number("year2", 2),
        "IYYY": number("isoyear", 4),
        "Q": number("quarter", 1),
        "MM": number("month", 2),
        "IW": number("week", 2),
        "DDD": number("doy", 3),
        "DD": number("day", 2),
        "ID": number("isodow", 1),
        "HH24": number("hour", 2),
        "HH12": number("hour12", 2),
        "HH": number("hour12", 2),
        "MI": number("minute", 2),
        "SS": number("second", 2),
        "MS": number("millisecond_of_second", 3),
        "US": number("microsecond_of_second", 6),
        **{f"FF{digits}": fraction(digits) for digits in range(1, 7)},
    }
    fields |= {name.lower(): token for name, token in fields.items()}
    for full, part, names in (("Month", "month", MONTHS), ("Day", "isodow", DAYS)):
        short = "Mon" if full == "Month" else "Dy"
        for written, texts in zip(_cases((full,)), _cases(names)):
            fields[written[0]] = choice(part, _padded(texts))
        for written, texts in zip(_cases((short,)), _cases(_short(names))):
            fields[written[0]] = choice(part, texts)
    for name in ("AM", "PM", "am", "pm"):
        fields[name] = choice("meridiem", ("AM", "PM") if name.isupper() else ("am", "pm"))
    for name in ("A.M.", "P.M.", "a.m.", "p.m."):
        fields[name] = choice("meridiem", ("A.M.", "P.M.") if name.isupper() else ("a.m.", "p.m."))
    return fields


_POSTGRES = _postgres_fields()
_POSTGRES_FIELD = re.compile("|".join(re.escape(name) for name in sorted(_POSTGRES, key=len, reverse=True)))


def parse_postgres(pattern: str) -> Tokens:
    """Patterns of PostgreSQL's to_char."""
    tokens: list[TimeToken] = []
    at, unpadded = 0, False
    while at < len(pattern):
        if pattern[at : at + 2] in ("FM", "fm"):
            unpadded, at = True, at + 2
            continue
        if pattern[at] == '"':
            close = pattern.find('"', at + 1)
            if close < 0:
                raise PatternError(f"the quote at position {at + 1} is not closed")
            tokens.append(text(pattern[at + 1 : close]))
            at = close + 1
            continue
        match = _POSTGRES_FIELD.match(pattern, at)
        if match:
            token = _POSTGRES[match[0]]
            tokens.append(_without_padding(token) if unpadded else token)
            at, unpadded = match.end(), False
        elif pattern[at].isascii() and pattern[at].isalpha():
            known = ", ".join(sorted(_POSTGRES, key=str.lower))
            raise PatternError(
                f"{pattern[at:]!r} begins with nothing known; known are {known} and FM, "
                "and text in double quotes"
            )
        else:
            tokens.append(text(pattern[at]))
            at += 1
    return _merged(tokens)


def _without_padding(token: TimeToken) -> TimeToken:
    if token.kind == "number":
        return number(token.part, 1)
    return TimeToken(token.kind, token.part, token.width, tuple(name.rstrip() for name in token.texts))


_C_FIELDS: dict[str, Tokens] = {
    "Y": (number("year", 4),),
    "y": (number("year2", 2),),
    "m": (number("month", 2),),
    "d": (number("day", 2),),
    "j": (number("doy", 3),),
    "H": (number("hour", 2),),
    "I": (number("hour12", 2),),
    "M": (number("minute", 2),),
    "S": (number("second", 2),),
    "f": (fraction(6),),
    "3f": (fraction(3),),
    "6f": (fraction(6),),
    "p": (choice("meridiem", ("AM", "PM")),),
    "A": (choice("isodow", DAYS),),
    "a": (choice("isodow", _short(DAYS)),),
    "B": (choice("month", MONTHS),),
    "b": (choice("month", _short(MONTHS)),),
    "u": (number("isodow", 1),),
    "w": (number("dow", 1),),
    "G": (number("isoyear", 4),),
    "V": (number("week", 2),),
    "F": ISO_DATE,
    "T": (number("hour", 2), text(":"), number("minute", 2), text(":"), number("second", 2)),
    "%": (text("%"),),
}
_C_FIELD = re.compile(r"%(-?)(\d?[A-Za-z%])")


def parse_c(pattern: str) -> Tokens:
    """Patterns of strftime."""
    tokens: list[TimeToken] = []
    at = 0
    while at < len(pattern):
        if pattern[at] != "%":
            tokens.append(text(pattern[at]))
            at += 1
            continue
        match = _C_FIELD.match(pattern, at)
        if match is None or match[2] not in _C_FIELDS:
            known = ", ".join(f"%{name}" for name in _C_FIELDS)
            raise PatternError(f"{pattern[at : at + 2]!r} is not known; known are {known}")
        found = _C_FIELDS[match[2]]
        tokens += [_without_padding(token) for token in found] if match[1] else found
        at = match.end()
    return _merged(tokens)


def _merged(tokens: list[TimeToken]) -> Tokens:
    """Neighbouring texts as one."""
    merged: list[TimeToken] = []
    for token in tokens:
        if token.kind == "text" and merged and merged[-1].kind == "text":
            merged[-1] = text(merged[-1].texts[0] + token.texts[0])
        else:
            merged.append(token)
    return tuple(merged)
