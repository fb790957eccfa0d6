"""One value as text: for a JSON line, and for a cell of a table that people read."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def instant(value: datetime, separator: str = "T") -> str:
    """ISO 8601 to the microsecond where there are any; `Z` for an instant, nothing for a time without a zone."""
    zone = "Z" if value.tzinfo else ""
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return plain.isoformat(separator) + zone


def json_text(value: Any) -> str:
    """JSON as Spark's to_json would write it: decimals to the last digit, NaN and infinities as strings."""
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case float():
            if math.isnan(value):
                return '"NaN"'
            return json.dumps(value) if math.isfinite(value) else ('"Infinity"' if value > 0 else '"-Infinity"')
        case Decimal():
            return format(value, "f")
        case datetime():
            return f'"{instant(value)}"'
        case date():
            return f'"{value.isoformat()}"'
        case timedelta():
            return json_text(value.total_seconds())
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case dict():
            return "{" + ", ".join(f"{json_text(str(k))}: {json_text(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(json_text, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False)


def cell_text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return value
        case datetime():
            return instant(value, " ")
        case float() if math.isnan(value):
            return "NaN"
        case float() | int() | Decimal() | date() | timedelta():
            return str(value)
        case _:
            return json_text(value)


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
