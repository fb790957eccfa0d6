"""Columns of exact accumulators: a sum is a function of the multiset, so order and removals change no bit.

A column is a C-contiguous int64 array `limbs[key, width]` and an integer `low`; row i stands for
sum over j of limbs[i, j] * 2^(32 * (j + low)). It is carry-save: a limb may hold any int64, and adding or
removing a number only adds 32-bit pieces of it to neighbouring limbs, without carrying. After at most
`ADDS_BEFORE_NORMALIZE` adds and removes to a row (together), `normalize` must carry once. Until then no limb
can overflow; nothing here counts them, the caller does.

The top limb is the headroom: it takes pieces of at most 31 bits (20 for doubles) and has 63, so a column
holds any sum of 2^31 (2^42) numbers within its range, which is more than a window has.

Only finite doubles have a place here. NaN, +inf and -inf are counted by the caller, who also decides what
an answer over them is.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headrace.kernels.exact.moments import (
    read_int64,
    read_int128,
    read_mean,
    read_mean_int128,
    read_sum,
    read_variance,
)
from headrace.kernels.exact.rounding import DIGIT, LIMB_BITS, Int, Limbs

__all__ = [
    "ADDS_BEFORE_NORMALIZE",
    "INT64_WIDTH",
    "INT128_WIDTH",
    "add",
    "add_int",
    "add_int128",
    "add_square",
    "empty",
    "limb_range",
    "normalize",
    "read_int64",
    "read_int128",
    "read_mean",
    "read_mean_int128",
    "read_sum",
    "read_variance",
    "square_limb_range",
    "to_fraction",
    "widen",
]

# One add puts less than 2^32 into a limb; half of what an int64 could take leaves room for carries.
ADDS_BEFORE_NORMALIZE = 1 << 30
INT64_WIDTH = 2
INT128_WIDTH = 4

_DOUBLE_PIECES = 3  # 53 bits at any offset in a limb
_SQUARE_PIECES = 5  # 106 bits at any offset in a limb

_U32 = np.uint64(32)
_DIGIT_U = np.uint64(0xFFFFFFFF)
_HIDDEN_BIT = np.int64(1 << 52)
_EXPONENT_MASK = np.int64(0x7FF)
_ULP_BIAS = 1075  # a double is mantissa * 2^(exponent field - 1075), the mantissa being an integer


@njit(cache=True, forceinline=True)
def _split(x: float) -> tuple[Int, Int]:
    """Integer mantissa and exponent field of |x|, the field of a subnormal being 1."""
    bits = np.float64(x).view(np.int64)
    field = (bits >> 52) & _EXPONENT_MASK
    mantissa = bits & (_HIDDEN_BIT - 1)
    if field == _EXPONENT_MASK:
        raise ValueError("an exact column holds finite doubles only")
    if field == 0:
        return mantissa, np.int64(1)
    return mantissa | _HIDDEN_BIT, field


@njit(cache=True)
def _check(first: Int, pieces: Int, width: Int) -> None:
    if first < 0 or first + pieces > width:
        raise IndexError("number outside the limb range of its exact column: widen the column first")


@njit(cache=True, forceinline=True)
def add(limbs: Limbs, row: Int, low: Int, x: float, sign: Int) -> None:
    """Adds sign * x, sign being +1 or -1. The column must cover `limb_range` of x."""
    if x == 0.0:
        return
    mantissa, field = _split(x)
    place = field - _ULP_BIAS - LIMB_BITS * low
    first, shift = place >> 5, place & 31
    _check(first, _DOUBLE_PIECES, limbs.shape[1])
    s = np.int64(sign) if x > 0.0 else -np.int64(sign)
    limbs[row, first] += s * ((mantissa << shift) & DIGIT)
    limbs[row, first + 1] += s * ((mantissa >> (32 - shift)) & DIGIT)
    limbs[row, first + 2] += s * ((mantissa >> 32) >> (32 - shift))


@njit(cache=True, forceinline=True)
def add_square(limbs: Limbs, row: Int, low: Int, x: float, sign: Int) -> None:
    """Adds sign * x * x, exactly. The column must cover `square_limb_range` of x."""
    if x == 0.0:
        return
    mantissa, field = _split(x)
    place = 2 * (field - _ULP_BIAS) - LIMB_BITS * low
    first = place >> 5
    shift = np.uint64(place & 31)
    _check(first, _SQUARE_PIECES, limbs.shape[1])
    # mantissa = a * 2^32 + b, and a < 2^21: the middle term has at most 54 bits.
    a, b = np.uint64(mantissa >> 32), np.uint64(mantissa & DIGIT)
    middle = np.uint64(2) * a * b + ((b * b) >> _U32)
    lo = (middle << _U32) | ((b * b) & _DIGIT_U)
    hi = a * a + (middle >> _U32)
    s = np.int64(sign)
    limbs[row, first] += s * np.int64((lo << shift) & _DIGIT_U)
    limbs[row, first + 1] += s * np.int64((lo >> (_U32 - shift)) & _DIGIT_U)
    limbs[row, first + 2] += s * np.int64((((lo >> _U32) >> (_U32 - shift)) | (hi << shift)) & _DIGIT_U)
    limbs[row, first + 3] += s * np.int64((hi >> (_U32 - shift)) & _DIGIT_U)
    limbs[row, first + 4] += s * np.int64((hi >> _U32) >> (_U32 - shift))


@njit(cache=True, forceinline=True)
def add_int(limbs: Limbs, row: Int, low: Int, v: Int, sign: Int) -> None:
    """Adds sign * v for an int64 v. The column has at least INT64_WIDTH limbs from place 0 on; low <= 0."""
    _check(-low, INT64_WIDTH, limbs.shape[1])
    s = np.int64(sign)
    limbs[row, -low] += s * (v & DIGIT)
    limbs[row, 1 - low] += s * (v >> 32)


@njit(cache=True, forceinline=True)
def add_int128(limbs: Limbs, row: Int, low: Int, hi: Int, lo: np.uint64, sign: Int) -> None:
    """Adds sign * (hi * 2^64 + lo): int64 hi, uint64 lo. At least INT128_WIDTH limbs from place 0 on."""
    _check(-low, INT128_WIDTH, limbs.shape[1])
    s = np.int64(sign)
    limbs[row, -low] += s * np.int64(np.uint64(lo) & _DIGIT_U)
    limbs[row, 1 - low] += s * np.int64(np.uint64(lo) >> _U32)
    limbs[row, 2 - low] += s * (hi & DIGIT)
    limbs[row, 3 - low] += s * (hi >> 32)


@njit(cache=True)
def normalize(limbs: Limbs) -> None:
    """Carries, in place: every limb but the top one ends in [0, 2^32), the top one keeps the sign."""
    width = limbs.shape[1]
    for row in range(limbs.shape[0]):
        for j in range(width - 1):
            limbs[row, j + 1] += limbs[row, j] >> 32
            limbs[row, j] &= DIGIT


def empty(n_keys: int, width: int = 0) -> Limbs:
    """A column of zeros with low = 0; without a width it fits nothing yet, and `widen` gives it its range."""
    return np.zeros((n_keys, width), np.int64)


@njit(cache=True)
def _exponent_fields(values: NDArray[np.float64]) -> tuple[Int, Int]:
    """Smallest and largest exponent field of the finite non-zero values; largest 0 if there are none."""
    least, most = _EXPONENT_MASK, np.int64(0)
    for i in range(values.shape[0]):
        if values[i] != 0.0 and np.isfinite(values[i]):
            field = np.int64(_split(values[i])[1])
            least = min(least, field)
            most = max(most, field)
    return least, most


def limb_range(values: NDArray[np.float64]) -> tuple[int, int]:
    """(low, high): the places low <= j < high that adding these doubles needs; low = high if it needs none.

    Values that are not finite are passed over. No place is kept for carries: the top limb is wide enough.
    """
    least, most = _exponent_fields(values)
    if most == 0:
        return 0, 0
    return int(least - _ULP_BIAS) >> 5, (int(most - _ULP_BIAS) >> 5) + _DOUBLE_PIECES


def square_limb_range(values: NDArray[np.float64]) -> tuple[int, int]:
    """Like `limb_range`, for the squares of the values."""
    least, most = _exponent_fields(values)
    if most == 0:
        return 0, 0
    return 2 * int(least - _ULP_BIAS) >> 5, (2 * int(most - _ULP_BIAS) >> 5) + _SQUARE_PIECES


def widen(limbs: Limbs, low: int, new_low: int, new_high: int) -> tuple[Limbs, int]:
    """The same values in a column that covers the old range and the new one; itself if it does already."""
    n_keys, width = limbs.shape
    if new_low >= new_high or (width and low <= new_low and new_high <= low + width):
        return limbs, low
    first, end = (min(low, new_low), max(low + width, new_high)) if width else (new_low, new_high)
    wide = empty(n_keys, end - first)
    wide[:, low - first : low - first + width] = limbs
    # The old top limb may hold more than an inner limb can be trusted with.
    normalize(wide)
    return wide, first


def to_fraction(limbs_row: Limbs, low: int) -> Fraction:
    """The value of one row, for tests and the oracle."""
    total = sum(int(limb) << (LIMB_BITS * j) for j, limb in enumerate(limbs_row))
    return Fraction(total) * Fraction(2) ** (LIMB_BITS * low)
