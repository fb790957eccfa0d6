"""Days and microseconds since 1970 in UTC, of any year: the proleptic Gregorian calendar, as Java has it."""

from __future__ import annotations

from functools import lru_cache

from headrace.plan.time import DAY, HOUR, MINUTE, SECOND
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.meaning.numbers import LEAST, MOST, wrapped

_CYCLE = 146_097  # days of 400 years
_EPOCH = 719_468  # days from March 1 of the year 0 to 1970
MOST_INT = 2**31 - 1


@lru_cache(maxsize=4096)
def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month."""
    era, of_era = divmod(day + _EPOCH, _CYCLE)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1


def days_of(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * _CYCLE + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def length_of(year: int, month: int) -> int:
    """How many days a month has."""
    return (29 if is_leap(year) else 28) if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def date_of(year: int, month: int, day: int) -> int:
    """The day; `Failed` if there is none."""
    if not 1 <= month <= 12 or not 1 <= day <= length_of(year, month):
        raise Failed(f"there is no day {year}-{month}-{day}")
    found = days_of(year, month, day)
    if not -MOST_INT - 1 <= found <= MOST_INT:
        raise Failed(f"there is no day {year}-{month}-{day}")
    return found


def micros(value: int, what: str = "the time") -> int:
    """A result that has to be a BIGINT of microseconds."""
    if not LEAST <= value <= MOST:
        raise Failed(f"{what} is too far away for a TIMESTAMP")
    return value


def midnight(day: int) -> int:
    return micros(day * DAY)


def day_of(time: int) -> int:
    return time // DAY


def year(day: int) -> int:
    return civil(day)[0]


def month(day: int) -> int:
    return civil(day)[1]


def day_of_month(day: int) -> int:
    return civil(day)[2]


def quarter(day: int) -> int:
    return (civil(day)[1] + 2) // 3


def day_of_year(day: int) -> int:
    return day - days_of(civil(day)[0], 1, 1) + 1


def weekday(day: int) -> int:
    """0 is Monday."""
    return (day + 3) % 7


def day_of_week(day: int) -> int:
    """1 is Sunday."""
    return (day + 4) % 7 + 1


def week_of_year(day: int) -> int:
    """By ISO: the week of a day is that of its Thursday."""
    thursday = day - weekday(day) + 3
    return (day_of_year(thursday) - 1) // 7 + 1


def last_day(day: int) -> int:
    of_year, of_month, _ = civil(day)
    return days_of(of_year, of_month, length_of(of_year, of_month))


def add_months(day: int, count: int) -> int:
    """The same day of another month, or its last one."""
    of_year, of_month, of_day = civil(day)
    moved_year, moved_month = divmod(of_year * 12 + of_month - 1 + count, 12)
    return date_of(moved_year, moved_month + 1, min(of_day, length_of(moved_year, moved_month + 1)))


def add_days(day: int, count: int) -> int:
    """Goes round the ends, as Java's int does."""
    return wrapped(day + count, 32)


def hour(time: int) -> int:
    return time // HOUR % 24


def minute(time: int) -> int:
    return time // MINUTE % 60


def second(time: int) -> int:
    return time // SECOND % 60


def start_of_year(day: int) -> int:
    return days_of(civil(day)[0], 1, 1)


def start_of_quarter(day: int) -> int:
    of_year, of_month, _ = civil(day)
    return days_of(of_year, (of_month - 1) // 3 * 3 + 1, 1)


def start_of_month(day: int) -> int:
    return day - civil(day)[2] + 1


def start_of_week(day: int) -> int:
    return day - weekday(day)
