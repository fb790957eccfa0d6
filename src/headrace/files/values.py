"""Whether a text looks like a value of a type. Spark has the last word; this is for looking at files before it starts."""

from __future__ import annotations

import re

WHOLE = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
_BOOLEAN = {"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"}
_DATE = re.compile(r"[+-]?\d{4,7}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?")


def fits(text: str, kind: str) -> bool:
    """Whether a text can be cast to a type: `fits("5", "INT")`."""
    text = text.strip()
    if kind in WHOLE:
        return bool(_INTEGER.fullmatch(text)) and -(2 ** WHOLE[kind]) <= int(text) < 2 ** WHOLE[kind]
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return bool(_NUMBER.fullmatch(text))
    if kind == "BOOLEAN":
        return text.lower() in _BOOLEAN
    if kind == "DATE" or kind.startswith("TIMESTAMP"):  # an hour without a date is none, here as in a run
        return bool(_DATE.fullmatch(text))
    return True


def fits_json(value: object, kind: str) -> bool:
    if value is None:
        return True
    if kind.startswith(("STRUCT", "MAP")):
        return isinstance(value, dict)
    if kind.startswith("ARRAY"):
        return isinstance(value, list)
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    if isinstance(value, bool | dict | list):
        return kind == "STRING"
    if kind in WHOLE:
        return isinstance(value, int) and fits(str(value), kind)
    return (
        isinstance(value, int | float) if kind in ("FLOAT", "DOUBLE") and not isinstance(value, str) else fits(str(value), kind)
    )
