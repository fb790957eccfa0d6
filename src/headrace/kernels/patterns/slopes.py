"""Rows that a walk passes by because their value is no better than one that was too large already, or too small.

A condition such as `y.price > x.price` holds for the smaller x: if one is too large, so are all that are no smaller. So each row
of a chain points to the nearest before it that is *better*: of the chain's rows between the two none is. A walk that follows
these takes about log n steps through n values in no order, and one step for each that fits.

Better is less, or more: of a NULL nothing is known, so all else is better. Infinite values and NaN are never passed by and pass
nothing by, because sums and differences do not rise with them.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.patterns.stacks import (
    GRID,
    LOCAL,
    NONE,
    NULLS,
    S_DOUBLE,
    S_INDEX,
    S_MORE,
    S_WORD,
    STACKS,
    WORDS,
    Stacks,
    before,
)

BEST, WORST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_EXPONENT, _MAGNITUDE = 0x7FF, np.iinfo(np.int64).max


@nb.njit(s.integer(GRID, s.ints, s.integer), cache=True, forceinline=True)
def _height(rows: np.ndarray, slope: np.ndarray, row: int) -> int:
    """How good the value of a row is: the less the better. BEST if it must be looked at."""
    column = slope[S_WORD]
    if (rows[row, NULLS] >> column) & 1:
        return WORST
    word = rows[row, WORDS + column]
    if slope[S_DOUBLE]:
        if (word >> 52) & _EXPONENT == _EXPONENT:
            return BEST
        if word < 0:
            word ^= _MAGNITUDE
    return ~word if slope[S_MORE] else word


@nb.njit(s.boolean(s.integer, s.integer), cache=True, forceinline=True)
def _is_better(height: int, other: int) -> bool:
    return height < other or height == BEST


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _first_better(stacks: Stacks, k: int, row: int, height: int) -> int:
    """From a row on, the first that is better than this height."""
    while row != NONE and not _is_better(_height(stacks.rows, stacks.slopes[k], row), height):
        row = stacks.skips[row, k]
    return row


@nb.njit(s.nothing(STACKS, s.integer, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def enter(stacks: Stacks, j: int, row: int, older: int, newer: int) -> None:
    """A row stands in the chain of index j, between two others: where it points to, and which point to it."""
    rows, skips, back = stacks.rows, stacks.skips, stacks.links.shape[1] // 2 + stacks.indexes[j, LOCAL]
    for k in range(len(stacks.slopes)):
        if stacks.slopes[k, S_INDEX] != j:
            continue
        own = _height(rows, stacks.slopes[k], row)
        skips[row, k] = _first_better(stacks, k, older, own)
        other = newer
        while other != NONE:
            height = _height(rows, stacks.slopes[k], other)
            if _is_better(own, height) and (skips[other, k] == NONE or before(rows, skips[other, k], row)):
                skips[other, k] = row
            if height == BEST or (height <= own and own != BEST):
                break  # whatever the row is better than, this one is too, and nearer
            other = stacks.links[other, back]


@nb.njit(s.nothing(STACKS, s.integer, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def leave(stacks: Stacks, j: int, row: int, older: int, newer: int) -> None:
    """A row has left the chain of index j, between two others: nothing points to it any more."""
    rows, skips, back = stacks.rows, stacks.skips, stacks.links.shape[1] // 2 + stacks.indexes[j, LOCAL]
    for k in range(len(stacks.slopes)):
        if stacks.slopes[k, S_INDEX] != j:
            continue
        own = _height(rows, stacks.slopes[k], row)
        other = newer
        while other != NONE:
            height = _height(rows, stacks.slopes[k], other)
            if skips[other, k] == row:
                skips[other, k] = _first_better(stacks, k, older, height)
            if height == BEST or (height <= own and own != BEST):
                break
            other = stacks.links[other, back]


@nb.njit(s.nothing(STACKS), cache=True, forceinline=True)
def enter_all(stacks: Stacks) -> None:
    """Where all rows that are linked point to, from the oldest of each chain on."""
    links, m = stacks.links, stacks.links.shape[1] // 2
    for k in range(len(stacks.slopes)):
        j = stacks.slopes[k, S_INDEX]
        local = stacks.indexes[j, LOCAL]
        for h in range(stacks.last.shape[1]):
            row = stacks.last[j, h]
            while row != NONE and links[row, local] != NONE:
                row = links[row, local]
            while row != NONE:
                stacks.skips[row, k] = _first_better(stacks, k, links[row, local], _height(stacks.rows, stacks.slopes[k], row))
                row = links[row, m + local]


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def beyond(stacks: Stacks, k: int, row: int, local: int) -> int:
    """Where a walk goes from a row that is not good enough."""
    if _height(stacks.rows, stacks.slopes[k], row) == BEST:
        return stacks.links[row, local]
    return stacks.skips[row, k]
