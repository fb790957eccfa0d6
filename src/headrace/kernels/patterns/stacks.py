"""Stacks of events (SeqState and NegState of 001): rows in memory, linked per place and key in the total order.

A row is one line of `rows`. Index j links the rows that fit at one place: those of one key, and of equal words where the index
has words, are in one chain, beside others whose hash is the same. `links[row, l]` is the row before it in the chain of the
index with local number l, `links[row, m + l]` the one behind it; `last[j, h]` is the newest of a chain. `skips[row, s]` is
where a walk goes from a row whose value is too large, or too small, for slope s.

A condition such as `y.price > x.price` holds for the smaller x: if one is too large, so are all that are no smaller. So each row
of a chain points to the nearest before it that is *better*: of the chain's rows between the two none is. A walk that follows
these takes about log n steps through n values in no order, and one step for each that fits.

Better is less, or more: of a NULL nothing is known, so all else is better. Infinite values and NaN are never passed by and pass
nothing by, because sums and differences do not rise with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent

NONE = -1
# Columns of `rows`. SUB is the number of the column from which on the rest of the order key stands, behind all else. BITS are the
# places at which a row fits, DEAD those at which it ends no beginning of a sequence.
TS, HIGH, LOW, SUB, KEY, BITS, NULLS, DEAD, WORDS = range(9)
PLACE, LOCAL, COUNT, FIRST = range(4)  # columns of `indexes`: bit of the place, local number, how many words, which
# Columns of `slopes`: index, word of a row, whether more is better (else less), whether words are the bits of doubles.
S_INDEX, S_WORD, S_MORE, S_DOUBLE, SLOPE = range(5)

BEST, WORST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_EXPONENT, _MAGNITUDE = 0x7FF, np.iinfo(np.int64).max

GRID = nb.types.Array(nb.types.int64, 2, "C")


class Stacks(NamedTuple):
    """All that is linked."""

    rows: np.ndarray
    links: np.ndarray
    last: np.ndarray
    indexes: np.ndarray
    skips: np.ndarray
    slopes: np.ndarray


STACKS = nb.types.NamedUniTuple(GRID, 6, Stacks)  # all may be written to: Numba does not convert what is in a tuple


@nb.njit(inline="always")
def _mix(h: int) -> int:
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@nb.njit(s.integer(s.integer, s.ints, s.integer, s.integer), cache=True, inline="always")
def chain_of(key: int, words: np.ndarray, count: int, size: int) -> int:
    """The place in `last` of the chain with this key and these words. `size` is a power of two."""
    h = _mix(np.uint64(key) + np.uint64(0x9E3779B97F4A7C15))
    for i in range(count):
        h = _mix((h ^ np.uint64(words[i])) * np.uint64(0xC2B2AE3D27D4EB4F))
    return np.int64(h & np.uint64(size - 1))


@nb.njit(nb.types.boolean(GRID, s.integer, s.integer), cache=True, forceinline=True)
def before(rows: np.ndarray, a: int, b: int) -> bool:
    """Whether row a stands before row b in the total order."""
    for column in range(SUB):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] < rows[b, column]
    for column in range(rows[a, SUB], rows.shape[1]):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] < rows[b, column]
    return False


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


@nb.njit(s.nothing(STACKS, s.integer, s.integer, s.integer, s.integer, s.boolean), cache=True, forceinline=True)
def _point(stacks: Stacks, j: int, row: int, older: int, newer: int, comes: bool) -> None:
    """A row has come into the chain of index j, between two others, or has left it: what it points to, and what points to it."""
    rows, skips, back = stacks.rows, stacks.skips, stacks.links.shape[1] // 2 + stacks.indexes[j, LOCAL]
    for k in range(len(stacks.slopes)):
        if stacks.slopes[k, S_INDEX] != j:
            continue
        own = _height(rows, stacks.slopes[k], row)
        if comes:
            skips[row, k] = _first_better(stacks, k, older, own)
        other = newer
        while other != NONE:
            height = _height(rows, stacks.slopes[k], other)
            if comes:
                if _is_better(own, height) and (skips[other, k] == NONE or before(rows, skips[other, k], row)):
                    skips[other, k] = row
            elif skips[other, k] == row:
                skips[other, k] = _first_better(stacks, k, older, height)
            if height == BEST or (height <= own and own != BEST):
                break  # whatever the row is better than, this one is too, and nearer
            other = stacks.links[other, back]


@nb.njit(s.nothing(STACKS), cache=True, forceinline=True)
def _point_all(stacks: Stacks) -> None:
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


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.INTS), cache=True, forceinline=True)
def _chain_of_row(stacks: Stacks, j: int, row: int, words: np.ndarray) -> int:
    count = stacks.indexes[j, COUNT]
    for i in range(count):
        words[i] = stacks.rows[row, WORDS + stacks.indexes[j, FIRST + i]]
    return chain_of(stacks.rows[row, KEY], words, count, stacks.last.shape[1])


@nb.njit(s.nothing(STACKS, s.integer), cache=True, forceinline=True)
def link(stacks: Stacks, row: int) -> None:
    rows, links, last, indexes = stacks.rows, stacks.links, stacks.last, stacks.indexes
    m, words = links.shape[1] // 2, np.empty(indexes.shape[1], np.int64)
    for j in range(len(indexes)):
        if not (rows[row, BITS] >> indexes[j, PLACE]) & 1:
            continue
        local, h = indexes[j, LOCAL], _chain_of_row(stacks, j, row, words)
        behind, ahead = NONE, last[j, h]
        while ahead != NONE and before(rows, row, ahead):
            behind, ahead = ahead, links[ahead, local]
        links[row, local], links[row, m + local] = ahead, behind
        if ahead != NONE:
            links[ahead, m + local] = row
        if behind != NONE:
            links[behind, local] = row
        else:
            last[j, h] = row
        _point(stacks, j, row, ahead, behind, True)


@nb.njit(s.nothing(STACKS, s.integer, s.boolean), cache=True, forceinline=True)
def unlink(stacks: Stacks, row: int, alone: bool) -> None:
    """Take a row out of its chains; unless `alone`, what pointed to it is found anew when all that go are gone."""
    rows, links, last, indexes = stacks.rows, stacks.links, stacks.last, stacks.indexes
    m, words = links.shape[1] // 2, np.empty(indexes.shape[1], np.int64)
    for j in range(len(indexes)):
        if not (rows[row, BITS] >> indexes[j, PLACE]) & 1:
            continue
        local = indexes[j, LOCAL]
        ahead, behind = links[row, local], links[row, m + local]
        if ahead != NONE:
            links[ahead, m + local] = behind
        if behind != NONE:
            links[behind, local] = ahead
        else:
            last[j, _chain_of_row(stacks, j, row, words)] = ahead
        if alone:
            _point(stacks, j, row, ahead, behind, False)


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def link_all(stacks: Stacks, chosen: np.ndarray) -> None:
    """Link these rows; quick if they come in the total order."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        link(borrowed, chosen[i])


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def unlink_all(stacks: Stacks, chosen: np.ndarray) -> None:
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        unlink(borrowed, chosen[i], True)


@nb.njit(s.nothing(STACKS, s.ints, s.FLAGS), cache=True)
def let_oldest_go(stacks: Stacks, chosen: np.ndarray, there: np.ndarray) -> None:
    """Take rows out of their chains before which no others stand: what pointed to them points nowhere. Clears their flags."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        unlink(borrowed, chosen[i], False)
        there[chosen[i]] = False
    if len(chosen) > 0:
        skips = borrowed.skips
        for row in range(len(skips)):
            for k in range(skips.shape[1]):
                if skips[row, k] != NONE and not there[skips[row, k]]:
                    skips[row, k] = NONE


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def let_go(stacks: Stacks, chosen: np.ndarray) -> None:
    """Take many rows out of their chains: where those that are left point to is found anew."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        unlink(borrowed, chosen[i], False)
    if len(chosen) > 0:
        _point_all(borrowed)
