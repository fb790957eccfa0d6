"""Windows in square brackets."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import TokenType

from headrace.sql.errors import Span, Text
from headrace.sql.parse.durations import UNIT_WORDS, duration, whole_number
from headrace.sql.parse.expressions import scalar, scalars
from headrace.sql.parse.syntax import Name, Scalar, WindowClause, WindowSpec
from headrace.sql.parse.tokens import Cursor, span, words

KINDS = ("RANGE", "ROWS", "UNBOUNDED", "SIZE", "NOW", "DELTA", "SESSION", "LANDMARK", "FIXED")
CLAUSES = ("LAG", "SLIDE", "EVERY", "ON", "SYSTEM", "WHERE", "PARTITIONED BY", "FROM", "TO")
AFTER_ON = ("EVERY", "PARTITIONED BY", "PARTITION BY", "WHERE")
HINT = "there are [RANGE 5 MINUTES], [ROWS 100], [UNBOUNDED] and [SIZE 1 HOUR EVERY 5 MINUTES]; see docs/windows.md"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much: microseconds of application or system time, a number of rows, or a distance on a field."""

    value: int | float
    unit: str  # time | rows | field
    system: bool = False
    on: Scalar | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RangeSpec(WindowSpec):
    """`RANGE size LAG lag`, in microseconds of application or system time."""

    size: int
    lag: int = 0
    system: bool = False


@dataclass(frozen=True, slots=True)
class RowsSpec(WindowSpec):
    """`ROWS n PARTITIONED BY ..`."""

    rows: int
    partition_by: tuple[Scalar, ...] = ()
    counts_rows = True


@dataclass(frozen=True, slots=True)
class UnboundedSpec(WindowSpec):
    """`UNBOUNDED`."""


@dataclass(frozen=True, slots=True)
class SizeSpec(WindowSpec):
    """`SIZE size EVERY every PARTITIONED BY ..`; `RANGE size LAG lag SLIDE every` is the same in CQL's words."""

    size: Amount
    every: Amount
    lag: int = 0
    partition_by: tuple[Scalar, ...] = ()

    @property
    def counts_rows(self) -> bool:
        return "rows" in (self.size.unit, self.every.unit)


@dataclass(frozen=True, slots=True)
class SpanSpec(WindowSpec):
    """`LANDMARK FROM start EVERY every`, `LANDMARK TO stop EVERY every`, or `FIXED FROM start TO stop`."""

    start: int | None
    stop: int | None
    every: int | None
    partition_by: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSpec(WindowSpec):
    """`SESSION gap`."""

    gap: int
    partition_by: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class DeltaSpec(WindowSpec):
    """`DELTA limit ON expr`."""

    limit: float
    on: Scalar
    partition_by: tuple[Scalar, ...] = ()


EventSpec = RangeSpec | RowsSpec | UnboundedSpec  # what every event can look at


def at_window(cursor: Cursor) -> bool:
    """Whether a window comes next, where a subscript such as `a[1]` could stand too."""
    bracket, word, after = cursor.peek(), cursor.peek(1), cursor.peek(2)
    if bracket is None or bracket.token_type is not TokenType.L_BRACKET or word is None or after is None:
        return False
    if words(word) in (("UNBOUNDED",), ("NOW",)):
        return after.token_type is TokenType.R_BRACKET or words(after) == ("WHERE",)
    if words(word) in (("LANDMARK",), ("FIXED",)):
        return bool(words(after)) and words(after)[0] in ("FROM", "TO")
    known = bool(words(word)) and words(word)[0] in KINDS and after.token_type in (TokenType.STRING, TokenType.INTERVAL)
    return known or (bool(words(word)) and word.text[0].isalpha() and after.text[:1].isdigit())


def window(cursor: Cursor) -> WindowClause:
    """Read `[RANGE ..]`, `[ROWS ..]`, `[UNBOUNDED]`, `[SIZE ..]` and so on, with the predicate that applies before it."""
    start = cursor.index
    cursor.expect("[")
    spec = _spec(cursor)
    predicate = scalar(cursor, "a condition") if cursor.accept("WHERE") else None
    cursor.expect("]", what=_after(spec), near=() if cursor.at(*CLAUSES) else CLAUSES)
    return WindowClause(spec, predicate, cursor.since(start))


