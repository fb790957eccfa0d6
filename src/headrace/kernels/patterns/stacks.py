"""Stacks of events (SeqState and NegState of 001): rows in memory, linked per place and key in the total order.

A row is one line of `rows`. Index j links the rows that fit at one place: those of one key, and of equal words where the index
has words, are in one chain, beside others whose hash is the same. `links[row, l]` is the row before it in the chain of the
index with local number l, `links[row, m + l]` the one behind it; `last[j, h]` is the newest of a chain. `skips[row, s]` is
where a walk goes from a row whose value is too large, or too small, for slope s (kernels/patterns/linking).
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

NONE = -1
# Columns of `rows`. SUB is the number of the column from which on the rest of the order key stands, behind all else. BITS are the
# places at which a row fits, DEAD those at which it ends no beginning of a sequence.
TS, HIGH, LOW, SUB, KEY, BITS, NULLS, DEAD, WORDS = range(9)
PLACE, LOCAL, COUNT, FIRST = range(4)  # columns of `indexes`: bit of the place, local number, how many words, which
# Columns of `slopes`: index, word of a row, whether more is better (else less), whether words are the bits of doubles.
S_INDEX, S_WORD, S_MORE, S_DOUBLE, SLOPE = range(5)

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
