"""Scalar functions as Spark SQL means them, for compiled expressions. What Spark would fail at comes back as (anything, True)."""

from __future__ import annotations

import math

import numba as nb
import numpy as np
from numba import types

from headrace.kernels import signatures as s

MIN, MAX = -(2**63), 2**63 - 1
_number = types.float64
_integer_or_null = types.Tuple((s.integer, s.boolean))
_number_or_null = types.Tuple((_number, s.boolean))


@nb.njit(_number(s.integer), cache=True)
def as_double(word: int) -> float:
    """The double with these bits."""
    return np.int64(word).view(np.float64)


@nb.njit(s.boolean(_number, _number), cache=True)
def same(a: float, b: float) -> bool:
    """`a = b`: NaN is itself, and the zeros are one."""
    return a == b or (a != a and b != b)


@nb.njit(s.boolean(_number, _number), cache=True)
def less(a: float, b: float) -> bool:
    """`a < b`: NaN is above all others."""
    return a < b or (b != b and a == a)


@nb.njit(_number(_number), cache=True)
def single(x: float) -> float:
    """Rounded to FLOAT. The sum or product of two FLOATs is rounded right this way, though it was rounded to a double before."""
    return float(np.float32(x))


@nb.njit(_number(s.integer), cache=True)
def single_of_integer(x: int) -> float:
    """An integer rounded to FLOAT, once."""
    return float(np.float32(x))


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def add(a: int, b: int) -> tuple[int, bool]:
    """`a + b`. Unsigned, because the compiler takes it for granted that signed numbers do not overflow."""
    total = np.int64(np.uint64(a) + np.uint64(b))
    return total, ((a ^ total) & (b ^ total)) < 0


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def subtract(a: int, b: int) -> tuple[int, bool]:
    """`a - b`."""
    rest = np.int64(np.uint64(a) - np.uint64(b))
    return rest, ((a ^ b) & (a ^ rest)) < 0


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def multiply(a: int, b: int) -> tuple[int, bool]:
    """`a * b`. The product of doubles tells at once, unless it is next to the end of the range."""
    product = np.int64(np.uint64(a) * np.uint64(b))
    about = abs(float(a) * float(b))
    if about < 9.22e18:
        return product, False
    if about > 9.23e18:
        return product, True
    first = np.uint64(a) if a > 0 else np.uint64(0) - np.uint64(a)
    second = np.uint64(b) if b > 0 else np.uint64(0) - np.uint64(b)
    most = np.uint64(MAX) if (a > 0) == (b > 0) else np.uint64(2**63)
    return product, first > most // second


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def divide_whole(a: int, b: int) -> tuple[int, bool]:
    """`a DIV b`, towards zero."""
    if b == 0:
        return 0, True
    if b == -1:  # the processor traps at MIN / -1
        return subtract(0, a)
    quotient = a // b
    if quotient < 0 and quotient * b != a:
        quotient += 1
    return quotient, False


@nb.njit(_integer_or_null(s.integer), cache=True)
def absolute(a: int) -> tuple[int, bool]:
    """`ABS(a)`."""
    return subtract(0, a) if a < 0 else (a, False)


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def remainder(a: int, b: int) -> tuple[int, bool]:
    """`a % b`, with the sign of a."""
    if b == 0:
        return 0, True
    return a - divide_whole(a, b)[0] * b if b != -1 else 0, False


@nb.njit(_number_or_null(_number, _number), cache=True)
def divide(a: float, b: float) -> tuple[float, bool]:
    """`a / b`: nothing is divided by zero, not even a double."""
    if b == 0.0:
        return 0.0, True
    return a / b, False


@nb.njit(_number_or_null(_number, _number), cache=True)
def remainder_of_doubles(a: float, b: float) -> tuple[float, bool]:
    """`a % b` of doubles, with the sign of a."""
    if b == 0.0:
        return 0.0, True
    return np.fmod(a, b), False


@nb.njit(_integer_or_null(_number, s.integer, s.integer), cache=True)
def to_integer(x: float, least: int, most: int) -> tuple[int, bool]:
    """`CAST(x AS BIGINT)` and the smaller ones: the fraction goes, and 2^63 is taken for the BIGINT before it, as in Spark."""
    if not (np.floor(x) <= float(most) and np.ceil(x) >= float(least)):  # NaN is in no range
        return 0, True
    if x >= 2.0**63:
        return MAX, False
    return int(x), False


@nb.njit(_integer_or_null(_number), cache=True)
def floor(x: float) -> tuple[int, bool]:
    """`FLOOR(x)`, a BIGINT; of NaN it is 0 in Spark."""
    if x != x or x >= 2.0**63:
        return 0, x == x
    return to_integer(np.floor(x), MIN, MAX)


