"""Reading exact rows: sum, mean, variance, and the integer forms. Each is rounded once, at the end.

None of these changes the row, and all of them read normalised and un-normalised rows alike.
A result that is exactly zero is +0.0; one that underflows keeps its sign, as in IEEE 754.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headrace.kernels.exact.rounding import (
    DIGIT,
    Int,
    Limbs,
    divide_128,
    divide_digit,
    leading,
    narrow,
    round_128,
    round_to_double,
    sign_and_top,
)

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U32 = np.uint64(32)
_U63 = np.uint64(63)
_TEN = np.uint64(10)
_DIGIT_U = np.uint64(0xFFFFFFFF)
_SIGN_BIT = np.uint64(1 << 63)
_MOST_ROWS = 1 << 31


@njit(cache=True, forceinline=True)
def read_sum(limbs: Limbs, row: Int, low: Int) -> float:
    """The row as a double, half to even; +-inf beyond the largest."""
    sign, hi, lo, exponent, sticky = leading(limbs, row, low)
    if sign == 0:
        return 0.0
    return round_to_double(sign, hi, exponent + 64, (lo | sticky) != _U0)


@njit(cache=True, forceinline=True)
def read_mean(limbs: Limbs, row: Int, low: Int, n: Int) -> float:
    """The row divided by n as a double, half to even; 1 <= n < 2^63."""
    sign, hi, lo, exponent, sticky = leading(limbs, row, low)
    if sign == 0:
        return 0.0
    # hi:lo >= 2^127 and n < 2^63, so the quotient has at least 65 bits: more than a rounding needs.
    q_hi, q_lo, rest = divide_128(hi, lo, np.uint64(n))
    return round_128(sign, q_hi, q_lo, exponent, (rest | sticky) != _U0)


@njit(cache=True)
def _signed_128(sign: Int, hi: np.uint64, lo: np.uint64) -> tuple[Int, np.uint64, bool]:
    """Two's complement of sign * (hi * 2^64 + lo), and whether it fits."""
    if sign < 0:
        fits = hi < _SIGN_BIT or (hi == _SIGN_BIT and lo == _U0)
        lo = ~lo + _U1
        hi = ~hi + (_U1 if lo == _U0 else _U0)
    else:
        fits = hi < _SIGN_BIT
    if not fits:
        return np.int64(0), _U0, False
    return np.int64(hi), lo, True


@njit(cache=True)
def read_int128(limbs: Limbs, row: Int, low: Int) -> tuple[Int, np.uint64, bool]:
    """(hi, lo, ok): the row as hi * 2^64 + lo; not ok, and zero, unless it is an integer that fits."""
    fits, narrow_hi, narrow_lo = narrow(limbs, row)
    if fits and low == 0:
        return narrow_hi, np.uint64(narrow_lo), True
    sign, hi, lo, exponent, sticky = leading(limbs, row, low)
    if sign == 0:
        return np.int64(0), _U0, True
    if exponent > 0 or exponent <= -128 or sticky != _U0:
        return np.int64(0), _U0, False
    down = np.uint64(-exponent)
    if exponent <= -64:
        lost = lo | (hi & ((_U1 << (down - np.uint64(64))) - _U1))
        lo, hi = hi >> (down - np.uint64(64)), _U0
    else:
        lost = lo & ((_U1 << down) - _U1)
        lo = (lo >> down) | ((hi << _U1) << (_U63 - down))
        hi >>= down
    if lost != _U0:
        return np.int64(0), _U0, False
    return _signed_128(sign, hi, lo)


@njit(cache=True)
def read_int64(limbs: Limbs, row: Int, low: Int) -> tuple[Int, bool]:
    """(value, ok): not ok, and zero, unless the row is an integer that fits."""
    hi, lo, ok = read_int128(limbs, row, low)
    value = np.int64(lo)
    if not ok or hi != value >> 63:
        return np.int64(0), False
    return value, True


@njit(cache=True)
def _write_magnitude(limbs: Limbs, row: Int, sign: Int, last: Int, digits: np.ndarray, at: Int) -> None:
    """Puts the 32-bit digits of |row| into `digits`, the lowest at place `at`."""
    carry = np.int64(0)
    for j in range(last + 1):
        t = carry
        if j < limbs.shape[1]:
            t += sign * limbs[row, j]
        digits[at + j] = np.uint64(t & DIGIT)
        carry = t >> 32


