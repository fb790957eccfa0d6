"""Types of values of one row, as Spark has them, and what it makes of several of them under ANSI.

A value is what Python has for it: int, bool, str, bytes, float (a FLOAT is a float that is one), Decimal. A TIMESTAMP is
microseconds in UTC, a DATE days, an INTERVAL microseconds; an ARRAY is a list, a STRUCT a tuple, a MAP a dict; NULL is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.schema import normalize_type
from headrace.plan.types import decimal_parts

UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")  # of intervals, from the largest
DIGITS = 38  # most of a DECIMAL
_ALIASES = {"TIMESTAMP_LTZ": "TIMESTAMP", "NULL": "VOID", "BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT",
            "INTEGER": "INT", "REAL": "FLOAT", "INTERVAL": "INTERVAL DAY TO SECOND"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """A type of Spark SQL. `units` are the largest and the smallest of an INTERVAL; names are those of the fields of a STRUCT."""

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    units: tuple[str, str] = ("DAY", "SECOND")

    def __str__(self) -> str:
        match self.name:
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "INTERVAL":
                first, last = self.units
                return f"INTERVAL {first}" if first == last else f"INTERVAL {first} TO {last}"
            case "ARRAY" | "MAP":
                return f"{self.name}<{', '.join(map(str, self.parts))}>"
            case "STRUCT":
                fields = zip(self.names, self.parts, strict=True)
                return f"STRUCT<{', '.join(f'{name}: {part}' for name, part in fields)}>"
        return self.name

    @property
    def is_integer(self) -> bool:
        return self.name in RANGES

    @property
    def is_float(self) -> bool:
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_number(self) -> bool:
        return self.name in RANGES or self.name in ("FLOAT", "DOUBLE", "DECIMAL")

    @property
    def is_time(self) -> bool:
        return self.name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")

    @property
    def is_nested(self) -> bool:
        return self.name in ("ARRAY", "MAP", "STRUCT")


# The integers, from the smallest, with their ends.
RANGES = {name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in
          (("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64))}  # fmt: skip
INTEGERS = tuple(RANGES)
_AS_DECIMAL = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}  # digits that Spark takes them for

BOOLEAN, TINYINT, SMALLINT, INT, BIGINT = map(Type, ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"))
FLOAT, DOUBLE, STRING, BINARY, VOID = map(Type, ("FLOAT", "DOUBLE", "STRING", "BINARY", "VOID"))
DATE, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL = map(Type, ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"))
_SIMPLE = {t.name: t for t in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, VOID, DATE, TIMESTAMP,
                               TIMESTAMP_NTZ)}  # fmt: skip


def decimal(precision: int, scale: int) -> Type:
    return Type("DECIMAL", precision, scale)


def array(element: Type) -> Type:
    return Type("ARRAY", parts=(element,))


@lru_cache(maxsize=4096)
def type_of(text: str) -> Type:
    """The type that a text of Spark SQL names.

    >>> str(type_of("array<decimal(10, 2)>")), str(type_of("interval hour to second"))
    ('ARRAY<DECIMAL(10, 2)>', 'INTERVAL HOUR TO SECOND')
    """
    upper = " ".join(text.upper().split())
    upper = _ALIASES.get(upper, upper)
    if upper in _SIMPLE:
        return _SIMPLE[upper]
    if upper.startswith("INTERVAL "):
        units = upper.removeprefix("INTERVAL ").split(" TO ")
        if set(units) <= set(UNITS):
            return Type("INTERVAL", units=(units[0], units[-1]))
        raise QueryError(f"values of type {text} are not computed with here", hint="a month has no fixed length: use days")
    return _parsed(exp.DataType.build(normalize_type(text), dialect="spark"))


def _parsed(kind: exp.DataType) -> Type:
    parts = kind.expressions
    match kind.this:
        case exp.DataType.Type.ARRAY if parts:
            return array(_parsed(parts[0]))
        case exp.DataType.Type.MAP if len(parts) == 2:
            return Type("MAP", parts=(_parsed(parts[0]), _parsed(parts[1])))
        case exp.DataType.Type.STRUCT:
            return Type("STRUCT", parts=tuple(_parsed(p.args["kind"]) for p in parts), names=tuple(p.name for p in parts))
    text = kind.sql(dialect="spark").upper()
    if text.startswith("DECIMAL"):
        return decimal(*decimal_parts(text))
    text = _ALIASES.get(text, text)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("INTERVAL "):
        return type_of(text)
    raise QueryError(f"values of type {text} are not computed with here", hint=f"types are: {', '.join(_SIMPLE)}, DECIMAL, ..")


def bounded(precision: int, scale: int) -> Type:
    """A DECIMAL of arithmetic: where it has too many digits, some behind the point go, but 6 stay."""
    if precision <= DIGITS:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(DIGITS, max(DIGITS - whole, min(scale, 6)))


def as_decimal(kind: Type) -> Type:
    """What an integer is taken for where it meets a DECIMAL."""
    return decimal(_AS_DECIMAL[kind.name], 0) if kind.is_integer else kind


def wider(one: Type, other: Type) -> Type:
    """The DECIMAL that two are brought to: digits before the point come first."""
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return decimal(precision, scale) if precision <= DIGITS else decimal(DIGITS, max(0, scale - (precision - DIGITS)))


def common(one: Type, other: Type, *, texts: bool = True) -> Type | None:
    """The type to which Spark brings values of two types; None if there is none. With `texts`, a STRING is read as the other.

    >>> str(common(INT, STRING)), str(common(BIGINT, decimal(10, 2))), common(BOOLEAN, INT)
    ('BIGINT', 'DECIMAL(22, 2)', None)
    """
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    if one.is_number and other.is_number:
        return _number(one, other)
    if one.is_time and other.is_time:
        return TIMESTAMP if {one, other} != {DATE, TIMESTAMP_NTZ} else TIMESTAMP_NTZ
    if one.name == other.name == "INTERVAL":
        first, last = min(one.units[0], other.units[0], key=UNITS.index), max(one.units[1], other.units[1], key=UNITS.index)
        return Type("INTERVAL", units=(first, last))
    if one.name == other.name == "ARRAY":
        inner = common(one.parts[0], other.parts[0], texts=texts)
        return None if inner is None else array(inner)
    if STRING in (one, other) and texts:
        met = other if one == STRING else one
        if met.is_number:
            return BIGINT if met.is_integer else DOUBLE
        return met if met.is_time or met in (BOOLEAN, BINARY) else None
    return None


def _number(one: Type, other: Type) -> Type:
    if one.is_integer and other.is_integer:
        return max(one, other, key=lambda kind: INTEGERS.index(kind.name))
    if one.is_float or other.is_float:
        return DOUBLE  # FLOAT and an integer are a DOUBLE, too
    return wider(as_decimal(one), as_decimal(other))


def common_of(kinds: Iterable[Type], *, texts: bool = True) -> Type | None:
    """The type of several values together."""

    def widen(found: Type | None, kind: Type) -> Type | None:
        return None if found is None else common(found, kind, texts=texts)

    found: Type | None = VOID
    return reduce(widen, kinds, found)