@nb.njit(_integer_or_null(_number), cache=True)
def ceil(x: float) -> tuple[int, bool]:
    """`CEIL(x)`, a BIGINT; of NaN it is 0 in Spark."""
    if x != x or x >= 2.0**63:
        return 0, x == x
    return to_integer(np.ceil(x), MIN, MAX)


@nb.njit(_number(_number), cache=True)
def root(x: float) -> float:
    """`SQRT(x)`: NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else math.nan


@nb.njit(_number(_number), cache=True)
def sign(x: float) -> float:
    """`SIGN(x)`: zero and NaN are their own signs."""
    if x > 0.0:
        return 1.0
    return -1.0 if x < 0.0 else x


@nb.njit(_integer_or_null(s.integer, s.integer), cache=True)
def round_integer(x: int, unit: int) -> tuple[int, bool]:
    """`ROUND(x, -n)` to a multiple of unit = 10^n; halves go away from zero."""
    rest = remainder(x, unit)[0]
    base = x - rest
    if abs(rest) < unit - abs(rest):
        return base, False
    return add(base, unit if x > 0 else -unit)


@nb.njit(types.UniTuple(_number, 2)(_number, _number), cache=True)
def _product(a: float, b: float) -> tuple[float, float]:
    """The exact product of two doubles as the sum of two (Dekker, with the splitting of Veltkamp)."""
    high = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@nb.njit(_integer_or_null(_number, s.integer), cache=True)
def _round_long(size: float, digits: int) -> tuple[int, bool]:
    """What ROUND keeps of the shortest decimal that is read as `size`, if that is 15 digits or more, and whether to go up."""
    unit = 1
    while True:
        scale = 10.0**digits * unit
        high, low = _product(size, scale)
        count = int(np.rint(high)) + int(np.rint((high - np.rint(high)) + low))
        if high >= 2.0**53 or count / scale == size:
            return count // unit, 2 * (count % unit) >= unit and unit > 1
        unit *= 10


@nb.njit(_number(_number, s.integer), cache=True)
def round_double(x: float, digits: int) -> float:
    """`ROUND(x, digits)`: halves of the decimal that is printed for x, not of its bits, go away from zero; 0 <= digits <= 15."""
    scale = 10.0**digits
    size = abs(x)
    scaled = size * scale
    if not scaled < 2.0**53:  # one decimal of so many digits or fewer is next to x; NaN and infinities stay as well
        return x
    if scaled < 2.0**48:
        # The half way mark as a double is x itself exactly if the decimal of x is half way. All counts here are exact.
        count = int(scaled)
        if count / scale > size:  # the product was rounded up to the next count
            count -= 1
        up = size >= (2 * count + 1) / (2 * scale)
    else:
        count, up = _round_long(size, digits)
    return math.copysign((count + (1 if up else 0)) / scale, x) + 0.0  # a zero has no sign: it was a decimal


@nb.njit(_number(_number), cache=True)
def exponential(x: float) -> float:
    """`EXP(x)`. Its last bit may differ from Java's, as that of LN and of POWER may, but for squares and roots."""
    return math.exp(x)


@nb.njit(_number_or_null(_number), cache=True)
def logarithm(x: float) -> tuple[float, bool]:
    """`LN(x)`: NULL up to zero."""
    if x <= 0.0:
        return 0.0, True
    return math.log(x), False


@nb.njit(_number(_number, _number), cache=True)
def power(x: float, y: float) -> float:
    """`POWER(x, y)`, with the special cases of Java: squares and roots are exact, and no power of NaN but 0 is a number."""
    if y == 2.0:
        return x * x
    if y == 1.0 or y == 0.0:
        return x if y == 1.0 else 1.0
    if y == 0.5 and x > -math.inf:
        return root(x + 0.0)
    if x != x or y != y or (abs(y) == math.inf and abs(x) == 1.0):
        return math.nan
    return x**y


@nb.njit(_number_or_null(_number, _number), cache=True)
def logarithm_to(base: float, x: float) -> tuple[float, bool]:
    """`LOG(base, x)`: NULL up to zero, of either."""
    if base <= 0.0 or x <= 0.0:
        return 0.0, True
    return math.log(x) * math.inf if base == 1.0 else math.log(x) / math.log(base), False


@nb.njit(_number(_number), cache=True)
def radians(x: float) -> float:
    """`RADIANS(x)`, with the one multiplication of Java."""
    return x * 0.017453292519943295


@nb.njit(_number(_number), cache=True)
def degrees(x: float) -> float:
    """`DEGREES(x)`, with the one multiplication of Java."""
    return x * 57.29577951308232


@nb.njit(s.integer(s.integer, s.integer, s.integer), cache=True)
def compare_scaled(a: int, b: int, unit: int) -> int:
    """The sign of a * unit - b, where that product may not fit: a against b / unit, rounded down, and what is left over."""
    whole = b // unit
    if a != whole:
        return 1 if a > whole else -1
    return 0 if whole * unit == b else -1
