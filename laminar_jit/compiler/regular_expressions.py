"""Groups of RE2 patterns: Arrow extracts only named ones, so every group gets a name."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMED = re.compile(r"\(\?P?<(\w+)>")


@dataclass(frozen=True)
class NamedGroups:
    """*pattern* with group k named ``gk``, and the number of groups."""

    pattern: str
    count: int


def name_groups(pattern: str) -> NamedGroups:
    """Name every group of a valid RE2 *pattern*."""
    out: list[str] = []
    count, at = 0, 0
    while at < len(pattern):
        end = _atom_end(pattern, at)
        atom = pattern[at:end]
        named = _NAMED.match(pattern, at)
        if named:
            count += 1
            atom, end = f"(?P<g{count}>", named.end()
        elif atom == "(" and pattern[at + 1 : at + 2] != "?":
            count += 1
            atom = f"(?P<g{count}>"
        out.append(atom)
        at = end
    return NamedGroups("".join(out), count)


def _atom_end(pattern: str, at: int) -> int:
    """Where the escape, the character class or the single character at *at* ends."""
    if pattern.startswith("\\Q", at):
        end = pattern.find("\\E", at)
        return len(pattern) if end < 0 else end + 2
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] == "[":
        return _class_end(pattern, at)
    return at + 1


def _class_end(pattern: str, at: int) -> int:
    at += 2 if pattern.startswith("^", at + 1) else 1
    first = True
    while at < len(pattern):
        if pattern[at] == "]" and not first:
            return at + 1
        if pattern.startswith("[:", at) and ":]" in pattern[at:]:
            at = pattern.index(":]", at) + 2
        else:
            at += 2 if pattern[at] == "\\" else 1
        first = False
    return at
