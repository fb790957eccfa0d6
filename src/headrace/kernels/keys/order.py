"""The total order of rows: (time, high, low), for derived rows words behind them; and that of doubles, as integers."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

_WORDS = nb.types.Array(nb.types.uint64, 2, "C", readonly=True)
_SIGN_BITS = np.int64(0x7FFFFFFFFFFFFFFF)
_LINES = nb.types.Array(nb.types.uint64, 2, "C")


@nb.njit(s.boolean(s.ints, s.ints, s.ints), cache=True)
def is_sorted(ts: np.ndarray, high: np.ndarray, low: np.ndarray) -> bool:
    """Whether the rows are in the total order already."""
    for i in range(1, len(ts)):
        if ts[i] > ts[i - 1]:
            continue
        if ts[i] < ts[i - 1]:
            return False
        if high[i] < high[i - 1] or (high[i] == high[i - 1] and low[i] < low[i - 1]):
            return False
    return True


def sort_order(ts: np.ndarray, high: np.ndarray, low: np.ndarray, sub: np.ndarray | None = None) -> np.ndarray | None:
    """The permutation that sorts the rows; None if they are sorted already."""
    if sub is not None:
        return np.lexsort((*sub.T[::-1], low, high, ts))
    if is_sorted(ts, high, low):
        return None
    # Rows mostly come in order of their places, so that sorting by time alone, which is quick for what is nearly sorted, does.
    order = np.argsort(ts, kind="stable")
    if is_sorted(ts[order], high[order], low[order]):
        return order
    return np.lexsort((low, high, ts))


@nb.njit(s.INTS(s.ints, s.ints, s.ints, _WORDS, s.ints, s.ints, s.ints, _WORDS), cache=True)
def locate(
    ts: np.ndarray, high: np.ndarray, low: np.ndarray, sub: np.ndarray,
    at: np.ndarray, at_high: np.ndarray, at_low: np.ndarray, at_sub: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Where each of these keys is among sorted ones; -1 if it is not. Both have equally many words, or none."""
    out = np.empty(len(at), np.int64)
    words = sub.shape[1]
    for i in range(len(at)):
        left, right = 0, len(ts)
        while left < right:
            mid = (left + right) // 2
            before = False
            if ts[mid] != at[i]:
                before = ts[mid] < at[i]
            elif high[mid] != at_high[i]:
                before = high[mid] < at_high[i]
            elif low[mid] != at_low[i]:
                before = low[mid] < at_low[i]
            else:
                for k in range(words):
                    if sub[mid, k] != at_sub[i, k]:
                        before = sub[mid, k] < at_sub[i, k]
                        break
            if before:
                left = mid + 1
            else:
                right = mid
        there = left < len(ts) and ts[left] == at[i] and high[left] == at_high[i] and low[left] == at_low[i]
        for k in range(words):
            there = there and sub[left, k] == at_sub[i, k]
        out[i] = left if there else -1
    return out


@nb.njit(s.INTS(_WORDS), cache=True)
def lengths(lines: np.ndarray) -> np.ndarray:
    """How many words of each line there are up to the last that is not 0."""
    out = np.zeros(len(lines), np.int64)
    for i in range(len(lines)):
        for k in range(lines.shape[1]):
            if lines[i, k] != 0:
                out[i] = k + 1
    return out


@nb.njit(s.nothing(_LINES, s.INTS, _WORDS, s.ints), cache=True)
def put_behind(out: np.ndarray, at: np.ndarray, lines: np.ndarray, size: np.ndarray) -> None:
    """Copy the first words of each line to where `at` says, which moves on."""
    for i in range(len(out)):
        for k in range(size[i]):
            out[i, at[i] + k] = lines[i, k]
        at[i] += size[i]


def to_ordered(floats: np.ndarray) -> np.ndarray:
    """Doubles as integers of the same order; NaN comes last, -0.0 is 0.0. Its own inverse on the bits."""
    bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN_BITS)


def from_ordered(numbers: np.ndarray) -> np.ndarray:
    return (numbers ^ ((numbers >> 63) & _SIGN_BITS)).view(np.float64)
