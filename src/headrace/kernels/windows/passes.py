"""One pass over a window: rows enter, rows leave, and at every event the aggregate of its key is read.

All kernels share one form. `enter_end[i]` and `leave_end[i]` say how many rows have entered and left when event i is
evaluated; what is left of `enter` and `leave` after the last event moves without being looked at. `code` says what a value
is: see `headrace.kernels.codes`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.exact import moments as read


@nb.njit(cache=True)
def _count_rest(key: np.ndarray, code: np.ndarray, start: int, by: int, state: np.ndarray) -> None:
    for j in range(start, len(key)):
        if code[j] < NULL:
            state[key[j]] += by


@nb.njit(inline="always")
def _move(limbs, low, specials, key, value, code, sign):  # type: ignore[no-untyped-def]
    if code == 0:
        exact.add(limbs, key, low, value, sign)
    elif code < NULL:
        specials[key, code - 1] += sign


@nb.njit(cache=True)
def _special(nans: int, plus: int, minus: int) -> float:
    if nans or (plus and minus):
        return np.nan
    return np.inf if plus else -np.inf


@nb.njit(inline="always")
def _move_moments(limbs, low, squares, squares_low, specials, key, value, code, sign):  # type: ignore[no-untyped-def]
    if code == 0:
        exact.add(limbs, key, low, value, sign)
        exact.add_square(squares, key, squares_low, value, sign)
    elif code < NULL:
        specials[key, code - 1] += sign


@nb.njit(inline="always")
def _pair_in(key, pair, pair_count, state):  # type: ignore[no-untyped-def]
    pair_count[pair] += 1
    if pair_count[pair] == 1:
        state[key] += 1


@nb.njit(inline="always")
def _pair_out(key, pair, pair_count, state):  # type: ignore[no-untyped-def]
    pair_count[pair] -= 1
    if pair_count[pair] == 0:
        state[key] -= 1


@nb.njit(s.nothing(s.keys, s.ints, s.ints, s.keys, s.codes, s.keys, s.codes, s.INTS, s.INTS), cache=True)
def counts(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_code: np.ndarray, leave_key: np.ndarray, leave_code: np.ndarray,
    state: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Rows in the window that have a value."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            if enter_code[entered] < NULL:
                state[enter_key[entered]] += 1
            entered += 1
        while left < leave_end[i]:
            if leave_code[left] < NULL:
                state[leave_key[left]] -= 1
            left += 1
        out[i] = state[event_key[i]]
    _count_rest(enter_key, enter_code, entered, 1, state)
    _count_rest(leave_key, leave_code, left, -1, state)


@nb.njit(
    s.nothing(
        s.keys,
        s.ints,
        s.ints,
        s.keys,
        s.floats,
        s.codes,
        s.keys,
        s.floats,
        s.codes,
        s.ints,
        s.boolean,
        s.LIMBS,
        s.integer,
        s.LIMBS,
        s.FLOATS,
        s.FLOATS,
    ),
    cache=True,
)
def sums(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_value: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_value: np.ndarray, leave_code: np.ndarray,
    n: np.ndarray, want_mean: bool, limbs: np.ndarray, low: int, specials: np.ndarray, out: np.ndarray, mean: np.ndarray,
) -> None:  # fmt: skip
    """Exact sums of DOUBLE, rounded when read; with `want_mean`, the mean over `n[i]` values too."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            _move(limbs, low, specials, enter_key[entered], enter_value[entered], enter_code[entered], 1)
            entered += 1
        while left < leave_end[i]:
            _move(limbs, low, specials, leave_key[left], leave_value[left], leave_code[left], -1)
            left += 1
        key = event_key[i]
        if specials[key, 0] or specials[key, 1] or specials[key, 2]:
            out[i] = _special(specials[key, 0], specials[key, 1], specials[key, 2])
            mean[i] = out[i]
        elif n[i] > 0:
            out[i] = read.read_sum(limbs, key, low)
            if want_mean:
                mean[i] = read.read_mean(limbs, key, low, n[i])
    for j in range(entered, len(enter_key)):
        _move(limbs, low, specials, enter_key[j], enter_value[j], enter_code[j], 1)
    for j in range(left, len(leave_key)):
        _move(limbs, low, specials, leave_key[j], leave_value[j], leave_code[j], -1)


