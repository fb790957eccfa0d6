"""Dates and times as texts, in the formats of Spark, in UTC."""

from __future__ import annotations

import re
from functools import lru_cache

from headrace.plan.time import DAY, HOUR, MINUTE, SECOND
from headrace.scalars.row.meaning.calendar import civil, date_of, hour, minute, second
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.meaning.numbers import LEAST, MOST
from headrace.scalars.row.meaning.texts import BLANKS

_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIME = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?\Z",
    re.ASCII | re.DOTALL,
)
_HOUR_ALONE = re.compile(r"T?\d{1,2}:\d{1,2}(:\d{1,2}([^\d].*)?)?\Z|T\d{1,2}\Z", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2})(?::(\d{2}))?|(\d{2})(\d{2})?)?\Z", re.ASCII)
_ONE_HOUR, _ONE_MINUTE = re.compile(r"([+-])(\d):"), re.compile(r"([+-])(\d\d):(\d)\Z")
_UTC = ("Z", "UTC", "GMT", "UT")
_MOST_OFFSET = 18 * 3600


# Nearly all times are written so, and most of them on a few days.
_USUAL = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?Z?\Z", re.ASCII)


@lru_cache(maxsize=1024)
def _midnight(text: str) -> int | None:
    try:
        return date_of(int(text[:4]), int(text[5:7]), int(text[8:])) * DAY
    except Failed:
        return None


def read_date(text: str) -> int:
    """A text as a DATE: what stands behind a whole date does not count."""
    found = _DATE.match(text.strip(BLANKS))
    if found is None:
        raise Failed(f"{text!r} is not a DATE")
    year = -int(found[2]) if found[1] == "-" else int(found[2])
    try:
        return date_of(year, int(found[3] or 1), int(found[4] or 1))
    except Failed as error:
        raise Failed(f"{text!r} is not a DATE: {error}") from error


def read_time(text: str, *, zoned: bool = True) -> int:
    """A text as a TIMESTAMP. The zone of one that is not `zoned` is looked at and does not count."""
    usual = _USUAL.match(text)
    if usual is not None and (since := _midnight(usual[1])) is not None and usual[2] < "24":
        micros = int(usual[5].ljust(6, "0")) if usual[5] else 0
        return since + int(usual[2]) * HOUR + int(usual[3]) * MINUTE + int(usual[4]) * SECOND + micros
    given = text.strip(BLANKS)
    found = _TIME.match(given)
    if found is None:
        raise Failed(f"{text!r} is an hour of no day" if _HOUR_ALONE.match(given) else f"{text!r} is not a TIMESTAMP")
    sign, year, month, day, hours, minutes, seconds, fraction, zone = found.groups()
    shift = offset_of(zone.strip(BLANKS), text) if zone else 0
    of_day = (int(hours or 0), int(minutes or 0), int(seconds or 0))
    if of_day[0] > 23 or of_day[1] > 59 or of_day[2] > 59:
        raise Failed(f"{text!r} is not a TIMESTAMP: there is no such hour")
    try:
        days = date_of(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    except Failed as error:
        raise Failed(f"{text!r} is not a TIMESTAMP: {error}") from error
    micros = int((fraction or "")[:6].ljust(6, "0"))
    time = days * DAY + of_day[0] * HOUR + of_day[1] * MINUTE + of_day[2] * SECOND + micros
    time -= shift * SECOND if zoned else 0
    if not LEAST <= time <= MOST:
        raise Failed(f"{text!r} is too far away for a TIMESTAMP")
    return time


def offset_of(zone: str, text: str) -> int:
    """Seconds of an offset. The names of places are not read: what they mean depends on the tables of who is asked."""
    if zone in _UTC:
        return 0
    zone = _ONE_MINUTE.sub(r"\1\2:0\3", _ONE_HOUR.sub(r"\g<1>0\2:", zone, count=1))
    found = _OFFSET.match(zone)
    if found is None:
        raise Failed(f"the zone of {text!r} is not read here: write an offset such as Z or +02:00")
    hours, minutes, seconds = int(found[2]), int(found[3] or found[5] or 0), int(found[4] or found[6] or 0)
    total = hours * 3600 + minutes * 60 + seconds
    if (len(found[2]) == 1 and (found[3] or found[5])) or minutes > 59 or seconds > 59 or total > _MOST_OFFSET:
        raise Failed(f"{text!r} has no offset: {zone!r}")
    return -total if found[1] == "-" else total


def year_text(year: int) -> str:
    """Four digits; more with their sign, as Java writes them."""
    if -9999 <= year <= 9999:
        return f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    return f"{year:+d}"


def date_text(day: int) -> str:
    year, month, of_month = civil(day)
    return f"{year_text(year)}-{month:02d}-{of_month:02d}"


def time_text(time: int) -> str:
    fraction = time % SECOND
    text = f"{date_text(time // DAY)} {hour(time):02d}:{minute(time):02d}:{second(time):02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def interval_text(span: int, units: tuple[str, str]) -> str:
    """As ANSI writes it: INTERVAL '1 02:03:04.5' DAY TO SECOND."""
    assert units == ("DAY", "SECOND"), "others are refused where they are compiled"
    size = abs(span)
    fraction = size % SECOND
    seconds = f"{size // SECOND % 60:02d}" + (f".{fraction:06d}".rstrip("0") if fraction else "")
    clock = f"{size // HOUR % 24:02d}:{size // MINUTE % 60:02d}:{seconds}"
    return f"INTERVAL '{'-' if span < 0 else ''}{size // DAY} {clock}' DAY TO SECOND"


_LETTERS = re.compile(r"yyyy|MM|dd|HH|mm|ss|S{1,6}|'[^']*'|[^A-Za-z'\[\]{}#]", re.ASCII)


def format_of(pattern: str) -> list[str] | None:
    """The pieces of a pattern of DATE_FORMAT; None if there is one that is not known for sure."""
    pieces = _LETTERS.findall(pattern)
    return pieces if "".join(pieces) == pattern and "''" not in pattern else None


def formatted(time: int, pieces: list[str]) -> str:
    year, month, day = civil(time // DAY)
    parts = {
        "yyyy": year_text(year), "MM": f"{month:02d}", "dd": f"{day:02d}", "HH": f"{hour(time):02d}",
        "mm": f"{minute(time):02d}", "ss": f"{second(time):02d}",
    }  # fmt: skip
    said = ""
    for piece in pieces:
        if piece[0] == "S":
            said += f"{time % SECOND:06d}"[: len(piece)]
        else:
            said += parts.get(piece) or piece.strip("'")
    return said


def make_date(year: int, month: int, day: int) -> int:
    if not -999_999_999 <= year <= 999_999_999:
        raise Failed(f"there is no year {year}")
    return date_of(year, month, day)


def next_day(day: int, name: str) -> int:
    """The first such weekday behind a day."""
    wanted = _WEEKDAYS.get(name.upper())
    if wanted is None:
        raise Failed(f"{name!r} is not a day of the week")
    return day + 1 + (wanted + 3 - day) % 7


_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEKDAYS = {name[:n]: i for i, name in enumerate(_NAMES) for n in (2, 3, len(name))}
