"""Which events can be let go (001 VI, algorithms 1 and 2): those that go with nothing that is there or may still come.

Frontiers say what may still come: none before them. Events are looked at key by key. Two keys whose hash is the same are looked
at together, which only keeps more. Of events outside memory only the time of the newest is known: those may be of any kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent
from headrace.kernels.patterns.stacks import BITS, GRID, KEY, LOCAL, NONE, STACKS, TS, Stacks, before

N_PLACE, N_GAP = 0, 1  # columns of `negations`


class Look(NamedTuple):
    """A look at the rows of one key: those of place p are `chain[ends[p]:ends[p + 1]]`, the newest first."""

    rows: np.ndarray
    chain: np.ndarray
    ends: np.ndarray
    positive: np.ndarray
    frontier: np.ndarray  # of every place: none come before it
    within: int
    outside: int  # the time of the newest row outside memory


LOOK = nb.types.NamedTuple((GRID, s.INTS, s.INTS, s.ints, s.ints, s.integer, s.integer), Look)


@nb.njit(s.integer(LOOK, s.integer, s.integer), cache=True, forceinline=True)
def _end_of_those_behind(look: Look, place: int, row: int) -> int:
    """Where the rows of a place that stand behind a row end."""
    low, high = look.ends[place], look.ends[place + 1]  # rows from the start to low - 1 are behind it
    while low < high:
        middle = (low + high) // 2
        if before(look.rows, row, look.chain[middle]):
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(s.integer(LOOK, s.integer, s.integer), cache=True, forceinline=True)
def _first_behind(look: Look, place: int, row: int) -> int:
    """The earliest row of a place behind a row; NONE if there is none."""
    end = _end_of_those_behind(look, place, row)
    return look.chain[end - 1] if end > look.ends[place] else NONE


@nb.njit(s.integer(LOOK, s.integer, s.integer), cache=True, forceinline=True)
def _first_from(look: Look, place: int, time: int) -> int:
    """The earliest row of a place at a time or later; NONE if there is none."""
    low, high = look.ends[place], look.ends[place + 1]
    while low < high:
        middle = (low + high) // 2
        if look.rows[look.chain[middle], TS] >= time:
            low = middle + 1
        else:
            high = middle
    return look.chain[low - 1] if low > look.ends[place] else NONE


@nb.njit(s.boolean(LOOK, s.integer, s.integer), cache=True, forceinline=True)
def _can_match(look: Look, at: int, row: int) -> bool:
    """Whether a row may be part of a sequence at positive place `at`: the earliest choice of what is known to be complete.

    That goes for the rows of a group too: with any of them in the place of the one that stands for it, the events of the
    sequence are in order and in time.
    """
    rows, time, within = look.rows, look.rows[row, TS], look.within
    taken = NONE
    for q in range(at):
        place = look.positive[q]
        if look.frontier[place] <= time or time - within <= look.outside:
            continue
        found = _first_from(look, place, time - within)
        if taken != NONE and found != NONE and not before(rows, taken, found):
            found = _first_behind(look, place, taken)
        if found == NONE or not before(rows, found, row):
            return False
        taken = found
    taken = row
    for q in range(at + 1, len(look.positive)):
        place = look.positive[q]
        if look.frontier[place] <= time + within:
            continue
        found = _first_behind(look, place, taken)
        if found == NONE or rows[found, TS] > time + within:
            return False
        taken = found
    return True


@nb.njit(s.boolean(LOOK, s.integer, s.integer), cache=True, forceinline=True)
def _can_forbid(look: Look, gap: int, row: int) -> bool:
    """Whether a row may lie in this gap of a sequence."""
    rows, positive, time, within = look.rows, look.positive, look.rows[row, TS], look.within
    if gap > 0 and look.frontier[positive[gap - 1]] > time and time - within > look.outside:
        found = _first_from(look, positive[gap - 1], time - within)
        if found == NONE or not before(rows, found, row):
            return False
    if gap < len(positive) and look.frontier[positive[gap]] > time + within:
        found = _first_behind(look, positive[gap], row)
        if found == NONE or rows[found, TS] > time + within:
            return False
    return True


@nb.njit(s.boolean(LOOK, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _is_ended(look: Look, place: int, row: int, complete: int) -> bool:
    """Whether the first row of its key behind a row, of a place, stands before the time up to which all has come."""
    rows = look.rows
    for i in range(_end_of_those_behind(look, place, row) - 1, look.ends[place] - 1, -1):
        if rows[look.chain[i], TS] >= complete:
            return False
        if rows[look.chain[i], KEY] == rows[row, KEY]:
            return True
    return False


@nb.njit(s.integer(STACKS, s.ints, s.ints, GRID, s.ints, s.integer, s.integer, s.integer, s.integer, s.FLAGS, s.INTS), cache=True)
def purgeable(
    stacks: Stacks, base: np.ndarray, positive: np.ndarray, negations: np.ndarray, frontier: np.ndarray, within: int, oldest: int,
    outside: int, first_ends: int, seen: np.ndarray, out: np.ndarray,
) -> int:  # fmt: skip
    """Write the rows that can go to `out`, and give how many they are.

    `base` is the index of every place (the last: that of any row, NONE if there is none) that has nothing but the key, `oldest`
    the time before which no row is needed. `seen` is one flag per row, all false. `first_ends` is the positive place before the
    last if a row there goes with nothing but the first event behind it that ends the pattern: once that is there, and nothing can
    come before it, all its sequences are known. NONE if that is not so.
    """
    borrowed = lent(stacks)
    rows, places, complete = borrowed.rows, len(base) - 1, frontier.min()
    last = positive[len(positive) - 1]
    chain, ends, count = np.empty(64, np.int64), np.zeros(places + 2, np.int64), 0
    for h in range(borrowed.last.shape[1]):
        filled = 0
        for p in range(places + 1):
            ends[p] = filled
            if base[p] != NONE:
                row, local = borrowed.last[base[p], h], borrowed.indexes[base[p], LOCAL]
                while row != NONE:
                    if filled == len(chain):
                        chain = np.concatenate((chain, np.empty_like(chain)))
                    chain[filled] = row
                    filled += 1
                    row = borrowed.links[row, local]
        ends[places + 1] = filled
        look = lent(Look(rows, chain, ends, positive, frontier, within, outside))
        for i in range(filled):
            row = chain[i]
            if seen[row]:
                continue
            seen[row] = True
            needed = False
            if rows[row, TS] >= oldest:
                for q in range(len(positive)):
                    if not needed and (rows[row, BITS] >> positive[q]) & 1:
                        needed = _can_match(look, q, row)
                        if needed and q == first_ends:
                            needed = not _is_ended(look, last, row, complete)
                for g in range(len(negations)):
                    place = negations[g, N_PLACE]
                    if not needed and (rows[row, BITS] >> (place if place != NONE else places)) & 1:
                        needed = _can_forbid(look, negations[g, N_GAP], row)
            if not needed:
                out[count] = row
                count += 1
    return count
