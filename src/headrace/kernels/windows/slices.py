"""Slices: rows of one key between two looks are one cell, and a window of any length is a run of the cells of its key."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

_INTS, _KEYS = nb.types.Array(nb.types.int64, 1, "C"), nb.types.Array(nb.types.int32, 1, "C")
_START_OF_TIME = -(2**63)


@nb.njit(s.integer(s.ints, s.keys, s.ints, s.keys, s.integer, s.integer, s.integer, s.KEYS, s.INTS, s.KEYS), cache=True)
def number(
    row_end: np.ndarray, row_key: np.ndarray, end: np.ndarray, key: np.ndarray, count: int, last: int, capacity: int,
    cell: np.ndarray, new_end: np.ndarray, new_key: np.ndarray,
) -> int:  # fmt: skip
    """The cell of every row, in the order of time; there are `count` cells, and those from `last` on are of the last slice.

    Rows go on filling the last slice. What is new is appended to `new_end` and `new_key`; gives how many there are then.
    """
    at, of = np.full(capacity, _START_OF_TIME, np.int64), np.empty(capacity, np.int32)
    for c in range(last, count):
        at[key[c]], of[key[c]] = end[c], c
    n = 0
    for i in range(len(row_key)):
        k = row_key[i]
        if at[k] != row_end[i]:
            at[k], of[k] = row_end[i], count + n
            new_end[n], new_key[n] = row_end[i], k
            n += 1
        cell[i] = of[k]
    return n


@nb.njit(nb.types.Tuple((_INTS, _INTS))(s.keys, s.flags), cache=True)
def by_key(key: np.ndarray, only: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells of each of `only` these keys together, otherwise in their order; and where those of every key begin."""
    first = np.zeros(len(only) + 1, np.int64)
    for k in key:
        if only[k]:
            first[k + 1] += 1
    for k in range(len(only)):
        first[k + 1] += first[k]
    at, order = first.copy(), np.empty(first[-1], np.int64)
    for c in range(len(key)):
        k = key[c]
        if only[k]:
            order[at[k]] = c
            at[k] += 1
    return order, first


@nb.njit(inline="always")
def _after(end, low, high, time):  # type: ignore[no-untyped-def]
    """The first of the cells low..high that ends after a time."""
    while low < high:
        middle = (low + high) // 2
        if end[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(
    nb.types.Tuple((_INTS, _INTS, _KEYS, _INTS, _INTS))(s.ints, s.ints, s.ints, s.ints),
    cache=True,
)
def look(
    first: np.ndarray, end: np.ndarray, times: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """At each of these times, the cells of each key that lie in windows of each of these sizes, where there are any.

    Cells lie by key, then by end. Gives where the finds of every window begin, and for each, in the order of time: which time,
    the key, and its cells from .. to.
    """
    windows, looks, longest = len(sizes), len(times), sizes.max()
    place = np.zeros((windows, looks), np.int64)
    began = np.zeros(windows + 1, np.int64)
    begin = np.empty(windows, np.int64)
    at, key = np.empty(0, np.int64), np.empty(0, np.int32)
    start, stop = np.empty(0, np.int64), np.empty(0, np.int64)
    for fill in (False, True):  # count first, so that each find has its place at once
        for k in range(len(first) - 1):
            a, b = first[k], first[k + 1]
            if a == b:
                continue
            t = np.searchsorted(times, end[a])
            if t == looks or times[t] >= end[b - 1] + longest:
                continue
            now = _after(end, a, b, times[t])
            for w in range(windows):
                begin[w] = _after(end, a, now, times[t] - sizes[w])
            while t < looks and times[t] < end[b - 1] + longest:
                while now < b and end[now] <= times[t]:
                    now += 1
                if end[now - 1] + longest <= times[t]:  # the key is silent: on to its next cell
                    t = np.searchsorted(times, end[now])
                    continue
                for w in range(windows):
                    while begin[w] < now and end[begin[w]] <= times[t] - sizes[w]:
                        begin[w] += 1
                    if begin[w] < now:
                        if fill:
                            p = place[w, t]
                            at[p], key[p], start[p], stop[p] = t, k, begin[w], now
                        place[w, t] += 1
                t += 1
        if not fill:
            total = 0
            for w in range(windows):
                began[w] = total
                for t in range(looks):
                    found = place[w, t]
                    place[w, t] = total
                    total += found
            began[windows] = total
            at, key = np.empty(total, np.int64), np.empty(total, np.int32)
            start, stop = np.empty(total, np.int64), np.empty(total, np.int64)
    return began, at, key, start, stop
