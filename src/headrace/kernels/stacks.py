"""Stacks of events (SeqState and NegState of 001): rows in memory, linked per place and key in the total order.

A row is one line of `rows`. Index j links the rows that fit at one place: those of one key, and of equal words where the index
has words, are in one chain, beside others whose hash is the same. `links[row, l]` is the row before it in the chain of the
index with local number l, `links[row, m + l]` the one behind it; `last[j, h]` is the newest of a chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent

NONE = -1
# Columns of `rows`. BITS are the places at which a row fits, DEAD those at which it ends no beginning of a sequence.
TS, HIGH, LOW, SUB, KEY, BITS, NULLS, DEAD, WORDS = range(9)
PLACE, LOCAL, COUNT, FIRST = range(4)  # columns of `indexes`: bit of the place, local number, how many words, which

GRID = nb.types.Array(nb.types.int64, 2, "C")


class Stacks(NamedTuple):
    """All that is linked."""

    rows: np.ndarray
    links: np.ndarray
    last: np.ndarray
    indexes: np.ndarray


STACKS = nb.types.NamedUniTuple(GRID, 4, Stacks)  # all may be written to: Numba does not convert what is in a tuple


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
    for column in range(KEY):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] < rows[b, column]
    return False


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.INTS), cache=True, forceinline=True)
def _chain_of_row(stacks: Stacks, j: int, row: int, words: np.ndarray) -> int:
    count = stacks.indexes[j, COUNT]
    for i in range(count):
        words[i] = stacks.rows[row, WORDS + stacks.indexes[j, FIRST + i]]
    return chain_of(stacks.rows[row, KEY], words, count, stacks.last.shape[1])


@nb.njit(s.nothing(STACKS, s.integer), cache=True, forceinline=True)
def link(stacks: Stacks, row: int) -> None:
    """Put a row into the chains of all places at which it fits."""
    rows, links, last, indexes = stacks
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


@nb.njit(s.nothing(STACKS, s.integer), cache=True, forceinline=True)
def unlink(stacks: Stacks, row: int) -> None:
    """Take a row out of its chains."""
    rows, links, last, indexes = stacks
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


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def link_all(stacks: Stacks, chosen: np.ndarray) -> None:
    """Link these rows; quick if they come in the total order."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        link(borrowed, chosen[i])


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def unlink_all(stacks: Stacks, chosen: np.ndarray) -> None:
    """Take these rows out of their chains."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        unlink(borrowed, chosen[i])
