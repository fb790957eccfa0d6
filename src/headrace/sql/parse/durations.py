"""Durations: `5 MINUTES`, `1 HOUR 30 MINUTES`, `INTERVAL 5 MINUTES`, `INTERVAL '5' MINUTE`, `'5 minutes'`, `500ms`."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from headrace.plan.time import END_OF_TIME, SHORT_UNITS, UNITS, parse_duration
from headrace.sql.parse.tokens import STRINGS, Cursor, span, words

EXAMPLE = "for example 10 SECONDS"
UNIT_WORDS = frozenset(w.upper() for u in [*UNITS, "month"] for w in (u, u + "s")) | frozenset(u.upper() for u in SHORT_UNITS)
LONGEST = END_OF_TIME // 8


def duration(cursor: Cursor, what: str, *, bare_zero: bool = False) -> int:
    """Read a duration in microseconds; `bare_zero` lets 0 go without a unit."""
    start = cursor.index
    cursor.accept("INTERVAL")
    parts: list[str] = []
    while (part := _part(cursor, bare_zero=bare_zero and not parts)) is not None:
        parts.append(part)
    if not parts:
        raise cursor.expected(what, hint=EXAMPLE)
    where = cursor.since(start)
    with cursor.text.at(where):
        try:
            micros = parse_duration(" ".join(parts))
        except (OverflowError, ValueError):
            micros = LONGEST + 1
    if micros > LONGEST:
        raise cursor.text.error("this duration is too long", where, hint="at most some ten thousand years")
    return micros


def _part(cursor: Cursor, *, bare_zero: bool) -> str | None:
    """One number with its unit, as text; None where no number comes next."""
    token = cursor.peek()
    if token is None or not (token.token_type is TokenType.NUMBER or token.token_type in STRINGS or token.text[:1].isdigit()):
        return None
    if token.token_type in STRINGS:
        written = cursor.take().text
    else:  # `10s` comes as NUMBER, DCOLON, SMALLINT at one place: the text is what was written
        written = cursor.text.slice(span(token))
        while (after := cursor.peek()) and after.start == token.start:
            cursor.index += 1
    if not re.fullmatch(r"\s*[\d.]+\s*", written):
        return written
    unit = cursor.peek()
    if unit is not None and words(unit) and words(unit)[0] in UNIT_WORDS:
        return f"{written} {cursor.take().text}"
    if bare_zero and written.strip() == "0":
        return "0 seconds"
    raise cursor.expected(f"a unit of time after {written.strip()}", near=sorted(UNIT_WORDS), hint=EXAMPLE)


def whole_number(cursor: Cursor, what: str) -> int:
    token = cursor.peek()
    if token is None or token.token_type is not TokenType.NUMBER or not re.fullmatch(r"\d{1,15}", cursor.text.slice(span(token))):
        raise cursor.expected(what)
    return int(cursor.take().text)
