"""Types that meet: what Spark makes of two of them under ANSI, by the families that it knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.plan.expr import UNKNOWN_TYPE
from headrace.plan.types import INTEGRAL, base_type


class Family(Enum):
    """Types that are treated alike."""

    INTEGER = "a whole number"
    FRACTION = "a number"
    STRING = "a STRING"
    BOOLEAN = "a BOOLEAN"
    BINARY = "a BINARY"
    TIME = "a date or a time"
    INTERVAL = "an interval"
    MONTHS = "an interval of months"
    ARRAY = "an ARRAY"
    MAP = "a MAP"
    STRUCT = "a STRUCT"
    UNKNOWN = "anything"  # also the type of NULL, which goes with all of them


_FAMILIES = {
    **dict.fromkeys(INTEGRAL, Family.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Family.FRACTION),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), Family.STRING),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"), Family.TIME),
    **{name: Family[name] for name in ("BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT")},
}
NUMBERS = (Family.INTEGER, Family.FRACTION)
ATOMS = (Family.BOOLEAN, Family.BINARY, Family.TIME, *NUMBERS)  # a text that meets one of them is read as one


def family(kind: str) -> Family:
    """The family of a type; UNKNOWN for one that nothing is known about."""
    base = base_type(kind)
    if base.startswith("INTERVAL "):
        return Family.MONTHS if "YEAR" in base or "MONTH" in base else Family.INTERVAL
    return _FAMILIES.get(base, Family.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Operand:
    """A type, and the text itself where it is one that is written out."""

    type: str
    written: str | None = None

    @property
    def family(self) -> Family:
        return family(self.type)


def common(one: str, other: str) -> str | None:
    """The type to which Spark brings values of two types; None if there is none.

    >>> common("INT", "STRING"), common("DATE", "TIMESTAMP"), common("BOOLEAN", "INT")
    ('BIGINT', 'TIMESTAMP', None)
    """
    first, second = family(one), family(other)
    if Family.UNKNOWN in (first, second):
        return (other if first is Family.UNKNOWN else one) if "VOID" in (one, other) else UNKNOWN_TYPE
    if one == other:
        return one
    if first in NUMBERS and second in NUMBERS:
        return _number(one, other)
    if first is second is Family.TIME:
        return "TIMESTAMP" if {one, other} != {"DATE", "TIMESTAMP_NTZ"} else "TIMESTAMP_NTZ"
    if first is second:
        return UNKNOWN_TYPE if first in (Family.ARRAY, Family.MAP, Family.STRUCT) else one
    if Family.STRING in (first, second):
        met, kind = (second, other) if first is Family.STRING else (first, one)
        if met in NUMBERS:
            return "BIGINT" if met is Family.INTEGER else "DOUBLE"
        return kind if met in ATOMS else None
    return None


def _number(one: str, other: str) -> str:
    bases = {base_type(one), base_type(other)}
    if bases <= set(INTEGRAL):
        return max(bases, key=INTEGRAL.index)
    return "DOUBLE" if bases & {"FLOAT", "DOUBLE"} else "DECIMAL"


def sum_of(minus: bool, one: Operand, other: Operand) -> str | None:
    """The type of `one + other` or `one - other` where a time or an interval takes part; None if there is none."""
    families = (one.family, other.family)
    moved = (Family.INTERVAL, Family.MONTHS)
    match families:
        case (Family.TIME, Family.TIME):
            return "INTERVAL DAY TO SECOND" if minus else None
        case (Family.TIME, shift) | (shift, Family.TIME) if shift in moved:
            kind = one.type if families[0] is Family.TIME else other.type
            backwards = minus and families[1] is Family.TIME
            return None if backwards else UNKNOWN_TYPE if kind == "DATE" else kind  # days, or a time, by what is added
        case (Family.TIME, Family.INTEGER) if one.type == "DATE" and other.type != "BIGINT":
            return "DATE"
        case (Family.INTEGER, Family.TIME) if other.type == "DATE" and one.type != "BIGINT":
            return None if minus else "DATE"
        case (left, right) if left is right and left in moved:
            return one.type
    return None


def can_cast(one: str, other: str) -> bool:
    """Whether Spark has a CAST from one type to the other.

    >>> can_cast("INT", "TIMESTAMP"), can_cast("INT", "DATE"), can_cast("BOOLEAN", "TIMESTAMP")
    (True, False, False)
    """
    have, want = family(one), family(other)
    if Family.UNKNOWN in (have, want) or want in (have, Family.STRING):
        return True
    spans = (Family.INTERVAL, Family.MONTHS)
    match have:
        case Family.STRING:
            return want in (*ATOMS, *spans)
        case Family.BOOLEAN:
            return want in NUMBERS
        case Family.INTEGER | Family.FRACTION:
            exact = have is Family.INTEGER or base_type(one) == "DECIMAL"
            return want in (Family.BOOLEAN, *NUMBERS) or other == "TIMESTAMP" or (want in spans and exact)
        case Family.TIME:
            return one == "TIMESTAMP" and want in NUMBERS
        case Family.INTERVAL | Family.MONTHS:
            return want is Family.INTEGER or base_type(other) == "DECIMAL"
    return False
