"""A hash table from 128-bit keys to small dense numbers, as plain arrays: open addressing, linear probing."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

EMPTY = np.int32(-1)
GONE = np.int32(-2)


@nb.njit(s.nothing(s.KEYS, s.words, s.words, s.FLAGS, s.integer), cache=True)
def rebuild(slots: np.ndarray, high: np.ndarray, low: np.ndarray, live: np.ndarray, count: int) -> None:
    """Fill an empty slot array from the keys that are live."""
    mask = np.uint64(len(slots) - 1)
    for key in range(count):
        if not live[key]:
            continue
        at = high[key] & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = key


@nb.njit((s.words, s.words, s.KEYS, s.WORDS, s.WORDS, s.FLAGS, s.KEYS, s.integer, s.integer, s.KEYS), cache=True)
def find_or_add(
    want_high: np.ndarray, want_low: np.ndarray, slots: np.ndarray, high: np.ndarray, low: np.ndarray, live: np.ndarray,
    free: np.ndarray, free_count: int, count: int, out: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Number every wanted key, giving new ones a free number. The arrays must have room for all of them.

    Returns the new (free_count, count).
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(want_high)):
        at = want_high[i] & mask
        found = -1
        while slots[at] != EMPTY:
            key = slots[at]
            if key >= 0 and high[key] == want_high[i] and low[key] == want_low[i]:
                found = key
                break
            at = (at + np.uint64(1)) & mask
        if found < 0:
            if free_count > 0:
                free_count -= 1
                found = free[free_count]
            else:
                found = count
                count += 1
            high[found] = want_high[i]
            low[found] = want_low[i]
            live[found] = True
            slots[at] = found
        out[i] = found
    return free_count, count


@nb.njit(s.integer(s.words, s.words, s.KEYS, s.words, s.words, s.KEYS), cache=True)
def find(
    want_high: np.ndarray, want_low: np.ndarray, slots: np.ndarray, high: np.ndarray, low: np.ndarray, out: np.ndarray
) -> int:
    """Number every wanted key that is known; -1 for the others. Returns how many those are."""
    mask, unknown = np.uint64(len(slots) - 1), 0
    for i in range(len(want_high)):
        at = want_high[i] & mask
        out[i] = -1
        while slots[at] != EMPTY:
            key = slots[at]
            if key >= 0 and high[key] == want_high[i] and low[key] == want_low[i]:
                out[i] = key
                break
            at = (at + np.uint64(1)) & mask
        unknown += out[i] < 0
    return unknown


@nb.njit(s.integer(s.keys, s.KEYS, s.words, s.FLAGS, s.KEYS, s.integer), cache=True)
def remove(keys: np.ndarray, slots: np.ndarray, high: np.ndarray, live: np.ndarray, free: np.ndarray, free_count: int) -> int:
    """Forget keys; their numbers may be given to others. Returns the new free_count."""
    mask = np.uint64(len(slots) - 1)
    for key in keys:
        at = high[key] & mask
        while slots[at] != key:
            at = (at + np.uint64(1)) & mask
        slots[at] = GONE
        live[key] = False
        free[free_count] = key
        free_count += 1
    return free_count


@nb.njit(s.nothing(s.keys, s.integer, s.INTS), cache=True)
def add_references(keys: np.ndarray, by: int, references: np.ndarray) -> None:
    """Count the rows that hold a key: `by` more or fewer for each row."""
    for key in keys:
        references[key] += by


@nb.njit(s.nothing(s.keys, s.integer, s.FLAGS), cache=True)
def mark(keys: np.ndarray, bits: int, pages: np.ndarray) -> None:
    """Flag the pages that these keys lie in; a page has 2^bits of them."""
    for key in keys:
        pages[key >> bits] = True


@nb.njit(s.integer(s.keys, s.INTS, s.FLAGS, s.KEYS), cache=True)
def unreferenced(keys: np.ndarray, references: np.ndarray, live: np.ndarray, out: np.ndarray) -> int:
    """Collect, each once, those of `keys` that no row holds any more."""
    n = 0
    for key in keys:
        if live[key] and references[key] == 0:
            live[key] = False  # marks it as taken; `remove` sets it again
            out[n] = key
            n += 1
    return n