def _spec(cursor: Cursor) -> WindowSpec:
    match cursor.accept(*KINDS):
        case "RANGE":
            return _range(cursor)
        case "ROWS":
            rows = whole_number(cursor, "a number of rows")
            return RowsSpec(rows, _partitions(cursor))
        case "UNBOUNDED":
            return UnboundedSpec()
        case "NOW":
            return RangeSpec(1)  # the rows of the same microsecond
        case "SIZE":
            size = _amount(cursor, "the size of the window: a number of rows, or a time")
            often = "how often to look at the window: a number of rows, or a time"
            every = _amount(cursor, often) if cursor.accept("EVERY") else size
            return SizeSpec(size, every, 0, _partitions(cursor))
        case "DELTA":
            limit = _number(cursor, "how far a row may be from the first of its window")
            cursor.expect("ON", what="ON and what to compare")
            return DeltaSpec(limit, scalar(cursor, "a column or expression", AFTER_ON), _partitions(cursor))
        case "SESSION":
            return SessionSpec(duration(cursor, "how long a session may be silent"), _partitions(cursor))
        case "LANDMARK":
            ends = cursor.expect("FROM", "TO", what="FROM or TO and a time") == "TO"
            begins = instant(cursor)
            cursor.expect("EVERY", what="EVERY and how often to look at the window")
            looks = duration(cursor, "how often to look at the window")
            return SpanSpec(None if ends else begins, begins if ends else None, looks, _partitions(cursor))
        case "FIXED":
            cursor.expect("FROM", what="FROM and a time")
            begins = instant(cursor)
            cursor.expect("TO", what="TO and a time")
            return SpanSpec(begins, instant(cursor), None, _partitions(cursor))
    raise cursor.expected("RANGE, ROWS, UNBOUNDED, NOW, SIZE, DELTA, SESSION, LANDMARK or FIXED", near=KINDS, hint=HINT)


def _range(cursor: Cursor) -> WindowSpec:
    size = duration(cursor, "the length of the window")
    lag = duration(cursor, "how far the window lags") if cursor.accept("LAG") else 0
    system = cursor.accept("SYSTEM") is not None
    if cursor.accept("SLIDE"):
        slide = duration(cursor, "how often to look at the window")
        return SizeSpec(Amount(size, "time", system), Amount(slide, "time", system), lag, _partitions(cursor))
    return RangeSpec(size, lag, system)


def _amount(cursor: Cursor, what: str) -> Amount:
    """`10 SECONDS [SYSTEM]`, `10 ON field` or `10`."""
    start, token, after = cursor.index, cursor.peek(), cursor.peek(1)
    plain = token is not None and token.token_type is TokenType.NUMBER
    unit = after is not None and (
        (bool(words(after)) and words(after)[0] in UNIT_WORDS) or (token is not None and after.start == token.start)
    )
    if not plain or unit:
        if token is not None and token.token_type is not TokenType.NUMBER and not _can_be_time(cursor):
            raise cursor.expected(what, hint="for example 100, 10 SECONDS, 10 SECONDS SYSTEM or 10 ON id")
        micros = duration(cursor, what)
        return Amount(micros, "time", cursor.accept("SYSTEM") is not None, None, cursor.since(start))
    number = _number(cursor, what)
    if cursor.accept("ON"):
        field = scalar(cursor, "the field that the window is measured on", AFTER_ON)
        return Amount(number, "field", False, field, cursor.since(start))
    if not float(number).is_integer():
        raise cursor.text.error("a number of rows is a whole number", cursor.since(start), hint="or give a unit of time")
    return Amount(int(number), "rows", False, None, cursor.since(start))


def _can_be_time(cursor: Cursor) -> bool:
    token = cursor.peek()
    return token is not None and (cursor.at("INTERVAL") or token.token_type is TokenType.STRING or token.text[:1].isdigit())


def _number(cursor: Cursor, what: str) -> float:
    token = cursor.peek()
    written = cursor.text.slice(span(token)) if token is not None and token.token_type is TokenType.NUMBER else ""
    if not re.fullmatch(r"\d{1,15}(\.\d{1,9})?", written):
        raise cursor.expected(what)
    cursor.index += 1
    return int(written) if written.isdigit() else float(written)


def instant(cursor: Cursor) -> int:
    """A time in a string, in UTC unless it says otherwise, as microseconds since 1970."""
    cursor.accept("TIMESTAMP", "DATE")
    return instant_of(cursor.text, cursor.string("a time, for example '2026-01-01 12:00:00'"))


def instant_of(text: Text, written: Name) -> int:
    """The same of a string that has been read."""
    try:
        when = dt.datetime.fromisoformat(written.text.strip().replace("/", "-"))
        when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
        return (when - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    except (ValueError, OverflowError) as error:
        message = f"{written.text!r} is not a time"
        raise text.error(message, written.span, hint="for example '2026-01-01 12:00:00'") from error


def _partitions(cursor: Cursor) -> tuple[Scalar, ...]:
    return scalars(cursor, "a column", ("WHERE",)) if cursor.accept("PARTITIONED BY", "PARTITION BY") else ()


def _after(spec: WindowSpec) -> str:
    match spec:
        case RangeSpec(size=1) | UnboundedSpec():
            return "WHERE or ']'"
        case RangeSpec(lag=0, system=False):
            return "LAG, SYSTEM, SLIDE, WHERE or ']'"
        case RangeSpec():
            return "SLIDE, WHERE or ']'"
        case SizeSpec(partition_by=()) if spec.every is spec.size:
            return "EVERY, PARTITIONED BY, WHERE or ']'"
        case _ if not spec.partition_by:
            return "PARTITIONED BY, WHERE or ']'"
    return "WHERE or ']'"
