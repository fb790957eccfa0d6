"""One pass over a window: rows enter, rows leave, and at every event the aggregate of its key is read.

All kernels share one form. `enter_end[i]` and `leave_end[i]` say how many rows have entered and left when event i is
evaluated; what is left of `enter` and `leave` after the last event moves without being looked at. Without `keep`, what moved is
taken back instead: everything is exact, so that restores every bit. `code` says what a value is: see `headrace.kernels.codes`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.exact import moments as read

_SEEN = (s.boolean, s.keys, s.ints, s.ints)  # whether moves are kept; of events: the keys, and how far rows have moved
_DOUBLES, _INTEGERS, _DECIMALS = (s.keys, s.floats, s.codes), (s.keys, s.ints, s.codes), (s.keys, s.ints, s.words, s.codes)


@nb.njit(inline="always")
def _rest(moved, count, keep, sign):  # type: ignore[no-untyped-def]
    """What is left to do after the last event: which rows, and whether they enter or leave."""
    return (moved, count, sign) if keep else (0, moved, -sign)


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
def _move_pair(key, pair, pair_count, state, sign):  # type: ignore[no-untyped-def]
    pair_count[pair] += sign
    if pair_count[pair] == (1 if sign > 0 else 0):
        state[key] += sign


@nb.njit(s.nothing(*_SEEN, s.keys, s.codes, s.keys, s.codes, s.INTS, s.INTS), cache=True)
def counts(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
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
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        if enter_code[j] < NULL:
            state[enter_key[j]] += by
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        if leave_code[j] < NULL:
            state[leave_key[j]] += by


@nb.njit(s.nothing(*_SEEN, *_DOUBLES, *_DOUBLES, s.ints, s.boolean, s.LIMBS, s.integer, s.LIMBS, s.FLOATS, s.FLOATS), cache=True)
def sums(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
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
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        _move(limbs, low, specials, enter_key[j], enter_value[j], enter_code[j], by)
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        _move(limbs, low, specials, leave_key[j], leave_value[j], leave_code[j], by)


@nb.njit(s.nothing(*_SEEN, *_INTEGERS, *_INTEGERS, s.ints, s.LIMBS, s.INTS, s.FLAGS, s.FLOATS), cache=True)
def integer_sums(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
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
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        if enter_code[j] == 0:
            exact.add_int(limbs, enter_key[j], 0, enter_value[j], by)
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        if leave_code[j] == 0:
            exact.add_int(limbs, leave_key[j], 0, leave_value[j], by)


@nb.njit(
    s.nothing(*_SEEN, *_DECIMALS, *_DECIMALS, s.ints, s.integer, s.LIMBS, s.WORD_PAIRS, s.FLAGS, s.WORD_PAIRS, s.FLAGS),
    cache=True,
)
def decimal_sums(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
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
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        if enter_code[j] == 0:
            exact.add_int128(limbs, enter_key[j], 0, enter_high[j], enter_low[j], by)
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        if leave_code[j] == 0:
            exact.add_int128(limbs, leave_key[j], 0, leave_high[j], leave_low[j], by)


@nb.njit(
    s.nothing(*_SEEN, *_DOUBLES, *_DOUBLES, s.ints, s.LIMBS, s.integer, s.LIMBS, s.integer, s.LIMBS, s.FLOATS, s.FLOATS),
    cache=True,
)
def variances(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
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
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        _move_moments(limbs, low, squares, squares_low, specials, enter_key[j], enter_value[j], enter_code[j], by)
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        _move_moments(limbs, low, squares, squares_low, specials, leave_key[j], leave_value[j], leave_code[j], by)


@nb.njit(s.nothing(*_SEEN, s.keys, s.keys, s.codes, s.keys, s.keys, s.codes, s.INTS, s.INTS, s.INTS), cache=True)
def distincts(
    keep: bool, event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_pair: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_pair: np.ndarray, leave_code: np.ndarray,
    pair_count: np.ndarray, state: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Distinct values per key: a value counts while the number of its rows in the window is above zero."""
    entered, left = 0, 0
    for i in range(len(event_key)):
        while entered < enter_end[i]:
            if enter_code[entered] < NULL:
                _move_pair(enter_key[entered], enter_pair[entered], pair_count, state, 1)
            entered += 1
        while left < leave_end[i]:
            if leave_code[left] < NULL:
                _move_pair(leave_key[left], leave_pair[left], pair_count, state, -1)
            left += 1
        out[i] = state[event_key[i]]
    start, stop, by = _rest(entered, len(enter_key), keep, 1)
    for j in range(start, stop):
        if enter_code[j] < NULL:
            _move_pair(enter_key[j], enter_pair[j], pair_count, state, by)
    start, stop, by = _rest(left, len(leave_key), keep, -1)
    for j in range(start, stop):
        if leave_code[j] < NULL:
            _move_pair(leave_key[j], leave_pair[j], pair_count, state, by)


@nb.njit(nb.types.Tuple((s.INTS, s.INTS))(s.keys, s.keys, s.FLAGS, s.ints), cache=True)
def chosen(key: np.ndarray, wanted: np.ndarray, flags: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows before the last end that have a wanted key, and how many of them stand before each end.

    Ends never go back. All flags are down, and will be.
    """
    for k in wanted:
        flags[k] = True
    places, out, n, j = np.empty(len(key), np.int64), np.empty(len(ends), np.int64), 0, 0
    for i in range(len(ends)):
        while j < ends[i]:
            if flags[key[j]]:
                places[n] = j
                n += 1
            j += 1
        out[i] = n
    for k in wanted:
        flags[k] = False
    return places[:n].copy(), out
