"""DECIMAL in compiled expressions: a whole number of the last digit, in 64 bits, with how large it can become.

What may need more than 64 bits is refused when it is typed, so nothing overflows and all results are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from headrace.errors import QueryError
from headrace.scalars.types import INTEGERS, RANGES, Kind, Size, Value

MOST = 2**63 - 1
MOST_DIGITS = 38  # of any DECIMAL in Spark; past them it rounds
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}  # what Spark takes integers for
_HINT = "CAST the values of the events to DOUBLE or BIGINT, or to a DECIMAL of fewer digits"
_EXACT_DOUBLES = 2**53

Keep = Callable[[str], str]


def as_scaled(value: Value) -> Value:
    """An integer, or a decimal that is written out, as a scaled number; one that is already stays."""
    if value.size is not None:
        return value
    if isinstance(value.literal, Decimal):
        exponent = value.literal.as_tuple().exponent
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        whole = int(value.literal.scaleb(scale))
        if abs(whole) > MOST:
            raise QueryError(f"{value.literal} has too many digits", hint=_HINT)
        return Value(Kind.DECIMAL, str(whole), value.null, size=Size(max(len(str(abs(whole))), scale), scale, abs(whole)))
    if value.kind is Kind.VOID:
        return Value(Kind.DECIMAL, "0", "True", size=Size(1, 0, 0))
    assert value.kind in INTEGERS, "the caller has seen to it"
    written = value.text.removeprefix("-")
    if written.isdigit():
        return replace(value, kind=Kind.DECIMAL, size=Size(len(written), 0, int(written)))
    return replace(value, kind=Kind.DECIMAL, size=Size(_DIGITS[value.kind], 0, -RANGES[value.kind][0]))


def _parts(value: Value) -> Size:
    assert value.size is not None, "it is scaled"
    return value.size


def comparison(op: str, left: Value, right: Value) -> str:
    """Source of `left op right`. Scales that differ are compared without bringing them together, so nothing can overflow."""
    left, right = as_scaled(left), as_scaled(right)
    apart = _parts(right).scale - _parts(left).scale
    if abs(apart) > 18:
        raise QueryError("the two have too many digits between them", hint=_HINT)
    if apart == 0:
        return f"{left.text} {op} {right.text}"
    if apart > 0:
        return f"compare_scaled({left.text}, {right.text}, {10**apart}) {op} 0"
    return f"0 {op} compare_scaled({right.text}, {left.text}, {10**-apart})"


def rescaled(value: Value, scale: int, keep: Keep) -> Value:
    """With so many digits behind the point, which are no fewer than before."""
    size = _parts(value)
    if size.scale == scale:
        return value
    unit = 10 ** (scale - size.scale)
    wider = _fitting(Size(size.digits + scale - size.scale, scale, size.most * unit))
    text = str(int(value.text) * unit) if value.text.removeprefix("-").isdigit() else keep(f"{value.text} * {unit}")
    return replace(value, text=text, size=wider)


def aligned(values: list[Value], keep: Keep) -> list[Value]:
    """All of one scale, and of the size of the largest."""
    scaled = [as_scaled(v) for v in values]
    scale = max(_parts(v).scale for v in scaled)
    same = [rescaled(v, scale, keep) for v in scaled]
    size = Size(max(_parts(v).digits for v in same), scale, max(_parts(v).most for v in same))
    return [replace(v, size=size) for v in same]


def arithmetic(op: str, left: Value, right: Value, keep: Keep) -> tuple[str, Size]:
    """Source and size of `left op right`, as Spark types it."""
    left, right = as_scaled(left), as_scaled(right)
    a, b = _parts(left), _parts(right)
    if op == "*":
        return f"{left.text} * {right.text}", _fitting(Size(a.digits + b.digits + 1, a.scale + b.scale, a.most * b.most))
    if op not in ("+", "-"):
        raise QueryError(f"{op} of DECIMALs is not there between rows", hint="CAST the values of the events to DOUBLE")
    scale = max(a.scale, b.scale)
    digits = max(a.digits - a.scale, b.digits - b.scale) + scale + 1
    left, right = rescaled(left, scale, keep), rescaled(right, scale, keep)
    size = _fitting(Size(digits, scale, _parts(left).most + _parts(right).most))
    return f"{left.text} {op} {right.text}", size


def as_double(value: Value) -> str:
    """Source of the nearest DOUBLE: one division of two numbers that doubles have exactly."""
    size = _parts(value)
    if size.most > _EXACT_DOUBLES or size.scale > 22:
        raise QueryError(
            f"a DECIMAL of more than 15 digits ({size}) does not become a DOUBLE between rows",
            hint="CAST the value of the event to DOUBLE, by itself",
        )
    return f"float({value.text}) / {10.0**size.scale!r}"


def _fitting(size: Size) -> Size:
    if size.most > MOST or size.digits > MOST_DIGITS:
        raise QueryError(f"a {size} may need more than 64 bits", hint=_HINT)
    return size


def whole_part(value: Value) -> tuple[Any, ...]:
    """What CAST to an integer divides: the number, and the unit of its scale."""
    return value.text, 10 ** _parts(value).scale
