"""Results as JSON, byte for byte as `headrace run` prints them on standard output; and values as Spark's to_json has them."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from headrace.plan.schema import Schema
from headrace.plan.time import DAY, SECOND
from headrace.scalars.row.meaning import calendar, digits, times
from headrace.scalars.row.types import Type, type_of

Write = Callable[[Any], str]


def writer(schema: Schema) -> Callable[[Sequence[Any]], str]:
    """What writes a row of these columns as a line of JSON, without the line break.

    >>> writer(Schema.of(card="STRING", at="TIMESTAMP"))(("a", 1_500_000))
    '{"card": "a", "at": "1970-01-01T00:00:01.500000Z"}'
    """
    scope, parts = dict[str, Any](), []
    for i, field in enumerate(schema.fields):
        scope[f"w{i}"] = _text_of(type_of(field.type))
        scope[f"n{i}"] = f"{', ' if i else ''}{encode_basestring(field.name)}: "
        parts.append(f"{{n{i}}}{{'null' if v{i} is None else w{i}(v{i})}}")
    places = "".join(f"v{i}, " for i in range(len(schema.fields)))
    source = f'def write(row):\n    {f"{places}= row" if places else "pass"}\n    return f"{{{{{"".join(parts)}}}}}"\n'
    exec(source, scope)
    found: Callable[[Sequence[Any]], str] = scope["write"]
    return found


@lru_cache(maxsize=1024)
def text_of(kind: Type) -> Write:
    """What writes a value of a type, or NULL, as JSON."""
    plain = _text_of(kind)
    return lambda value: "null" if value is None else plain(value)


def _text_of(kind: Type) -> Write:
    match kind.name:
        case "STRING":
            return encode_basestring
        case "BOOLEAN":
            return lambda value: "true" if value else "false"
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return int.__repr__
        case "FLOAT" | "DOUBLE":
            return _float
        case "DECIMAL":
            return lambda value: format(value, "f")
        case "TIMESTAMP":
            return lambda value: f'"{_instant(value)}Z"'
        case "TIMESTAMP_NTZ":
            return lambda value: f'"{_instant(value)}"'
        case "DATE":
            return lambda value: f'"{times.date_text(value)}"'
        case "INTERVAL":
            return lambda value: float.__repr__(value / SECOND)
        case "BINARY":
            return lambda value: f'"{b64encode(value).decode()}"'
        case "ARRAY":
            inner = text_of(kind.parts[0])
            return lambda value: f"[{', '.join(map(inner, value))}]"
        case "MAP":
            key, other = map(text_of, kind.parts)
            return lambda value: f"[{', '.join(f'[{key(k)}, {other(v)}]' for k, v in value.items())}]"
        case "STRUCT":
            return _struct(kind)
    return lambda value: "null"


def _struct(kind: Type) -> Write:
    fields = [(f"{encode_basestring(name)}: ", text_of(part)) for name, part in zip(kind.names, kind.parts, strict=True)]
    return lambda value: "{" + ", ".join(head + write(v) for (head, write), v in zip(fields, value, strict=True)) + "}"


def _float(value: float) -> str:
    if value - value == 0.0:
        return float.__repr__(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _instant(micros: int) -> str:
    fraction = micros % SECOND
    clock = f"{calendar.hour(micros):02d}:{calendar.minute(micros):02d}:{calendar.second(micros):02d}"
    return f"{times.date_text(micros // DAY)}T{clock}" + (f".{fraction:06d}" if fraction else "")


def spark_json(kind: Type, value: Any, java: int) -> Any:
    """What Python reads of the JSON that Spark writes for a value."""
    if value is None:
        return None
    match kind.name:
        case "FLOAT" | "DOUBLE":
            if value - value != 0.0:
                return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return float(digits.text_of(value, digits.digits_of(java, single=kind.name == "FLOAT")))
        case "DECIMAL":
            return float(value) if kind.scale else int(value)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            text = f"{_instant(value // SECOND * SECOND)}.{value % SECOND // 1000:03d}"
            return text + ("Z" if kind.name == "TIMESTAMP" else "")
        case "DATE":
            return times.date_text(value)
        case "BINARY":
            return b64encode(value).decode()
        case "ARRAY":
            return [spark_json(kind.parts[0], v, java) for v in value]
        case "MAP":
            return {k: spark_json(kind.parts[1], v, java) for k, v in value.items()}
        case "STRUCT":
            return {n: spark_json(p, v, java) for n, p, v in zip(kind.names, kind.parts, value, strict=True)}
    return value
