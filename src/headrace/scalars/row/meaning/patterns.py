"""LIKE and RLIKE. A regular expression is only taken where Java's and Python's are known to find the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from headrace.scalars.row.meaning.failed import Failed

Test = Callable[[str], bool]
_BREAKS = "\\n\\r\\u0085\\u2028\\u2029"  # what Java's dot does not match
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\u0085\u2028\u2029])?\Z)"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": " \\t\\n\\x0b\\f\\r"}
_LETTERS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}
_PLAIN = re.compile(r"[^\\.\[\]{}()*+?^$|#\s&~-]")
_TIMES = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_ESCAPED = ".[]{}()*+?^$|\\/-#&~ \"'<>=!:;,@%_"


@lru_cache(maxsize=1024)
def like(pattern: str, escape: str = "\\") -> Test:
    """What tests a text for LIKE pattern; `Failed` if the pattern ends in the middle of an escape, or escapes what needs none."""
    said, signs = "", iter(pattern)
    for sign in signs:
        if sign == escape:
            following = next(signs, None)
            if following is None or following not in ("_", "%", escape):
                raise Failed(f"{pattern!r} is not a pattern: {escape} stands before _, % and {escape} only")
            said += re.escape(following)
        else:
            said += "." if sign == "_" else ".*" if sign == "%" else re.escape(sign)
    match = re.compile(said, re.DOTALL).fullmatch
    return lambda text: match(text) is not None


@lru_cache(maxsize=1024)
def regular(pattern: str) -> Test | None:
    """What tests a text for RLIKE pattern; None if the pattern may mean something else in Java."""
    said = _Translation(pattern).whole()
    if said is None:
        return None
    search = re.compile(said).search
    return lambda text: search(text) is not None


@lru_cache(maxsize=1024)
def separator(pattern: str) -> str | None:
    """The text that a regular expression stands for, if it is one: the sign behind a backslash, or alone in brackets."""
    said, at = "", 0
    while at < len(pattern):
        if pattern[at] == "\\":
            if at + 1 == len(pattern) or pattern[at + 1] not in _ESCAPED:
                return None
            said, at = said + pattern[at + 1], at + 2
        elif pattern[at] == "[" and pattern[at + 2 : at + 3] == "]" and pattern[at + 1] not in "\\^[]&":
            said, at = said + pattern[at + 1], at + 3
        elif pattern[at] in ".[]{}()*+?^$|":
            return None
        else:
            said, at = said + pattern[at], at + 1
    return said


class _Translation:
    """Goes through a pattern of what both languages have, and writes it for Python."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0

    def whole(self) -> str | None:
        said = self._choices()
        return said if said is not None and self.at == len(self.pattern) else None

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _choices(self) -> str | None:
        parts = []
        while True:
            part = self._sequence()
            if part is None:
                return None
            parts.append(part)
            if self._next() != "|":
                return "|".join(parts)
            self.at += 1

    def _sequence(self) -> str | None:
        said = ""
        while self._next() not in ("", "|", ")"):
            one = self._one()
            if one is None:
                return None
            said += one
        return said

    def _one(self) -> str | None:
        sign = self._next()
        if sign in ("^", "$"):
            self.at += 1
            if self._next() in ("*", "+", "?", "{"):
                return None
            return "\\A" if sign == "^" else _END
        atom = self._atom(sign)
        return None if atom is None else self._repeated(atom)

    def _atom(self, sign: str) -> str | None:
        self.at += 1
        match sign:
            case ".":
                return f"[^{_BREAKS}]"
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case " " | "#" | "&" | "~" | "-":
                return re.escape(sign)
        return re.escape(sign) if _PLAIN.match(sign) else None

    def _group(self) -> str | None:
        if self._next() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                return None
            self.at += 2
        inner = self._choices()
        if inner is None or self._next() != ")":
            return None
        self.at += 1
        return f"(?:{inner})"

    def _escape(self) -> str | None:
        sign = self._next()
        self.at += 1
        if sign in _CLASSES and sign:
            return f"[{_CLASSES[sign]}]"
        if sign.lower() in _CLASSES and sign:
            return f"[^{_CLASSES[sign.lower()]}]"
        if sign in _LETTERS and sign:
            return _LETTERS[sign]
        return re.escape(sign) if sign and sign in _ESCAPED else None

    def _class(self) -> str | None:
        """[abc], [^a-z]: letters, digits and ranges of them, and signs that mean nothing in either language."""
        found = re.compile(
            r"(\^?)((?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.,:;@%/ !=<>*+?$()|#]|\\[dws.\\/+*?$^()\[\]|-])+)-?\]"
        ).match(self.pattern, self.at)
        if found is None:
            return None
        self.at = found.end()
        body = re.sub(r"\\([dws])", lambda m: _CLASSES[m[1]], found[2])
        try:
            re.compile(f"[{body}]")
        except re.error:
            return None
        return f"[{found[1]}{body}{'-' if found[0].endswith('-]') else ''}]"

    def _repeated(self, atom: str) -> str | None:
        sign = self._next()
        if sign in ("*", "+", "?") and sign:
            self.at += 1
            atom += sign
        elif sign == "{":
            found = _TIMES.match(self.pattern, self.at)
            if found is None or (found[3] and int(found[3]) < int(found[1])):
                return None
            self.at = found.end()
            atom += found[0]
        else:
            return atom
        if self._next() == "?":
            self.at += 1
            return atom + "?"
        return None if self._next() in ("+", "*", "{") and self._next() else atom
