"""DECIMAL, rounded twice as in Spark: to so many digits inside, then to the type of the result. Halves go away from zero."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from headrace.scalars.row.meaning.failed import Failed

Fit = Callable[[Decimal], Decimal]

INSIDE = 39  # digits of products, and behind the point of quotients
EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # longer than anything that can be made of two DECIMALs
_PRODUCT = Context(prec=INSIDE, rounding=ROUND_HALF_UP)
_EVEN = Context(prec=400, rounding=ROUND_HALF_EVEN)
_NEGATED = Context(prec=34, rounding=ROUND_HALF_EVEN)
_CUT = Context(prec=INSIDE, rounding=ROUND_DOWN)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?\Z")
_SPACE = "".join(map(chr, range(33)))  # what Java trims
_MOST_EXPONENT = 2**31 - 1


def fitter(precision: int, scale: int) -> Fit:
    """What brings a value to DECIMAL(precision, scale)."""
    unit, end = Decimal((0, (1,), -scale)), Decimal((0, (1,), precision - scale))
    zero = Decimal((0, (0,), -scale))

    def fit(value: Decimal) -> Decimal:
        if not -end < value < end:
            raise Failed(f"{said(value)} does not fit into DECIMAL({precision}, {scale})")
        found = value.quantize(unit, context=EXACT)
        if not -end < found < end:
            raise Failed(f"{said(value)} does not fit into DECIMAL({precision}, {scale})")
        return found or zero

    return fit


def said(value: Decimal) -> str:
    return format(value, "f") if -99 < value.adjusted() < 99 else str(value)


def add(fit: Fit) -> Callable[[Decimal, Decimal], Decimal]:
    return lambda a, b: fit(EXACT.add(a, b))


def subtract(fit: Fit) -> Callable[[Decimal, Decimal], Decimal]:
    return lambda a, b: fit(EXACT.subtract(a, b))


def multiply(fit: Fit) -> Callable[[Decimal, Decimal], Decimal]:
    return lambda a, b: fit(_PRODUCT.multiply(a, b))


def divide(fit: Fit) -> Callable[[Decimal, Decimal], Decimal]:
    def of(a: Decimal, b: Decimal) -> Decimal:
        if not b:
            raise Failed("division by zero")
        top, bottom = _over_one(a, b)
        count, rest = divmod(abs(top) * 10**INSIDE, abs(bottom))
        count += 2 * rest >= abs(bottom)
        found = EXACT.scaleb(EXACT.create_decimal(count), -INSIDE)
        return fit(found if (top < 0) == (bottom < 0) else found.copy_negate())

    return of


def _over_one(a: Decimal, b: Decimal) -> tuple[int, int]:
    """Both as whole numbers of their last common digit."""
    scale = max(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent), 0)
    return int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT))


def remainder(a: Decimal, b: Decimal) -> Decimal:
    """`a % b` with the sign of a; a quotient of more than 39 digits is too long for Java."""
    if not b:
        raise Failed("remainder of a division by zero")
    top, bottom = _over_one(a, b)
    quotient = abs(top) // abs(bottom)
    if len(str(quotient)) > INSIDE and int(_CUT.create_decimal(quotient)) != quotient:
        raise Failed(f"the quotient of {said(a)} and {said(b)} has too many digits")
    rest = abs(top) - quotient * abs(bottom)
    scale = max(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent), 0)
    return EXACT.scaleb(Decimal(-rest if top < 0 else rest), -scale)


def pmod(fit: Fit) -> Callable[[Decimal, Decimal], Decimal]:
    def of(a: Decimal, b: Decimal) -> Decimal:
        found = remainder(a, b)
        return fit(remainder(EXACT.add(found, b), b) if found < 0 else found)

    return of


def quotient(a: Decimal, b: Decimal) -> int:
    """`a DIV b`: where the types of both leave it no more digits than a BIGINT has."""
    if not b:
        raise Failed("division by zero")
    top, bottom = _over_one(a, b)
    found = abs(top) // abs(bottom)
    return found if (top < 0) == (bottom < 0) else -found


def negated(fit: Fit, precision: int) -> Fit:
    """`-x`: Scala turns the sign of 34 digits only, and rounds the others to the even one."""
    if precision <= _NEGATED.prec:
        return lambda value: EXACT.minus(value) or value
    return lambda value: fit(_NEGATED.minus(value))


def rounder(fit: Fit, digits: int, *, even: bool = False) -> Fit:
    """ROUND to so many digits; below zero, to tens."""
    unit, context = Decimal((0, (1,), -digits)), _EVEN if even else EXACT
    return lambda value: fit(value.quantize(unit, context=context))


def whole(fit: Fit, *, up: bool) -> Fit:
    """CEIL with `up`, or FLOOR."""

    def of(value: Decimal) -> Decimal:
        cut = int(value)
        return fit(Decimal(cut + 1 if up and cut < value else cut - 1 if not up and cut > value else cut))

    return of


def to_whole(least: int, most: int, kind: str) -> Callable[[Decimal], int]:
    """CAST to an integer: the fraction goes."""

    def of(value: Decimal) -> int:
        found = int(value)
        if not least <= found <= most:
            raise Failed(f"{said(value)} does not fit into {kind}")
        return found

    return of


def read(text: str) -> Decimal:
    """A text as Java's BigDecimal reads it; digits of any script are digits."""
    given = text.strip(_SPACE)
    if _NUMBER.match(given) is None:
        raise Failed(f"{text!r} is not a number")
    head, _, power = given.replace("E", "e").partition("e")
    exponent = int(power or 0)
    if not -_MOST_EXPONENT <= exponent <= _MOST_EXPONENT:
        raise Failed(f"{text!r} is not a number")
    number = Decimal(head)
    if not number or exponent == 0:
        return number
    if number.adjusted() + exponent > 40:  # too large for any DECIMAL
        return Decimal((number.as_tuple().sign, (1,), 40))
    if number.adjusted() + exponent < -80:  # rounded away
        return Decimal(0)
    return Decimal((*number.as_tuple()[:2], int(number.as_tuple().exponent) + exponent))
