"""The types of compiled expressions: what Spark makes of two of them, and literals that are known before a row comes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.time import DAY, SECOND, UNITS, parse_duration


class Kind(Enum):
    """A type, by Spark's name. DECIMAL is there for literals and for scaled words, VOID is the type of NULL."""

    VOID = "VOID"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL DAY TO SECOND"


# The integers, from the smallest; each with its ends.
RANGES: dict[Kind, tuple[int, int]] = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
INTEGERS = tuple(RANGES)
FLOATS = (Kind.FLOAT, Kind.DOUBLE)
NUMBERS = (*INTEGERS, Kind.DECIMAL, *FLOATS)

# Day-time intervals only: a month has no fixed length.
_UNITS = {name.upper(): micros for name, micros in UNITS.items() if name != "year"}
_SPAN = ("DAY", "HOUR", "MINUTE", "SECOND")
_PIECE = re.compile(r"\s*([+-]?[\d.]+)\s*([A-Za-z]+)\s*")
_SAME = {"TIMESTAMP_NTZ": Kind.TIMESTAMP, "TIMESTAMP_LTZ": Kind.TIMESTAMP}  # sessions of Headrace are in UTC
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Types of words that do not hold the value itself: DECIMAL(p, s) times 10^s, and 64 bits that are equal where values are.
SCALED, HASH = "SCALED", "HASH OF "


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a column is: its SQL type, or SCALED(p, s), or HASH OF a type; and its place among the words."""

    type: str
    position: int


@dataclass(frozen=True, slots=True)
class Size:
    """A DECIMAL: the digits that Spark gives it, how many are behind the point, and the largest unscaled number it can be."""

    digits: int
    scale: int
    most: int

    def __str__(self) -> str:
        return f"DECIMAL({self.digits}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a part: its type, and source text for it and for whether it is NULL.

    A BOOLEAN is true only where it is not NULL. Decimals and strings that were written out are kept as `literal`, because
    what becomes of them depends on what they meet.
    """

    kind: Kind
    text: str = ""
    null: str = "False"
    literal: Decimal | str | None = None
    size: Size | None = None  # of a DECIMAL that is computed with: its text is the unscaled number


NULL = Value(Kind.VOID, "", "True")


def kind_of(sql_type: str) -> Kind | None:
    """The kind of a Spark SQL type; None if such values cannot be computed with here."""
    name = sql_type.upper().strip()
    if name.startswith(("DECIMAL", SCALED)):
        return Kind.DECIMAL
    if name.startswith("INTERVAL") and "YEAR" not in name and "MONTH" not in name:
        return Kind.INTERVAL
    if name.startswith(("VARCHAR", "CHAR", HASH)):
        return Kind.STRING
    return _SAME.get(name) or next((kind for kind in Kind if kind.value == name), None)


def common(values: list[Value]) -> Kind | None:
    """The type that Spark gives values of these types together; None if there is none. DECIMAL if it would be that."""
    kinds = {v.kind for v in values} - {Kind.VOID}
    if len(kinds) <= 1:
        return next(iter(kinds), Kind.VOID)
    if kinds <= set(INTEGERS):
        return max(kinds, key=INTEGERS.index)
    if kinds <= set(NUMBERS):
        return Kind.DOUBLE if kinds & set(FLOATS) else Kind.DECIMAL
    if Kind.STRING in kinds:  # one that is written out is read as what it meets
        written = all(v.literal is not None for v in values if v.kind is Kind.STRING)
        kinds -= {Kind.STRING}
        if not written or not kinds <= {Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL}:
            return None
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return Kind.TIMESTAMP
    return next(iter(kinds)) if len(kinds) == 1 else None


def number_literal(text: str, *, negative: bool = False) -> Value:
    """`5`, `3000000000`, `1.5`, `1e3`: INT, BIGINT, DECIMAL and DOUBLE."""
    if "e" in text.lower():
        return Value(Kind.DOUBLE, repr(-float(text) if negative else float(text)).replace("inf", "np.inf"))
    number = Decimal(text).copy_negate() if negative else Decimal(text)
    if "." not in text:
        for kind in (Kind.INT, Kind.BIGINT):
            if RANGES[kind][0] <= number <= RANGES[kind][1]:
                return Value(kind, str(number))
    return Value(Kind.DECIMAL, literal=number)


def interval_literal(node: exp.Interval) -> Value:
    """`INTERVAL '5' SECOND`, `INTERVAL '5 days 3 hours'`, `INTERVAL '1 02:03:04' DAY TO SECOND`."""
    text, unit = node.this, node.args.get("unit")
    if not isinstance(text, exp.Literal):
        raise QueryError(f"{node.sql(dialect='spark')}: the length is not a literal", hint="write INTERVAL '5' SECOND * x")
    if isinstance(unit, exp.IntervalSpan):
        micros = _span(text.name, unit)
    elif unit is None:
        pieces = _PIECE.findall(text.name)
        if not pieces or "".join(_PIECE.split(text.name)[::3]).strip():
            raise QueryError(f"{text.name!r} is not an interval", hint="write for example INTERVAL '10' SECOND")
        micros = sum((_micros(number, word) for number, word in pieces), Decimal(0))
    else:
        micros = _micros(text.name, unit.name)
    return Value(Kind.INTERVAL, str(_whole(micros, text.name)))


def _micros(number: str, word: str) -> Decimal:
    name = word.upper()
    name = name if name in _UNITS else name.removesuffix("S")
    if name not in _UNITS:
        raise QueryError(f"an interval of {word} has no fixed length", hint=f"use one of: {', '.join(_UNITS).lower()}")
    try:
        return Decimal(number.strip()) * _UNITS[name]
    except ArithmeticError as error:
        raise QueryError(f"{number!r} is not a number of {word}") from error


def _span(text: str, unit: exp.IntervalSpan) -> Decimal:
    """Days, hours, minutes and seconds between the first and the last unit."""
    first, last = unit.this.name.upper(), unit.expression.name.upper()
    parts = re.findall(r"[\d.]+", text)
    if first not in _SPAN or last not in _SPAN or len(parts) != _SPAN.index(last) - _SPAN.index(first) + 1:
        raise QueryError(f"INTERVAL {text!r} {first} TO {last} is not a day-time interval")
    micros = sum((_micros(part, word) for part, word in zip(parts, _SPAN[_SPAN.index(first) :], strict=False)), Decimal(0))
    return -micros if text.strip().startswith("-") else micros


def _whole(micros: Decimal, text: str) -> int:
    if micros != int(micros) or not abs(micros) < 2**63:
        raise QueryError(f"an interval of {text} is not a number of microseconds, or is too long")
    return int(micros)


def read_literal(text: str, kind: Kind) -> Value:
    """A string that was written out, as TIMESTAMP, DATE or INTERVAL; times without a zone are in UTC."""
    if kind is Kind.INTERVAL:
        return Value(kind, str(parse_duration(text)))
    try:
        if kind is Kind.DATE:
            return Value(kind, str((date.fromisoformat(text.strip()) - _EPOCH.date()).days))
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise QueryError(f"{text!r} is not a {kind.value}", hint="write for example '2024-01-31 12:00:00'") from error
    passed = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
    return Value(kind, str((passed.days * DAY) + passed.seconds * SECOND + passed.microseconds))
