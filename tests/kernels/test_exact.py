"""Exact columns against `fractions.Fraction`, slow, obvious, and correctly rounded by `float(...)`."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from headrace.kernels.exact import accumulators as exact

FIRST_FIELD, MAX, TINY = 2.0**-1022, 1.7976931348623157e308, 5e-324

quick = settings(max_examples=150, deadline=None)

doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e6, 1e6),
    st.floats(-1e-307, 1e-307),
    st.integers(-(2**60), 2**60).map(float),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, TINY, -TINY, FIRST_FIELD, MAX, -MAX, 2.0**53, 2.0**-1074 * 3]),
)
limb = st.one_of(
    st.integers(-(2**62), 2**62),
    st.sampled_from([0, 0, 1, -1, 2**32 - 1, 2**32, -(2**32), 2**31, -(2**31), 1 - 2**32, 2**62, -(2**62)]),
)
rows = st.lists(limb, max_size=9)
counts = st.one_of(st.integers(1, 2**62), st.integers(1, 1000), st.sampled_from([1, 2, 3, 2**32 - 1, 2**32, 2**62]))


def double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def bits(x: float) -> str:
    return struct.pack(">d", x).hex()


def column(values: list[float], square: bool = False) -> tuple[exact.Limbs, int]:
    array = np.array(values, np.float64)
    wanted = exact.square_limb_range(array) if square else exact.limb_range(array)
    limbs, low = exact.widen(exact.empty(1), 0, *wanted)
    for x in values:
        (exact.add_square if square else exact.add)(limbs, 0, low, x, 1)
    return limbs, low


def one_row(limbs: list[int]) -> exact.Limbs:
    return np.array(limbs, np.int64).reshape(1, -1)


def row_of(value: int, width: int) -> exact.Limbs:
    digits = [value >> (32 * j) & 0xFFFFFFFF for j in range(width - 1)]
    return one_row([*digits, value >> (32 * (width - 1))])


def pair(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (2**64 - 1))


def int128_fits(value: int) -> bool:
    return -(2**127) <= value < 2**127


def half_up(numerator: int, denominator: int) -> int:
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return magnitude if numerator >= 0 else -magnitude


# --- adding -----------------------------------------------------------------------------------------------


@quick
@given(st.lists(doubles, max_size=20))
def test_adding_loses_nothing(values):
    limbs, low = column(values)
    assert exact.to_fraction(limbs[0], low) == sum(map(Fraction, values))
    squares, low = column(values, square=True)
    assert exact.to_fraction(squares[0], low) == sum(Fraction(x) ** 2 for x in values)


@quick
@given(st.lists(doubles, max_size=20), st.lists(doubles, max_size=20), st.randoms(), st.booleans())
def test_removing_returns_to_the_bits_of_a_fresh_sum(kept, removed, rng, normalise):
    limbs, low = exact.widen(exact.empty(1), 0, *exact.limb_range(np.array(kept + removed)))
    squares, sq_low = exact.widen(exact.empty(1), 0, *exact.square_limb_range(np.array(kept + removed)))
    changes = [(x, 1) for x in kept + removed] + [(x, -1) for x in removed]
    rng.shuffle(changes)
    for x, sign in changes:
        exact.add(limbs, 0, low, x, sign)
        exact.add_square(squares, 0, sq_low, x, sign)
        if normalise and rng.random() < 0.2:
            exact.normalize(limbs)
            exact.normalize(squares)
    fresh = column(kept)
    assert bits(exact.read_sum(limbs, 0, low)) == bits(exact.read_sum(fresh[0], 0, fresh[1]))
    n = len(kept)
    if n:
        assert bits(exact.read_mean(limbs, 0, low, n)) == bits(exact.read_mean(fresh[0], 0, fresh[1], n))
        want = exact.read_variance(*fresh, *column(kept, square=True), 0, n, 0)
        assert bits(exact.read_variance(limbs, low, squares, sq_low, 0, n, 0)) == bits(want)


@njit
def _add_all(limbs, low, keys, values, sign):
    for i in range(values.shape[0]):
        exact.add(limbs, keys[i], low, values[i], sign)


def test_from_compiled_loops_with_many_keys():
    rng = np.random.default_rng(7)
    values = rng.standard_normal(50_000) * 10.0 ** rng.integers(-40, 40, 50_000)
    keys = rng.integers(0, 5, values.size)
    limbs, low = exact.widen(exact.empty(5), 0, *exact.limb_range(values))
    _add_all(limbs, low, keys, values, 1)
    for key in range(5):
        assert exact.read_sum(limbs, key, low) == math.fsum(values[keys == key])
    order = rng.permutation(values.size)[:40_000]
    _add_all(limbs, low, keys[order], values[order], -1)
    values[order] = 0.0
    for key in range(5):
        assert exact.read_sum(limbs, key, low) == math.fsum(values[keys == key])


def test_a_row_takes_as_many_adds_as_promised():
    value = struct.unpack(">d", bytes.fromhex("3fffffffffffffff"))[0]
    limbs, low = column([value])
    limbs *= exact.ADDS_BEFORE_NORMALIZE
    total = Fraction(value) * exact.ADDS_BEFORE_NORMALIZE
    for _ in range(3):
        exact.add(limbs, 0, low, value, 1)
        total += Fraction(value)
        assert exact.to_fraction(limbs[0], low) == total
        assert exact.read_sum(limbs, 0, low) == double(total)
        exact.normalize(limbs)


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
def test_only_finite_doubles(x):
    limbs, low = exact.widen(exact.empty(1), 0, *exact.limb_range(np.array([TINY, MAX])))
    with pytest.raises(ValueError, match="finite"):
        exact.add(limbs, 0, low, x, 1)
    with pytest.raises(ValueError, match="finite"):
        exact.add_square(limbs, 0, low, x, 1)
    assert exact.limb_range(np.array([x, 1.0])) == exact.limb_range(np.array([1.0]))


@pytest.mark.parametrize("x", [1e-30, 2.0**-13, 2.0**21, 1e30])  # far beside the limbs of 1.0, and just
def test_out_of_range_is_refused_and_changes_nothing(x):
    for square, add in [(False, exact.add), (True, exact.add_square)]:
        limbs, low = column([1.0], square)
        before = limbs.copy()
        with pytest.raises(IndexError, match="widen"):
            add(limbs, 0, low, x, 1)
        assert (limbs == before).all()
    with pytest.raises(IndexError, match="widen"):
        exact.add_int(exact.empty(1, 1), 0, 0, 1, 1)


# --- layout -----------------------------------------------------------------------------------------------


@quick
@given(rows)
def test_normalize_keeps_the_value(limbs):
    array = one_row(limbs)
    exact.normalize(array)
    assert exact.to_fraction(array[0], -1) == exact.to_fraction(one_row(limbs)[0], -1)
    assert all(0 <= d < 2**32 for d in array[0, :-1])


@quick
@given(rows, st.integers(-70, 40), st.integers(-75, 45), st.integers(-75, 45))
def test_widen_keeps_the_value_and_covers_both(limbs, low, new_low, new_high):
    wide, wide_low = exact.widen(one_row(limbs), low, new_low, new_high)
    assert exact.to_fraction(wide[0], wide_low) == exact.to_fraction(one_row(limbs)[0], low)
    if new_low < new_high:
        assert wide_low <= new_low
        assert wide_low + wide.shape[1] >= new_high
    if wide.shape[1] > len(limbs):  # room for as many adds as after any `normalize`
        assert all(0 <= d < 2**32 for d in wide[0, :-1])
    assert wide.flags.c_contiguous


@quick
@given(st.lists(doubles, max_size=12))
def test_growing_as_values_come(values):
    limbs, low = exact.empty(2), 0
    for x in values:
        limbs, low = exact.widen(limbs, low, *exact.limb_range(np.array([x])))
        exact.add(limbs, 1, low, x, 1)
    whole = column(values)
    assert bits(exact.read_sum(limbs, 1, low)) == bits(exact.read_sum(whole[0], 0, whole[1]))
    assert bits(exact.read_sum(limbs, 0, low)) == bits(0.0)


def test_prices_need_three_limbs():
    low, high = exact.limb_range(np.array([0.01, 9999.99, 0.0, math.nan]))
    assert high - low == 3


# --- reading ----------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(rows, st.integers(-75, 36), counts)
@example([1, -1], 0, 1)
@example([0, -(2**32), 1], 0, 3)
@example([-5, 0, 0, 0, 0, 1], -3, 7)
@example([], 0, 1)
def test_reading_any_row(limbs, low, n):
    array = one_row(limbs)
    value = exact.to_fraction(array[0], low)
    assert bits(exact.read_sum(array, 0, low)) == bits(double(value))
    assert bits(exact.read_mean(array, 0, low, n)) == bits(double(value / n))
    assert (array == one_row(limbs)).all()
    exact.normalize(array)
    assert bits(exact.read_sum(array, 0, low)) == bits(double(value))
    padded = np.pad(array, ((0, 0), (2, 5)))  # too wide for the fast path
    assert bits(exact.read_sum(padded, 0, low - 2)) == bits(double(value))
    assert bits(exact.read_mean(padded, 0, low - 2, n)) == bits(double(value / n))


# A 53-bit mantissa, even or odd, and one, two or three quarters of its last place: two quarters are a tie.
TIES = [4 * (2**52 + m) + quarters for m in (0, 1, 2**52 - 1) for quarters in (1, 2, 3)]


@pytest.mark.parametrize("shift", range(0, 260, 3))
def test_a_hair_beside_a_tie_counts_however_far_down(shift):
    for tie in TIES:
        for hair in (-1, 0, 1):
            value = (-1) ** shift * ((tie << shift) + hair)
            for low in (-2, -38, 25):
                expected = double(Fraction(value) * Fraction(2) ** (32 * low))
                assert bits(exact.read_sum(row_of(value, 12), 0, low)) == bits(expected)


@pytest.mark.parametrize("n", [1, 3, 1000, 2**32 - 1, 2**32, 2**32 + 1, 2**62 - 1, 2**62])
def test_a_hair_beside_a_tie_of_a_mean(n):
    for shift in range(0, 200, 3):
        for tie in TIES:
            for hair in (-n, -1, 0, 1, n):
                value = (tie << shift) * n + hair
                got = exact.read_mean(row_of(value, 12), 0, -3, n)
                assert bits(got) == bits(double(Fraction(value, n << 96)))


@pytest.mark.parametrize(("n", "ddof"), [(2, 1), (3, 0), (3, 1), (1000, 1), (2**31, 0), (2**31, 1)])
def test_a_hair_beside_a_tie_of_a_variance(n, ddof):
    for shift in range(0, 200, 5):
        for tie in TIES:
            # The last pair leaves a rest in the first division only.
            for s, hair in ((0, -1), (0, 0), (0, 1), (1, 1)):
                q = (tie << shift) * (n - ddof) + hair
                got = exact.read_variance(row_of(s, 3), 0, row_of(q, 12), 0, 0, n, ddof)
                assert bits(got) == bits(double(Fraction(n * q - s * s, n * (n - ddof))))


@settings(max_examples=200, deadline=None)
@given(st.integers(-40, 4 * 2**54), st.sampled_from([1, -1]), st.integers(-1, 1))
@example(1, 1, 0)
@example(2, -1, 0)
@example(2, 1, 1)
@example(6, 1, 0)
@example(2**54 - 2, 1, 0)  # the carry from the largest subnormal
def test_subnormals_round_once(quarters, sign, delta):
    """A quarter of the smallest subnormal is 2^-1076."""
    value = sign * ((quarters << 64) + delta)  # the hair is 2^-1140
    array = row_of(value << 12, 8)  # 2^-1152 = 32 * -36
    assert bits(exact.read_sum(array, 0, -36)) == bits(double(Fraction(value, 2**1140)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([-0.0, -0.0], 0.0),
        ([1e308, -1e308], 0.0),
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([MAX, MAX, -MAX], MAX),
        ([MAX, 2.0**969], MAX),
        ([MAX, 2.0**970], math.inf),
        ([MAX, 2.0**970, -TINY], MAX),
        ([2.0**53, 1.0], 2.0**53),
        ([2.0**53, 1.0, TINY], 2.0**53 + 2),
        ([2.0**53 + 2, 1.0], 2.0**53 + 4),
        ([-(2.0**53), -1.0, -TINY], -(2.0**53) - 2),
        ([1e308, TINY, -1e308], TINY),
        ([1e16, 1.0, -1e16], 1.0),
        ([FIRST_FIELD, -TINY], FIRST_FIELD - TINY),
    ],
)
def test_sums_known_by_heart(values, expected):
    limbs, low = column(values)
    assert bits(exact.read_sum(limbs, 0, low)) == bits(expected)


def test_a_mean_of_overflowing_sum_is_finite():
    limbs, low = column([MAX] * 7)
    assert exact.read_sum(limbs, 0, low) == math.inf
    assert exact.read_mean(limbs, 0, low, 7) == MAX


def test_a_mean_is_rounded_once():
    """Rounding the sum first would give another double for many of these."""
    rng = random.Random(3)
    differs = 0
    for _ in range(300):
        values = [rng.uniform(-1, 100) for _ in range(rng.randint(2, 9))]
        limbs, low = column(values)
        mean = exact.read_mean(limbs, 0, low, len(values))
        assert mean == float(sum(map(Fraction, values)) / len(values))
        differs += mean != exact.read_sum(limbs, 0, low) / len(values)
    assert differs > 10


# --- integers and decimals --------------------------------------------------------------------------------


@quick
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.sampled_from([1, -1])), max_size=12), counts)
@example([(2**63 - 1, 1)], 1)
@example([(-(2**63), 1)], 1)
@example([(2**63 - 1, 1), (1, 1)], 2)
@example([(-(2**63), 1), (1, -1)], 2)
@example([(-(2**63), -1)], 2)
def test_int64_columns(changes, n):
    limbs = exact.empty(1, exact.INT64_WIDTH)
    for v, sign in changes:
        exact.add_int(limbs, 0, 0, v, sign)
    total = sum(v * sign for v, sign in changes)
    fits = -(2**63) <= total < 2**63
    assert exact.read_int64(limbs, 0, 0) == (total if fits else 0, fits)
    assert exact.read_int128(limbs, 0, 0) == (*pair(total), True)
    assert bits(exact.read_mean(limbs, 0, 0, n)) == bits(double(Fraction(total, n)))


int128s = st.one_of(
    st.integers(-(2**127), 2**127 - 1),
    st.integers(-1000, 1000),
    st.sampled_from([2**127 - 1, -(2**127), 2**64]),
)


@quick
@given(
    st.lists(st.tuples(int128s, st.sampled_from([1, -1])), min_size=1, max_size=8),
    st.one_of(st.integers(1, 12), counts), st.integers(0, 40), st.booleans(),
)  # fmt: skip
@example([(2**127 - 1, 1)], 1, 0, False)
@example([(-(2**127), 1)], 1, 0, False)
@example([(2**127 - 1, 1), (1, 1)], 1, 0, False)
@example([(-(2**127), 1), (1, -1)], 1, 0, True)
@example([(2**127 - 1, 1), (2**127 - 1, 1)], 2, 0, False)
@example([(2**127 - 1, 1), (2**127 - 1, 1), (1, 1)], 2, 0, False)
@example([(5, 1)], 10, 0, False)
@example([(-5, 1)], 10, 0, False)
@example([(2**32 * 10 - 5, 1)], 10, 0, False)
@example([(1, 1)], 2**62, 18, False)
def test_decimal_columns(changes, n, k, wide):
    limbs = exact.empty(1, exact.INT128_WIDTH + 2 * wide)
    for v, sign in changes:
        exact.add_int128(limbs, 0, 0, *pair(v), sign)
    total = sum(v * sign for v, sign in changes)
    assert exact.to_fraction(limbs[0], 0) == total
    fits = int128_fits(total)
    assert exact.read_int128(limbs, 0, 0) == (*pair(total if fits else 0), fits)
    for scale in {0, 4, k}:
        mean = half_up(total * 10**scale, n)
        fits = int128_fits(mean)
        assert exact.read_mean_int128(limbs, 0, 0, n, scale) == (*pair(mean if fits else 0), fits)


@quick
@given(rows, st.integers(-6, 6))
@example([0, 0, 1], -2)
@example([1, 0, 1], -2)
@example([2**31, 0, 1], -1)
@example([2**31], -1)
@example([2**31, 0, 0, 0, 0, 0], -1)
@example([1, 0, 0, 0, 0], 0)
@example([0, 0, 0, 0, 1], 0)
@example([0, 0, 0, -1, -1], 0)
@example([-1, 0, 0, 0, 1], 0)
def test_integers_out_of_any_row(limbs, low):
    value = exact.to_fraction(one_row(limbs)[0], low)
    fits = value.denominator == 1 and int128_fits(value.numerator)
    expected = pair(value.numerator) if fits else (0, 0)
    assert exact.read_int128(one_row(limbs), 0, low) == (*expected, fits)


# --- variance ---------------------------------------------------------------------------------------------


def variance(values: list[float], ddof: int) -> float:
    n = len(values)
    s, q = sum(map(Fraction, values)), sum(Fraction(x) ** 2 for x in values)
    return double((n * q - s * s) / (n * (n - ddof)))


def check_variance(values: list[float], ddof: int) -> float:
    n = len(values)
    got = exact.read_variance(*column(values), *column(values, square=True), 0, n, ddof)
    assert bits(got) == bits(variance(values, ddof))
    return got


@quick
@given(
    st.one_of(st.lists(doubles, min_size=2, max_size=12), st.lists(st.floats(1, 2), min_size=2)),
    st.sampled_from([0, 1]),
)
@example([MAX, -MAX], 0)
@example([TINY, -TINY], 1)
@example([1e-162, 0.0], 1)
def test_variance(values, ddof):
    check_variance(values, ddof)


def test_variance_under_cancellation():
    assert check_variance([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], 1) == 30.0
    assert check_variance([1e300, 1e300, 1e300], 0) == 0.0
    assert check_variance([1.0, math.nextafter(1.0, 2.0)], 0) == 2.0**-106
    assert check_variance([3.7], 0) == 0.0
    assert check_variance([1e200, 1e-200], 0) == math.inf
    rng = random.Random(5)
    check_variance([1e12 + rng.random() for _ in range(400)], 1)


@settings(max_examples=200, deadline=None)
@given(rows, st.integers(-34, 4), rows, st.integers(-70, 8), st.integers(2, 2**31), st.sampled_from([0, 1]))
@example([2**62, -(2**62)], 0, [-(2**62), 2**62], 0, 2**31, 0)
def test_variance_formula_on_any_rows(sums, low, squares, sq_low, n, ddof):
    s, q = exact.to_fraction(one_row(sums)[0], low), exact.to_fraction(one_row(squares)[0], sq_low)
    got = exact.read_variance(one_row(sums), low, one_row(squares), sq_low, 0, n, ddof)
    assert bits(got) == bits(double((n * q - s * s) / (n * (n - ddof))))


@pytest.mark.parametrize(("n", "ddof"), [(1, 1), (0, 0), (2**31 + 1, 0)])
def test_variance_refuses_other_counts(n, ddof):
    with pytest.raises(ValueError, match="ddof < n"):
        exact.read_variance(*column([1.0]), *column([1.0], square=True), 0, n, ddof)
