"""The total order of rows: (time, high, low), and a fourth part for derived rows, as sorting and merging of plain arrays."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s


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
        return np.lexsort((sub, low, high, ts))
    if is_sorted(ts, high, low):
        return None
    # Rows mostly come in order of their places, so that sorting by time alone, which is quick for what is nearly sorted, does.
    order = np.argsort(ts, kind="stable")
    if is_sorted(ts[order], high[order], low[order]):
        return order
    return np.lexsort((low, high, ts))


@nb.njit(s.integer(s.ints, s.ints, s.ints, s.integer, s.integer, s.integer), cache=True)
def locate(ts: np.ndarray, high: np.ndarray, low: np.ndarray, at: int, at_high: int, at_low: int) -> int:
    """The index of the row with this order key in sorted rows; -1 if there is none."""
    left, right = 0, len(ts)
    while left < right:
        mid = (left + right) // 2
        before = ts[mid] < at
        if ts[mid] == at:
            before = high[mid] < at_high or (high[mid] == at_high and low[mid] < at_low)
        if before:
            left = mid + 1
        else:
            right = mid
    if left < len(ts) and ts[left] == at and high[left] == at_high and low[left] == at_low:
        return left
    return -1


@nb.njit(s.INTS(s.ints, s.ints, s.ints, s.ints, s.ints, s.ints), cache=True)
def locate_all(
    ts: np.ndarray, high: np.ndarray, low: np.ndarray, at: np.ndarray, at_high: np.ndarray, at_low: np.ndarray
) -> np.ndarray:
    """`locate` for many keys."""
    out = np.empty(len(at), np.int64)
    for i in range(len(at)):
        out[i] = locate(ts, high, low, at[i], at_high[i], at_low[i])
    return out


@nb.njit(s.INTS(s.ints, s.ints, s.ints, s.ints, s.ints, s.ints, s.ints, s.ints), cache=True)
def locate_subs(
    ts: np.ndarray, high: np.ndarray, low: np.ndarray, sub: np.ndarray,
    at: np.ndarray, at_high: np.ndarray, at_low: np.ndarray, at_sub: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The same with all four parts of the key."""
    out = np.empty(len(at), np.int64)
    for i in range(len(at)):
        left, right = 0, len(ts)
        while left < right:
            mid = (left + right) // 2
            if ts[mid] != at[i]:
                before = ts[mid] < at[i]
            elif high[mid] != at_high[i]:
                before = high[mid] < at_high[i]
            elif low[mid] != at_low[i]:
                before = low[mid] < at_low[i]
            else:
                before = sub[mid] < at_sub[i]
            if before:
                left = mid + 1
            else:
                right = mid
        there = left < len(ts) and ts[left] == at[i] and high[left] == at_high[i]
        out[i] = left if there and low[left] == at_low[i] and sub[left] == at_sub[i] else -1
    return out
