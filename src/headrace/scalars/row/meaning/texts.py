"""Strings: sequences of code points, as Spark's UTF-8 strings are."""

from __future__ import annotations

import re
from math import isinf, nan
from unicodedata import category

from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.meaning.numbers import single, single_of

BLANKS = "".join(map(chr, (*range(33), 127)))  # what is cut off before a text is read as a value
_JAVA_BLANKS = BLANKS[:-1]
_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\Z")
_HEX = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?\Z")
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})
_NAMED = {
    "NaN": nan, "+NaN": nan, "-NaN": nan, "Infinity": float("inf"), "+Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_LOWERED = {
    "inf": float("inf"), "+inf": float("inf"), "infinity": float("inf"), "+infinity": float("inf"), "-inf": float("-inf"),
    "-infinity": float("-inf"), "nan": nan,
}  # fmt: skip
MOST_INT = 2**31 - 1


def read_whole(text: str, least: int, most: int, kind: str) -> int:
    """A text as an integer."""
    given = text.strip(BLANKS)
    if _WHOLE.match(given) is None:
        raise Failed(f"{text!r} is not a {kind}")
    found = int(given) if len(given) < 4000 else int(given.lstrip("+-").lstrip("0")[:30] or "0")
    if not least <= found <= most:
        raise Failed(f"{text!r} does not fit into {kind}")
    return found


def read_double(text: str) -> float:
    """A text as Java's parseDouble reads it, and the names that Spark knows besides."""
    given = text.strip(_JAVA_BLANKS)
    if _REAL.match(given) is not None:
        return float(given.rstrip("dDfF"))
    return _other_double(text, given)


def _other_double(text: str, given: str) -> float:
    if given in _NAMED:
        return _NAMED[given]
    if _HEX.match(given) is not None:
        head, power, tail = re.split("([pP])", given)
        try:
            return float.fromhex(f"{head}{power}{tail.rstrip('dDfF')}")
        except OverflowError:
            return float("-inf") if given.startswith("-") else float("inf")
    found = _LOWERED.get(given.lower())
    if found is None:
        raise Failed(f"{text!r} is not a number")
    return found


def read_float(text: str) -> float:
    """A text as Java's parseFloat reads it: rounded once."""
    near = read_double(text)
    if near != near or isinf(near) or near == 0.0:
        return near
    given = text.strip(_JAVA_BLANKS)
    if _REAL.match(given) is None:
        return single(near)
    return single_of_text(given.rstrip("dDfF"), near)


def single_of_text(number: str, near: float) -> float:
    from decimal import Decimal

    exact = Decimal(number)
    return single_of(exact) if exact != Decimal(near) else single(near)


def read_boolean(text: str) -> bool:
    given = text.strip(BLANKS).lower()
    if given in _TRUE:
        return True
    if given in _FALSE:
        return False
    raise Failed(f"{text!r} is not a BOOLEAN")


def decoded(value: bytes) -> str:
    """BINARY as a STRING. Spark would keep bytes that are no text in one; here there is no such string."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Failed("the bytes are no UTF-8") from error


# Letters that have their other case since Unicode 16 and 17: Spark's tables have them, those of older Pythons have not.
_NEWER = {
    0x019B: 0xA7DC, 0x0264: 0xA7CB, 0x1C8A: 0x1C89, 0xA7CD: 0xA7CC, 0xA7CF: 0xA7CE, 0xA7D3: 0xA7D2, 0xA7D5: 0xA7D4,
    0xA7DB: 0xA7DA, **{0x10D70 + i: 0x10D50 + i for i in range(22)}, **{0x16EBB + i: 0x16EA0 + i for i in range(25)},
}  # fmt: skip
_OLDER = {upper: lower for lower, upper in _NEWER.items()}


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.upper().translate(_NEWER)


def lower(text: str) -> str:
    """A sigma at the end of a word is another one; what a word is depends on the letters that are known."""
    if text.isascii():
        return text.lower()
    if "Σ" in text and any(sign == "ʕ" or category(sign) == "Cn" for sign in text):
        raise Failed(f"the small letters of {text!r} depend on the version of Unicode")
    return text.lower().translate(_OLDER)


def substring(text: str, start: int, length: int = MOST_INT) -> str:
    """Positions begin with 1, and count from the end below 0; what lies before the text is cut off."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = min(first + length, MOST_INT)
    return text[max(first, 0) : max(end, 0)] if end > first else ""


def left(text: str, length: int) -> str:
    return substring(text, 1, length)


def right(text: str, length: int) -> str:
    return "" if length <= 0 else substring(text, -length)


def replace(text: str, search: str, by: str = "") -> str:
    return text.replace(search, by) if search else text


def locate(search: str, text: str, start: int = 1) -> int:
    if start < 1:
        return 0
    return text.find(search, start - 1) + 1 if search else 1


def instr(text: str, search: str) -> int:
    return text.find(search) + 1


def pad_left(text: str, length: int, pad: str = " ") -> str:
    missing = length - len(text)
    return _padding(pad, missing) + text if missing > 0 and pad else text[: max(length, 0)]


def pad_right(text: str, length: int, pad: str = " ") -> str:
    missing = length - len(text)
    return text + _padding(pad, missing) if missing > 0 and pad else text[: max(length, 0)]


def _padding(pad: str, length: int) -> str:
    return (pad * (length // len(pad) + 1))[:length]


def repeat(text: str, times: int) -> str:
    return text * max(times, 0)


def reverse(text: str) -> str:
    return text[::-1]


def translate(text: str, of: str, to: str) -> str:
    """Each character of `of` becomes the one in its place in `to`, or goes; the first place of a character counts."""
    table: dict[int, str] = {}
    for i, sign in enumerate(of):
        table.setdefault(ord(sign), to[i] if i < len(to) else "")
    return text.translate(table)


def substring_index(text: str, search: str, count: int) -> str:
    """What comes before the count-th separator; below zero, behind that from the end."""
    if not search or count == 0:
        return ""
    return _before(text, search, count) if count > 0 else _behind(text, search, -count)


def _before(text: str, search: str, count: int) -> str:
    """Searched from one place behind the last hit: hits may overlap."""
    at = -1
    for _ in range(count):
        at = text.find(search, at + 1)
        if at < 0:
            return text
    return text[:at]


def _behind(text: str, search: str, count: int) -> str:
    end = len(text)
    for _ in range(count):
        at = text.rfind(search, 0, end + len(search) - 1 if end < len(text) else len(text))
        if at < 0:
            return text
        end = at
    return text[end + len(search) :]


def split_part(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise Failed("the number of a part begins with 1")
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def ascii_of(text: str) -> int:
    return ord(text[0]) if text else 0
