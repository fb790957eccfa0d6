"""The decimal that Java prints for a double. From Java 19 it is the shortest that is read as the same double; before, not always.

Spark takes it wherever a double becomes a DECIMAL or a STRING, or is rounded to digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial

from headrace.scalars.row.meaning.numbers import wrapped

SHORTEST = 19  # the first Java that prints the shortest
Digits = Callable[[float], tuple[str, int]]  # of a positive finite double: digits d1d2.., and e where it is 0.d1d2.. * 10^e


def digits_of(java: int, *, single: bool = False) -> Digits:
    """The digits that a version of Java prints; those of a FLOAT with `single`."""
    if java < SHORTEST:
        return partial(_developed, bits=24 if single else 53, least=-149 if single else -1074)
    return _shortest_single if single else _shortest


def _shortest(x: float) -> tuple[str, int]:
    found = _split(repr(x))
    return found if len(found[0]) > 1 else _split(f"{x:.1e}")  # of two digits the nearest: 4.9E-324


def _shortest_single(x: float) -> tuple[str, int]:
    import numpy as np

    found = _split(np.format_float_scientific(np.float32(x), unique=True))
    return found if len(found[0]) > 1 else _split(f"{x:.1e}")


def _split(text: str) -> tuple[str, int]:
    _, digits, exponent = Decimal(text).as_tuple()
    said = "".join(map(str, digits))
    assert isinstance(exponent, int), "it is finite"
    return said.rstrip("0") or "0", exponent + len(said)


def _developed(x: float, bits: int, least: int) -> tuple[str, int]:
    """Digit by digit until what is left lies within half a step of the double: as Java did up to 18, with all its corners."""
    mantissa, exponent = math.frexp(x)
    whole, high = int(mantissa * 2.0**53), exponent - 1  # x is 1.f * 2^high
    whole >>= (whole & -whole).bit_length() - 1
    size = whole.bit_length()
    kept = min(bits, high - least + 1)  # significant bits: fewer, for the smallest
    behind = max(0, size - high - 1)  # of them behind the point
    if behind == 0 and high <= 62:
        return _whole(whole << (high + 1 - size), high, kept)
    guess = math.floor((2 * mantissa - 1.5) * 0.289529654 + 0.176091259 + high * 0.301029995663981)
    fives, twos = max(0, -guess), max(0, -guess) + behind + high  # x is whole * 5^fives * 2^twos over ..
    under, lower = max(0, guess), max(0, guess) + behind  # .. 5^under * 2^lower, where guess is that of the power of ten
    step = twos - kept - (size == 1)  # half of the way to the next double; below a power of two that is half as far
    twos -= size - 1
    spare = min(twos, lower)
    twos, lower, step = twos - spare, lower - spare, step - spare
    if step < 0:
        twos, lower, step = twos - step, lower - step, 0
    needed = max(size + twos + _bits_of_five(fives), lower + 1 + _bits_of_five(under + 1))
    wide = 32 if needed < 32 else 64 if needed < 64 else None
    return _develop(whole * 5**fives << twos, 5**fives << step, 5**under << lower, guess, wide)


def _bits_of_five(power: int) -> int:
    """Of 5^power, as Java reckons them: it has a table for the first ones."""
    return 0 if power == 0 else (5**power).bit_length() if power < 27 else 3 * power


def _develop(top: int, half: int, bottom: int, power: int, bits: int | None) -> tuple[str, int]:
    """Digits of top / bottom, in Java's numbers of 32 or 64 bits, which go round at the end, or in larger ones."""
    digits: list[int] = []
    tens = 10 * bottom
    digit, top = divmod(top, bottom)
    top, half = top * 10, half * 10
    low, high = top < half, _beyond(top, half, tens, bits)
    if digit == 0 and not high:
        power -= 1  # the guess was one too large
    else:
        digits.append(digit)
    if not -3 <= power < 8:  # printed with an exponent, so there are at least two digits
        low = high = False
    while not low and not high:
        digit, top = divmod(top, bottom)
        top, half = top * 10, half * 10
        if bits is not None and wrapped(half, bits) <= 0:
            low = high = True
        else:
            low, high = top < half, _beyond(top, half, tens, bits)
        digits.append(digit)
    if high and (not low or _upwards(2 * top - tens, digits[-1])):
        power += _raise(digits)
    return "".join(map(str, digits)), power + 1


def _beyond(top: int, half: int, tens: int, bits: int | None) -> bool:
    """Whether the next double is within reach. Large numbers also stop where it lies half way."""
    return top + half >= tens if bits is None else wrapped(top + half, bits) > tens


def _upwards(difference: int, last: int) -> bool:
    return difference > 0 or (difference == 0 and last % 2 == 1)


def _raise(digits: list[int]) -> int:
    """Add one to the last digit; whether it became a one before all of them."""
    at = len(digits) - 1
    while digits[at] == 9:
        digits[at] = 0
        if at == 0:
            digits[0] = 1
            return 1
        at -= 1
    digits[at] += 1
    return 0


def _whole(value: int, high: int, kept: int) -> tuple[str, int]:
    """Of a whole number of at most 63 bits. Digits that its last bit does not tell are rounded away."""
    said = 0
    if high > kept:
        spare = high - kept - 1
        said = int(spare * 0.30103) if 1 < spare < 64 else 0
    power = said
    if said:
        unit = 10**said
        value, rest = divmod(value, unit)
        value += rest >= unit // 2
    text = str(value)
    return text.rstrip("0") or "0", len(text) + power


def text_of(x: float, digits: Digits) -> str:
    """`Double.toString`."""
    if x != x:
        return "NaN"
    sign = "-" if math.copysign(1.0, x) < 0 else ""
    if math.isinf(x):
        return f"{sign}Infinity"
    if x == 0.0:
        return f"{sign}0.0"
    said, point = digits(abs(x))
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{said}"
    if 0 < point < 8:
        return f"{sign}{said[:point].ljust(point, '0')}.{said[point:] or '0'}"
    return f"{sign}{said[0]}.{said[1:] or '0'}E{point - 1}"


def decimal_of(x: float, digits: Digits) -> Decimal:
    """The decimal of a finite double."""
    if x == 0.0:
        return Decimal(0)
    said, point = digits(abs(x))
    return Decimal((int(x < 0), tuple(map(int, said)), point - len(said)))
