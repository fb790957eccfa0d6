"""Durations and instants: whole microseconds everywhere inside, words at the edges."""

from __future__ import annotations

import datetime as dt
import re

from headrace.errors import QueryError

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
YEAR = 365 * DAY

UNITS = {
    "microsecond": MICROSECOND, "millisecond": MILLISECOND, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY,
    "week": WEEK, "year": YEAR,
}  # fmt: skip
SHORT_UNITS = {"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day"}

# The frontier of a stream that has ended, and of one that has not begun. Half the int64 range, so that
# adding or taking off a window never overflows.
END_OF_TIME = 2**62
START_OF_TIME = -(2**62)
TABLE_TIME = -(2**61)  # when the rows of a table are there: before every event
NO_PROMISE = -(2**62)  # of a row that is an event, and no punctuation; `kernels.segments` has the same

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def unit_micros(word: str) -> int:
    """Microseconds of one unit, in singular, plural or short form, any case."""
    name = word.lower()
    name = SHORT_UNITS.get(name, name)
    name = name.removesuffix("s") if name not in UNITS else name
    if name in UNITS:
        return UNITS[name]
    if name == "month":
        raise QueryError("MONTH has no fixed length", hint="write the number of days, for example 30 DAYS")
    raise QueryError(f"unknown unit of time {word!r}", hint=f"use one of: {', '.join(UNITS)}")


def parse_duration(text: str) -> int:
    """Microseconds of a duration in words.

    >>> parse_duration("5 minutes"), parse_duration("1.5 s"), parse_duration("1 hour 30 min")
    (300000000, 1500000, 5400000000)
    """
    total, end = 0, 0
    for match in _DURATION.finditer(text):
        if match.start() != end:
            break
        total += round(float(match[1]) * unit_micros(match[2]))
        end = match.end()
    if end != len(text) or not text.strip():
        raise QueryError(f"{text!r} is not a duration", hint="write a number and a unit, for example '10 seconds'")
    return total


def format_instant(micros: int) -> str:
    """A time as SQL writes it, in UTC.

    >>> format_instant(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    whole, rest = divmod(micros, SECOND)
    text = (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=whole)).isoformat(sep=" ")
    return text + (f".{rest:06d}".rstrip("0") if rest else "")


def format_duration(micros: int) -> str:
    """A duration in the largest units that say it exactly.

    >>> format_duration(300_000_000), format_duration(5_400_000_000), format_duration(0)
    ('5 minutes', '90 minutes', '0 seconds')
    """
    if micros == 0:
        return "0 seconds"
    for name in reversed(UNITS):
        count, rest = divmod(micros, UNITS[name])
        if rest == 0:
            return f"{count} {name}" + ("" if count == 1 else "s")
    raise AssertionError("unreachable: a microsecond divides everything")
