"""Integers and floats: Java's, and what Spark checks of them under ANSI."""

from __future__ import annotations

import math
from ctypes import c_float
from decimal import Decimal
from fractions import Fraction

from headrace.scalars.row.meaning.failed import Failed

LEAST, MOST = -(2**63), 2**63 - 1
_FLOAT_STEP = 2.0**-149  # between the smallest FLOATs
_FLOAT_END = 2.0**128


def single(x: float) -> float:
    """A double rounded to FLOAT."""
    return c_float(x).value


def single_of(exact: int | Decimal) -> float:
    """A number rounded to FLOAT at once: rounded to a double before, it could seem to lie half way between two."""
    near = float(exact)
    found = single(near)
    if near == exact or not math.isfinite(near):
        return found
    low, high = (found, _next(found)) if found <= near else (_before(found), found)
    half = Fraction(low if low > -_FLOAT_END else -_FLOAT_END) + Fraction(high if high < _FLOAT_END else _FLOAT_END)
    if Fraction(near) * 2 != half:
        return found
    return high if exact > near else low


def _next(x: float) -> float:
    """The FLOAT above; past the last one, infinity stands for where it would be."""
    if math.isinf(x):
        return -single(3.4028234663852886e38) if x < 0 else x
    step = max(math.ulp(x) * 2.0**29, _FLOAT_STEP)
    if x < 0 and math.frexp(x)[0] == -0.5 and step > _FLOAT_STEP:
        step /= 2  # towards zero from a power of two
    return single(x + step)


def _before(x: float) -> float:
    return -_next(-x)


def truncated(x: float, least: int, most: int, kind: str) -> int:
    """CAST to an integer: the fraction goes. 2^63 is taken for the BIGINT before it, as in Spark."""
    if not (math.isfinite(x) and math.floor(x) <= float(most) and math.ceil(x) >= float(least)):
        raise Failed(f"{x} does not fit into {kind}")
    return min(int(x), most)


def saturated(x: float) -> int:
    """Java's (long) of a double: the ends where it does not fit, 0 for NaN."""
    if x != x:
        return 0
    return MOST if x >= 2.0**63 else LEAST if x <= -(2.0**63) else int(x)


def divide_whole(a: int, b: int) -> int:
    """`a DIV b` towards zero."""
    if b == 0:
        raise Failed("division by zero")
    quotient = abs(a) // abs(b)
    quotient = quotient if (a < 0) == (b < 0) else -quotient
    if quotient > MOST:
        raise Failed("the quotient does not fit into BIGINT")
    return quotient


def remainder(a: int, b: int) -> int:
    """`a % b` with the sign of a."""
    if b == 0:
        raise Failed("remainder of a division by zero")
    found = abs(a) % abs(b)
    return -found if a < 0 else found


def divide(a: float, b: float) -> float:
    """`a / b`: nothing is divided by zero, not even a double."""
    if b == 0.0:
        raise Failed("division by zero")
    return a / b


def remainder_of_doubles(a: float, b: float) -> float:
    if b == 0.0:
        raise Failed("remainder of a division by zero")
    return _fmod(a, b)


def _fmod(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or b == 0.0 else math.fmod(a, b)


def pmod_of_doubles(a: float, b: float) -> float:
    """PMOD: the remainder moved up once where it is below zero."""
    found = remainder_of_doubles(a, b)
    return _fmod(found + b, b) if found < 0 else found


def pmod(a: int, b: int, bits: int) -> int:
    """PMOD of integers, whose sum goes round the end as Java's does: bytes and shorts are ints to it."""
    found = remainder(a, b)
    return remainder(wrapped(found + b, bits), b) if found < 0 else found


def wrapped(x: int, bits: int) -> int:
    """A whole number as Java's of so many bits, which goes round at the ends."""
    half = 1 << (bits - 1)
    return ((x + half) & ((1 << bits) - 1)) - half


def shift_left(x: int, by: int, bits: int) -> int:
    return wrapped(x << (by & (bits - 1)), bits)


def shift_right(x: int, by: int, bits: int) -> int:
    return x >> (by & (bits - 1))


def shift_right_unsigned(x: int, by: int, bits: int) -> int:
    return wrapped((x & ((1 << bits) - 1)) >> (by & (bits - 1)), bits)


def sign(x: float) -> float:
    """SIGN: a zero and NaN are their own."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x


def root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


def floor(x: float) -> int:
    """A BIGINT; of NaN it is 0."""
    return _inside(math.floor(x)) if x - x == 0.0 else _inside(x)


def ceil(x: float) -> int:
    """A BIGINT; of NaN it is 0."""
    return _inside(math.ceil(x)) if x - x == 0.0 else _inside(x)


def _inside(x: float) -> int:
    if x != x:
        return 0
    if not LEAST <= x <= MOST:
        raise Failed(f"{x} does not fit into BIGINT")
    return int(x)


def radians(x: float) -> float:
    """RADIANS, with the one multiplication of Java."""
    return x * 0.017453292519943295


def degrees(x: float) -> float:
    """DEGREES, with the one multiplication of Java."""
    return x * 57.29577951308232


def same(a: float, b: float) -> bool:
    """`a = b`: NaN is itself, and the zeros are one."""
    return a == b or (a != a and b != b)


def less(a: float, b: float) -> bool:
    """`a < b`: NaN is above all others."""
    return a < b or (b != b and a == a)


def round_integer(x: int, digits: int, most: int, kind: str, *, even: bool = False) -> int:
    """ROUND(x, -digits) to a multiple of 10^digits: halves go away from zero, with `even` to the even one."""
    unit = int(10**digits)
    count, rest = divmod(abs(x), unit)
    up = 2 * rest > unit or (2 * rest == unit and (not even or count % 2 == 1))
    found = (count + up) * unit
    found = -found if x < 0 else found
    if not -most - 1 <= found <= most:
        raise Failed(f"{x} rounded does not fit into {kind}")
    return found