@nb.njit(
    s.nothing(
        s.keys, s.ints, s.ints, s.keys, s.ints, s.codes, s.keys, s.ints, s.codes, s.ints, s.LIMBS, s.INTS, s.FLAGS, s.FLOATS
    ),
    cache=True,
)
def integer_sums(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_value: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_value: np.ndarray, leave_code: np.ndarray,
    n: np.ndarray, limbs: np.ndarray, out: np.ndarray, fits: np.ndarray, mean: np.ndarray,
) -> None:  # fmt: skip
    """Exact sums of integers; `fits` says whether the sum is a BIGINT."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            if enter_code[entered] == 0:
                exact.add_int(limbs, enter_key[entered], 0, enter_value[entered], 1)
            entered += 1
        while left < leave_end[i]:
            if leave_code[left] == 0:
                exact.add_int(limbs, leave_key[left], 0, leave_value[left], -1)
            left += 1
        if n[i] > 0:
            out[i], fits[i] = read.read_int64(limbs, event_key[i], 0)
            mean[i] = read.read_mean(limbs, event_key[i], 0, n[i])
    for j in range(entered, len(enter_key)):
        if enter_code[j] == 0:
            exact.add_int(limbs, enter_key[j], 0, enter_value[j], 1)
    for j in range(left, len(leave_key)):
        if leave_code[j] == 0:
            exact.add_int(limbs, leave_key[j], 0, leave_value[j], -1)


@nb.njit(
    s.nothing(
        s.keys,
        s.ints,
        s.ints,
        s.keys,
        s.ints,
        s.words,
        s.codes,
        s.keys,
        s.ints,
        s.words,
        s.codes,
        s.ints,
        s.integer,
        s.LIMBS,
        s.WORD_PAIRS,
        s.FLAGS,
        s.WORD_PAIRS,
        s.FLAGS,
    ),
    cache=True,
)
def decimal_sums(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_high: np.ndarray, enter_low: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_high: np.ndarray, leave_low: np.ndarray, leave_code: np.ndarray,
    n: np.ndarray, mean_digits: int, limbs: np.ndarray,
    out: np.ndarray, fits: np.ndarray, mean: np.ndarray, mean_fits: np.ndarray,
) -> None:  # fmt: skip
    """Exact sums of decimals as 128-bit integers (low word, high word); the mean has `mean_digits` more digits."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            if enter_code[entered] == 0:
                exact.add_int128(limbs, enter_key[entered], 0, enter_high[entered], enter_low[entered], 1)
            entered += 1
        while left < leave_end[i]:
            if leave_code[left] == 0:
                exact.add_int128(limbs, leave_key[left], 0, leave_high[left], leave_low[left], -1)
            left += 1
        if n[i] > 0:
            high, low, fits[i] = read.read_int128(limbs, event_key[i], 0)
            out[i, 0], out[i, 1] = low, np.uint64(high)
            high, low, mean_fits[i] = read.read_mean_int128(limbs, event_key[i], 0, n[i], mean_digits)
            mean[i, 0], mean[i, 1] = low, np.uint64(high)
    for j in range(entered, len(enter_key)):
        if enter_code[j] == 0:
            exact.add_int128(limbs, enter_key[j], 0, enter_high[j], enter_low[j], 1)
    for j in range(left, len(leave_key)):
        if leave_code[j] == 0:
            exact.add_int128(limbs, leave_key[j], 0, leave_high[j], leave_low[j], -1)


@nb.njit(
    s.nothing(
        s.keys,
        s.ints,
        s.ints,
        s.keys,
        s.floats,
        s.codes,
        s.keys,
        s.floats,
        s.codes,
        s.ints,
        s.LIMBS,
        s.integer,
        s.LIMBS,
        s.integer,
        s.LIMBS,
        s.FLOATS,
        s.FLOATS,
    ),
    cache=True,
)
def variances(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_value: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_value: np.ndarray, leave_code: np.ndarray,
    n: np.ndarray, limbs: np.ndarray, low: int, squares: np.ndarray, squares_low: int, specials: np.ndarray,
    sample: np.ndarray, population: np.ndarray,
) -> None:  # fmt: skip
    """Variance of the sample (n - 1) and of the population (n), from exact sums of values and squares."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            _move_moments(limbs, low, squares, squares_low, specials,
                          enter_key[entered], enter_value[entered], enter_code[entered], 1)  # fmt: skip
            entered += 1
        while left < leave_end[i]:
            _move_moments(limbs, low, squares, squares_low, specials,
                          leave_key[left], leave_value[left], leave_code[left], -1)  # fmt: skip
            left += 1
        key = event_key[i]
        if specials[key, 0] or specials[key, 1] or specials[key, 2]:
            sample[i] = np.nan
            population[i] = np.nan
        elif n[i] > 0:
            population[i] = read.read_variance(limbs, low, squares, squares_low, key, n[i], 0)
            if n[i] > 1:
                sample[i] = read.read_variance(limbs, low, squares, squares_low, key, n[i], 1)
    for j in range(entered, len(enter_key)):
        _move_moments(limbs, low, squares, squares_low, specials, enter_key[j], enter_value[j], enter_code[j], 1)
    for j in range(left, len(leave_key)):
        _move_moments(limbs, low, squares, squares_low, specials, leave_key[j], leave_value[j], leave_code[j], -1)


@nb.njit(s.nothing(s.keys, s.ints, s.ints, s.keys, s.keys, s.codes, s.keys, s.keys, s.codes, s.INTS, s.INTS, s.INTS), cache=True)
def distincts(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_pair: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_pair: np.ndarray, leave_code: np.ndarray,
    pair_count: np.ndarray, state: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Distinct values per key: a value counts while the number of its rows in the window is above zero."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            if enter_code[entered] < NULL:
                _pair_in(enter_key[entered], enter_pair[entered], pair_count, state)
            entered += 1
        while left < leave_end[i]:
            if leave_code[left] < NULL:
                _pair_out(leave_key[left], leave_pair[left], pair_count, state)
            left += 1
        out[i] = state[event_key[i]]
    for j in range(entered, len(enter_key)):
        if enter_code[j] < NULL:
            _pair_in(enter_key[j], enter_pair[j], pair_count, state)
    for j in range(left, len(leave_key)):
        if leave_code[j] < NULL:
            _pair_out(leave_key[j], leave_pair[j], pair_count, state)
