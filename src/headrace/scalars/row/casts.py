"""CAST from every type to every other: what is done with a value, under ANSI. What would depend on who is asked is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from headrace.errors import QueryError
from headrace.plan.time import SECOND
from headrace.scalars.row.meaning import calendar, decimals, digits, numbers, texts, times
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.types import DOUBLE, RANGES, TIMESTAMP, UNITS, Type, as_decimal

Run = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Cast:
    """What is done with a value that is not NULL. Without `run` it stays; it `fails` if it may raise, and may give NULL."""

    run: Run | None = None
    fails: bool = False
    nulls: bool = False


STAYS = Cast()
_SAFE = partial(Cast, fails=False)
_MAY = partial(Cast, fails=True)
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
_EXACT_DOUBLE = 15  # digits that a double always tells apart from their neighbours


@lru_cache(maxsize=4096)
def cast_of(one: Type, other: Type, java: int) -> Cast:
    """The cast from one type to another, as a Spark on this version of Java has it.

    >>> from headrace.scalars.row.types import INT, STRING
    >>> cast_of(STRING, INT, 17).run(" 12 ")
    12
    """
    if one == other or one.name == "VOID":
        return STAYS
    found = _nested(one, other, java) if one.is_nested or other.is_nested else _single(one, other, java)
    if found is None:
        raise QueryError(f"a CAST of {one} to {other} is not offered for one row", hint=_hint(one, other))
    return found


def _hint(one: Type, other: Type) -> str:
    if one.is_float and other.name == "STRING":
        return "CAST it to DECIMAL first: what a double looks like as text differs between versions of Java"
    if one.name == "DECIMAL" and other.is_integer:
        return "CAST it to BIGINT first"
    return "Spark has it: compute it before the stream"


def _single(one: Type, other: Type, java: int) -> Cast | None:
    match other.name:
        case "STRING":
            return _to_text(one, java)
        case "BOOLEAN":
            return _to_boolean(one)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _to_integer(one, other)
        case "FLOAT" | "DOUBLE":
            return _to_float(one, other)
        case "DECIMAL":
            return _to_decimal(one, other, java)
        case "DATE":
            return _to_date(one)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return _to_time(one, other)
        case "BINARY" if one.name == "STRING":
            return _SAFE(str.encode)
        case "INTERVAL" if one.name == "INTERVAL":
            return STAYS if UNITS.index(other.units[1]) >= UNITS.index(one.units[1]) else None
    return None


def _nested(one: Type, other: Type, java: int) -> Cast | None:
    if one.name != other.name or one.name not in ("ARRAY", "STRUCT") or len(one.parts) != len(other.parts):
        return None
    casts = [cast_of(a, b, java) for a, b in zip(one.parts, other.parts, strict=True)]
    if not any(cast.run for cast in casts):
        return STAYS
    runs = [_or_null(cast.run) for cast in casts]
    fails = any(cast.fails for cast in casts)
    if one.name == "ARRAY":
        return Cast(lambda xs: [runs[0](x) for x in xs], fails)
    return Cast(lambda xs: tuple(run(x) for run, x in zip(runs, xs, strict=True)), fails)


def _or_null(run: Run | None) -> Run:
    if run is None:
        return lambda x: x
    return lambda x: None if x is None else run(x)


def _to_text(one: Type, java: int) -> Cast | None:
    match one.name:
        case "BOOLEAN":
            return _SAFE(lambda x: "true" if x else "false")
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _SAFE(str)
        case "DECIMAL":
            return _SAFE(lambda x: format(x, "f"))
        case "DATE":
            return _SAFE(times.date_text)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return _SAFE(times.time_text)
        case "BINARY":
            return _MAY(texts.decoded)
        case "FLOAT" | "DOUBLE":
            found = digits.digits_of(java, single=one.name == "FLOAT")
            return _SAFE(lambda x: digits.text_of(x, found))
        case "INTERVAL" if one.units == ("DAY", "SECOND"):
            return _SAFE(lambda x: times.interval_text(x, ("DAY", "SECOND")))
    return None


def _to_boolean(one: Type) -> Cast | None:
    if one.name == "STRING":
        return _MAY(texts.read_boolean)
    return _SAFE(bool) if one.is_number else None


def _to_integer(one: Type, other: Type) -> Cast | None:
    least, most = RANGES[other.name]
    match one.name:
        case "STRING":
            return _MAY(lambda x: texts.read_whole(x, least, most, other.name))
        case "BOOLEAN":
            return _SAFE(int)
        case "FLOAT" | "DOUBLE":
            return _MAY(lambda x: numbers.truncated(x, least, most, other.name))
        case "TIMESTAMP":
            return _seconds(other, least, most)
        case "DECIMAL" if other.name == "BIGINT" or one.precision <= _EXACT_DOUBLE:
            return _MAY(decimals.to_whole(least, most, other.name))
    if not one.is_integer:
        return None
    return STAYS if RANGES[one.name][1] <= most else _MAY(_within(least, most, other.name))


def _within(least: int, most: int, kind: str) -> Run:
    def of(x: int) -> int:
        if not least <= x <= most:
            raise Failed(f"{x} does not fit into {kind}")
        return x

    return of


def _seconds(other: Type, least: int, most: int) -> Cast:
    if other.name == "BIGINT":
        return _SAFE(lambda x: x // SECOND)
    inside = _within(least, most, other.name)
    return _MAY(lambda x: inside(x // SECOND))


def _to_float(one: Type, other: Type) -> Cast | None:
    double = other == DOUBLE
    match one.name:
        case "STRING":
            return _MAY(texts.read_double if double else texts.read_float)
        case "BOOLEAN":
            return _SAFE(float)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "DECIMAL":
            return _SAFE(float if double else numbers.single_of)
        case "FLOAT":
            return STAYS
        case "DOUBLE":
            return _SAFE(numbers.single)
        case "TIMESTAMP":
            return _SAFE((lambda x: float(x) / 1e6) if double else (lambda x: numbers.single(float(x) / 1e6)))
    return None


def _to_decimal(one: Type, other: Type, java: int) -> Cast | None:
    fit = decimals.fitter(other.precision, other.scale)
    roomy = other.precision - other.scale
    match one.name:
        case "STRING":
            return _MAY(lambda x: fit(decimals.read(x)))
        case "BOOLEAN":
            return Cast(lambda x: fit(Decimal(int(x))), fails=roomy < 1)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return Cast(lambda x: fit(Decimal(x)), fails=roomy < as_decimal(one).precision)
        case "DECIMAL":
            wide = other.scale >= one.scale and roomy >= one.precision - one.scale
            return Cast(fit, fails=not wide)
        case "FLOAT" | "DOUBLE":
            found = digits.digits_of(java)
            return Cast(lambda x: fit(digits.decimal_of(x, found)) if x - x == 0.0 else None, fails=True, nulls=True)
        case "TIMESTAMP":
            found = digits.digits_of(java)
            return _MAY(lambda x: fit(digits.decimal_of(float(x) / 1e6, found)))
    return None


def _to_date(one: Type) -> Cast | None:
    if one.name == "STRING":
        return _MAY(times.read_date)
    return _SAFE(calendar.day_of) if one.name in _TIMES else None


def _to_time(one: Type, other: Type) -> Cast | None:
    match one.name:
        case "STRING":
            return _MAY(partial(times.read_time, zoned=other == TIMESTAMP))
        case "DATE":
            return _MAY(calendar.midnight)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return STAYS
    if other != TIMESTAMP:
        return None
    match one.name:
        case "TINYINT" | "SMALLINT" | "INT":
            return _SAFE(lambda x: x * SECOND)
        case "BIGINT":
            return _SAFE(lambda x: max(numbers.LEAST, min(numbers.MOST, x * SECOND)))
        case "FLOAT" | "DOUBLE":
            return _MAY(lambda x: numbers.truncated(x * 1e6, *RANGES["BIGINT"], "TIMESTAMP"))
        case "DECIMAL" if one.precision - one.scale <= 12 and one.precision <= 27:
            return _SAFE(lambda x: int(decimals.EXACT.scaleb(x, 6)))
    return None