@njit(cache=True)
def _times_ten(digits: np.ndarray) -> None:
    carry = _U0
    for j in range(digits.shape[0]):
        t = digits[j] * _TEN + carry
        digits[j] = t & _DIGIT_U
        carry = t >> _U32


@njit(cache=True)
def _divide(digits: np.ndarray, n: np.uint64) -> np.uint64:
    """Divides in place and gives the remainder."""
    rest = _U0
    for j in range(digits.shape[0] - 1, -1, -1):
        digits[j], rest = divide_digit(rest, digits[j], n)
    return rest


@njit(cache=True)
def _increment(digits: np.ndarray) -> None:
    for j in range(digits.shape[0]):
        digits[j] = (digits[j] + _U1) & _DIGIT_U
        if digits[j] != _U0:
            return


@njit(cache=True)
def read_mean_int128(limbs: Limbs, row: Int, low: Int, n: Int, k: Int) -> tuple[Int, np.uint64, bool]:
    """(hi, lo, ok): row * 10^k / n rounded HALF_UP (away from zero); not ok, and zero, if it does not fit.

    For decimals, so for rows of integers: low >= 0, k >= 0, 1 <= n < 2^63. The sum need not fit in 128 bits.
    """
    if low < 0:
        raise ValueError("a decimal mean needs a column of integers")
    sign, last = sign_and_top(limbs, row)
    if sign == 0:
        return np.int64(0), _U0, True
    # 10^k takes at most k / 9 + 1 digits more; four are always there for the result; one for rounding up.
    digits = np.zeros(max(4, low + last + 1 + k // 9 + 1) + 1, np.uint64)
    _write_magnitude(limbs, row, sign, last, digits, low)
    for _ in range(k):
        _times_ten(digits)
    rest = _divide(digits, np.uint64(n))
    if rest >= np.uint64(n) - rest:
        _increment(digits)
    for j in range(4, digits.shape[0]):
        if digits[j] != _U0:
            return np.int64(0), _U0, False
    return _signed_128(sign, digits[2] | (digits[3] << _U32), digits[0] | (digits[1] << _U32))


@njit(cache=True)
def _balance(limbs: Limbs, row: Int, out: np.ndarray) -> None:
    """Writes the row as digits in [-2^31, 2^31), one more than it has limbs: products fit in 62 bits."""
    half = np.int64(1 << 31)
    carry = np.int64(0)
    for j in range(limbs.shape[1]):
        t = limbs[row, j] + carry
        digit = ((t + half) & DIGIT) - half
        out[j] = digit
        carry = (t - digit) >> 32
    out[limbs.shape[1]] = carry


@njit(cache=True)
def read_variance(sum_limbs: Limbs, sum_low: Int, sq_limbs: Limbs, sq_low: Int, row: Int, n: Int, ddof: Int) -> float:
    """(n * Q - S * S) / (n * (n - ddof)) as a double, half to even, for S the sum and Q the sum of squares.

    ddof < n <= 2^31 (the products below need it); n <= ddof is the caller's case.
    """
    if n <= ddof or n > _MOST_ROWS:
        raise ValueError("variance needs ddof < n <= 2^31")
    terms = sum_limbs.shape[1] + 1
    squares = sq_limbs.shape[1] + 1
    base = min(2 * sum_low, sq_low)
    sum_at, sq_at = 2 * sum_low - base, sq_low - base
    span = max(sum_at + 2 * terms, sq_at + squares + 1)
    scratch = np.zeros((2, span), np.int64)  # a row of limbs, and room for the digits of Q, then S
    digits = scratch[1]
    _balance(sq_limbs, row, digits)
    for j in range(squares):
        _add_product(scratch, sq_at + j, digits[j] * n)
    _balance(sum_limbs, row, digits)
    for i in range(terms):
        for j in range(terms):
            _add_product(scratch, sum_at + i + j, -digits[i] * digits[j])
    sign, hi, lo, exponent, sticky = leading(scratch, 0, base)
    if sign == 0:
        return 0.0
    # Two divisions by less than 2^32 cost less than one by n * (n - ddof), and leave at least 65 bits of 127.
    hi, lo, rest = divide_128(hi, lo, np.uint64(n))
    hi, lo, rest_too = divide_128(hi, lo, np.uint64(n - ddof))
    return round_128(sign, hi, lo, exponent, (rest | rest_too | sticky) != _U0)


@njit(cache=True)
def _add_product(limbs: Limbs, j: Int, product: Int) -> None:
    limbs[0, j] += product & DIGIT
    limbs[0, j + 1] += product >> 32
