"""Texts that are written out: what Spark would read them as. Decided before a row comes, because it would fail for every one.

Where it is not sure that Spark refuses a text, it counts as one that can be read.
"""

from __future__ import annotations

import re
from calendar import monthrange

BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
SPECIAL = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan"})
MOVING = frozenset({"now", "today", "yesterday", "tomorrow"})  # Spark knows them, and means the day on which it is asked
RANGES = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}

_WHOLE = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_DAY = re.compile(r"(?P<year>[+-]?\d{4,6})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2}))?)?")
_TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.\d*)?)?\s*(?P<zone>[A-Za-z+-].*)?\Z")


def readable(text: str, kind: str) -> bool:
    """Whether `CAST('text' AS kind)` has a value, under the rules of ANSI.

    >>> readable(" 12 ", "BIGINT"), readable("12.5", "BIGINT"), readable("12.5", "DOUBLE"), readable("abc", "DOUBLE")
    (True, False, True, False)
    """
    given = text.strip()
    match kind:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _WHOLE.match(given) is not None and -(2 ** RANGES[kind]) <= int(given) < 2 ** RANGES[kind]
        case "FLOAT" | "DOUBLE":
            return _NUMBER.match(given.rstrip("dDfF")) is not None or given.lower() in SPECIAL
        case "DECIMAL":
            return _NUMBER.match(given) is not None
        case "BOOLEAN":
            return given.lower() in BOOLEANS
        case "DATE":
            return is_moving(text) or _is_date(given)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return is_moving(text) or _is_timestamp(given)
    return True


def is_moving(text: str) -> bool:
    """Whether a text means another time every day: 'yesterday', or an hour without a date."""
    return text.strip().lower() in MOVING or _is_hour(text.strip().removeprefix("T"))


def _is_date(text: str) -> bool:
    found = _DAY.match(text)
    return found is not None and _is_day(found) and (not text[found.end() :] or bool(found["day"] and text[found.end()] in " T"))


def _is_timestamp(text: str) -> bool:
    if text.lower() == "epoch":
        return True
    found = _DAY.match(text)
    if found is None or not _is_day(found):
        return False
    rest = text[found.end() :]
    return not rest or bool(found["day"] and rest[0] in " T" and (_is_hour(rest[1:]) or rest == "T"))


def _is_day(found: re.Match[str]) -> bool:
    year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
    return 1 <= month <= 12 and 1 <= day <= monthrange(max(1, min(abs(year), 9999)), month)[1]


def _is_hour(text: str) -> bool:
    found = _TIME.match(text)
    return found is not None and int(found["hour"]) < 24 and int(found["minute"]) < 60 and int(found["second"] or 0) < 60
