"""The search for sequences (WinSeq and WinNeg of 001): those that a row is part of, or that lie around a negated row.

A search begins at one row and binds the other places one by one, each candidate between its bound neighbours and inside the
window. Conditions are tested as soon as the last of their events is bound. A negation without conditions cuts the walk short:
nothing on the other side of the nearest forbidding row can be taken.

Rows may also lie outside memory (001, VIII), all of them before all that are here. A search then gives, beside whole sequences,
also their ends, which rows from outside may complete: the places that are not bound are NONE.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.patterns.stacks import (
    BITS,
    COUNT,
    DEAD,
    GRID,
    KEY,
    LOCAL,
    NONE,
    NULLS,
    STACKS,
    TS,
    WORDS,
    Stacks,
    before,
    beyond,
    chain_of,
)

# Whether all conditions of a set (bits) hold, given words and which of them are NULL.
CHECK = nb.types.FunctionType(nb.types.boolean(nb.types.int64, s.ints, s.flags))
BLOCKS = nb.types.Array(nb.types.int64, 3, "C")

# Columns of `steps[start, k]`: positive place, direction, index, conditions and negations to test, its neighbours among the
# positive places that are bound (NONE: there is none; ROOT_ROW: the row that the search began at), what refutes a row and all
# that are no better, where the index has its words.
AT, WAY, INDEX, CONDITIONS, TESTED, LOWER, UPPER, REFUTES, PROBE = range(9)
ROOT_ROW = -2
STAYS = -2
# Columns of `negations`: place, gap, index, conditions, whether only the key decides, the positive place whose words it borrows,
# the place at which a row that fits, and meets the conditions there, does not forbid, what refutes a row, where the index has
# its words.
N_PLACE, N_GAP, N_INDEX, N_CONDITIONS, N_FREE, N_LENDER, N_UNLESS, N_REFUTES, N_PROBE = range(9)
# What is known about a sequence that was found.
SIGN, ROOT, START, MOMENT, ABOUT = range(5)


class SearchProgram(NamedTuple):
    """A pattern as the search has it. Starts are the positive places, then the negations.

    Behind the negations stand the groups of repeated places, in their form: a row of a group lies in a gap too, but does not
    forbid. Behind the starts stand, in `steps`, the beginnings that end at every positive place.
    """

    steps: np.ndarray
    counts: np.ndarray  # steps of every start
    negations: np.ndarray
    forbidding: int  # how many of them are negations
    positive: np.ndarray  # the place of every positive one
    word_place: np.ndarray  # per place: where its words go
    word_column: np.ndarray  # and from which column of a row
    within: int
    marked: int  # positive places (bits) at which rows that end no beginning are marked
    slope: np.ndarray  # by index and condition that refutes: along which slope a walk then goes on


class Bound(NamedTuple):
    """What is bound: the row of every positive place, the words, which of them are NULL, and room for those of an index.

    And where a search stands at every step: the row that is tried next, and the one that nothing beyond it can be taken of.
    """

    row: np.ndarray
    words: np.ndarray
    nulls: np.ndarray
    probe: np.ndarray
    cursor: np.ndarray
    barrier: np.ndarray


PROGRAM = nb.types.NamedTuple((BLOCKS, s.INTS, GRID, s.integer, s.INTS, GRID, GRID, s.integer, s.integer, GRID), SearchProgram)
BOUND = nb.types.NamedTuple((s.INTS, s.INTS, s.FLAGS, s.INTS, s.INTS, s.INTS), Bound)


@nb.njit(s.nothing(STACKS, PROGRAM, BOUND, s.integer, s.integer), cache=True, forceinline=True)
def load(stacks: Stacks, program: SearchProgram, bound: Bound, place: int, row: int) -> None:
    """The words of a row, as those of a place."""
    for k in range(program.word_place.shape[1]):
        at = program.word_place[place, k]
        if at == NONE:
            return
        column = program.word_column[place, k]
        bound.words[at] = stacks.rows[row, WORDS + column]
        bound.nulls[at] = (stacks.rows[row, NULLS] >> column) & 1 == 1


@nb.njit(s.integer(STACKS, BOUND, s.ints, s.integer, s.integer), cache=True, forceinline=True)
def newest_of(stacks: Stacks, bound: Bound, places: np.ndarray, j: int, key: int) -> int:
    """The newest row of the chain that is asked for; `places` says where among the words its own are."""
    count = stacks.indexes[j, COUNT]
    for i in range(count):
        bound.probe[i] = bound.words[places[i]]
    return stacks.last[j, chain_of(key, bound.probe, count, stacks.last.shape[1])]


@nb.njit(s.integer(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def refuted(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, refutes: int, j: int, row: int) -> int:
    """Where a walk along index j goes on if one of these conditions refutes the row that is bound last; STAYS if none does."""
    c = 0
    while refutes >> c != 0:
        if (refutes >> c) & 1 and check(1 << c, bound.words, bound.nulls):
            return beyond(stacks, program.slope[j, c], row, stacks.indexes[j, LOCAL])
        c += 1
    return STAYS


@nb.njit(nb.types.boolean(CHECK, STACKS, PROGRAM, BOUND, s.ints, s.integer), cache=True, forceinline=True)
def _counts(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, negation: np.ndarray, row: int) -> bool:
    """Whether a row in the gap of a negation forbids what is bound. The words of its place are then those of the row."""
    unless = negation[N_UNLESS]
    if unless != NONE and not (stacks.rows[row, BITS] >> unless) & 1:
        return True
    if negation[N_FREE] == 0:
        load(stacks, program, bound, negation[N_PLACE] if unless == NONE else unless, row)
        return check(negation[N_CONDITIONS], bound.words, bound.nulls) == (unless == NONE)
    return unless == NONE


@nb.njit(s.nothing(STACKS, PROGRAM, BOUND, s.ints), cache=True, forceinline=True)
def _give_back(stacks: Stacks, program: SearchProgram, bound: Bound, negation: np.ndarray) -> None:
    """The words that a negation has borrowed are again those of the row that is bound there."""
    lender = negation[N_LENDER]
    if lender != NONE and negation[N_FREE] == 0:
        load(stacks, program, bound, program.positive[lender], bound.row[lender])


@nb.njit(nb.types.boolean(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer), cache=True, forceinline=True)
def is_forbidden(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, g: int, key: int) -> bool:
    """Whether a row of negation g lies in its gap."""
    rows, negation, at = stacks.rows, program.negations[g], bound.row
    n, gap, j = len(at), negation[N_GAP], negation[N_INDEX]
    row, local, found = newest_of(stacks, bound, negation[N_PROBE:], j, key), stacks.indexes[j, LOCAL], False
    while row != NONE:
        if gap > 0 and not before(rows, at[gap - 1], row):
            break
        if gap == 0 and rows[row, TS] < rows[at[n - 1], TS] - program.within:
            break
        inside = rows[row, TS] <= rows[at[0], TS] + program.within if gap == n else before(rows, row, at[gap])
        if inside and rows[row, KEY] == key and _counts(check, stacks, program, bound, negation, row):
            found = True
            break
        if inside and rows[row, KEY] == key and negation[N_REFUTES] != 0:
            beyond_it = refuted(check, stacks, program, bound, negation[N_REFUTES], j, row)
            row = beyond_it if beyond_it != STAYS else stacks.links[row, local]
        else:
            row = stacks.links[row, local]
    _give_back(stacks, program, bound, negation)
    return found


@nb.njit(s.integer(STACKS, PROGRAM, BOUND, s.integer, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _barrier(stacks: Stacks, program: SearchProgram, bound: Bound, gap: int, key: int, reference: int, way: int) -> int:
    """The nearest row before (way < 0) or behind the reference that forbids whatever is beyond it; NONE if there is none."""
    rows, best = stacks.rows, NONE
    for g in range(program.forbidding):
        negation = program.negations[g]
        unless = negation[N_UNLESS]
        if negation[N_GAP] != gap or (negation[N_FREE] == 0 and unless == NONE):
            continue
        j = negation[N_INDEX]
        row, local, nearest = newest_of(stacks, bound, negation[N_PROBE:], j, key), stacks.indexes[j, LOCAL], NONE
        while row != NONE:
            if rows[row, KEY] == key and (unless == NONE or not (rows[row, BITS] >> unless) & 1):
                if way < 0 and before(rows, row, reference):
                    nearest = row
                    break
                if way > 0:
                    if not before(rows, reference, row):
                        break
                    nearest = row
            row = stacks.links[row, local]
        if nearest != NONE and (best == NONE or before(rows, best, nearest) == (way < 0)):
            best = nearest
    return best


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _behind(stacks: Stacks, row: int, local: int, key: int, reference: int, latest: int, barrier: int) -> int:
    """From a row of a chain on, the next that stands behind the reference, in time, and not beyond the barrier."""
    rows = stacks.rows
    while row != NONE and before(rows, reference, row):
        free = barrier == NONE or row == barrier or before(rows, row, barrier)
        if free and rows[row, TS] <= latest and rows[row, KEY] == key:
            return row
        row = stacks.links[row, local]
    return NONE


@nb.njit(
    s.integer(STACKS, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer),
    cache=True, forceinline=True,
)  # fmt: skip
def ahead(
    stacks: Stacks, row: int, local: int, key: int, lower: int, reference: int, earliest: int, barrier: int, place: int
) -> int:
    """From a row of a chain on, the next that stands before the reference, in time, and not beyond the barrier.

    It is behind the row `lower`, if there is one. Rows that end no beginning at this positive place are passed by.
    """
    rows = stacks.rows
    while row != NONE and rows[row, TS] >= earliest and (lower == NONE or before(rows, lower, row)):
        if barrier != NONE and row != barrier and not before(rows, barrier, row):
            return NONE
        if (rows[row, DEAD] >> place) & 1 == 0 and rows[row, KEY] == key and before(rows, row, reference):
            return row
        row = stacks.links[row, local]
    return NONE


@nb.njit(nb.types.boolean(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _holds(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, conditions: int, tested: int, key: int) -> bool:
    """Whether these conditions hold, and none of these negations forbids what is bound."""
    if conditions != 0 and not check(conditions, bound.words, bound.nulls):
        return False
    g = 0
    while tested >> g != 0:
        if (tested >> g) & 1 and is_forbidden(check, stacks, program, bound, g, key):
            return False
        g += 1
    return True


@nb.njit(nb.types.boolean(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer), cache=True, forceinline=True)
def _forbids(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, g: int, root: int) -> bool:
    """Whether a row in the gap of negation g forbids what is bound."""
    negation = program.negations[g]
    place = negation[N_PLACE]
    if not (stacks.rows[root, BITS] >> (place if place != NONE else len(program.word_place))) & 1:
        return False
    out = _counts(check, stacks, program, bound, negation, root)
    _give_back(stacks, program, bound, negation)
    return out


@nb.njit(nb.types.boolean(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer), cache=True, forceinline=True)
def _forbids_first(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, own: int, root: int) -> bool:
    """Whether a row forbids by negation `own` what is bound, and by none before it: it must not be counted twice.

    From the number of negations on: whether it is in the group.
    """
    for g in range(own if own < program.forbidding else 0):
        if program.negations[g, N_GAP] == program.negations[own, N_GAP] and _forbids(check, stacks, program, bound, g, root):
            return False
    return _forbids(check, stacks, program, bound, own, root)


@nb.njit(s.integer(PROGRAM, s.integer), cache=True, forceinline=True)
def _place_of(program: SearchProgram, start: int) -> int:
    """The place as whose a search loads the words of its row; NONE if they are borrowed when all is bound."""
    own = start - len(program.positive)
    if own < 0:
        return program.positive[start]
    return program.negations[own, N_PLACE] if program.negations[own, N_LENDER] == NONE else NONE


@nb.njit(s.integer(STACKS, PROGRAM, BOUND, s.integer, s.integer, s.ints), cache=True, forceinline=True)
def bind(stacks: Stacks, program: SearchProgram, bound: Bound, start: int, root: int, at: np.ndarray) -> int:
    """A row at its place, and beside it what has been found already. Gives how many steps that were."""
    place, done = _place_of(program, start), 0
    bound.row[:] = at
    if start < len(at):
        bound.row[start] = root
    for q in range(len(at)):
        if at[q] != NONE and q != start:
            load(stacks, program, bound, program.positive[q], at[q])
            done += 1
    if place != NONE:
        load(stacks, program, bound, place, root)
    return done


SEARCH = nb.types.Tuple((GRID, s.integer))


@nb.njit(SEARCH(GRID, s.integer, s.ints), cache=True, forceinline=True)
def _give(out: np.ndarray, found: int, at: np.ndarray) -> tuple[np.ndarray, int]:
    if found == len(out):
        out = np.concatenate((out, np.empty_like(out)))
    out[found] = at
    return out, found + 1


@nb.njit(s.integer(s.ints, s.integer, s.integer), cache=True, forceinline=True)
def bound_at(at: np.ndarray, root: int, neighbour: int) -> int:
    """The row of a neighbour."""
    return at[neighbour] if neighbour >= 0 else root if neighbour == ROOT_ROW else NONE


SEARCHED = (CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer, s.integer, s.integer, GRID, s.integer)


@nb.njit(SEARCH(*SEARCHED), cache=True, forceinline=True)
def search(
    check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, start: int, root: int, first: int, reach: int,
    out: np.ndarray, found: int,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Add the sequences that a row is in at positive place `start`, or, from the number of positive places on, in the gap of.

    It is bound already, as are the places of the steps before `first`. `reach` is the time of the newest row that is not here.
    """
    rows, steps, at = stacks.rows, program.steps[start], bound.row
    n, key, depth, own = len(at), rows[root, KEY], program.counts[start], start - len(at)
    gap_of_root, place_of_root = program.negations[own, N_GAP] if own >= 0 else NONE, _place_of(program, start)
    cursor, barrier = bound.cursor, bound.barrier
    everything = (1 << program.forbidding) - 1
    k, enter = first, True
    while k >= first:
        if k == depth:
            fine = depth > 0 or _holds(check, stacks, program, bound, 0, everything, key)
            if fine and (own < 0 or _forbids_first(check, stacks, program, bound, own, root)):
                out, found = _give(out, found, at)
            k, enter = k - 1, False
            continue
        place, way, j = steps[k, AT], steps[k, WAY], steps[k, INDEX]
        lower, upper = bound_at(at, root, steps[k, LOWER]), bound_at(at, root, steps[k, UPPER])
        reference = lower if way > 0 else upper
        if enter:
            cursor[k] = newest_of(stacks, bound, steps[k, PROBE:], j, key)
            gap = place if way > 0 else place + 1
            barrier[k] = _barrier(stacks, program, bound, gap, key, reference, way) if 0 < gap < n else NONE
        local = stacks.indexes[j, LOCAL]
        if way > 0:
            oldest = root if gap_of_root == 0 or at[0] == NONE else at[0]
            row = _behind(stacks, cursor[k], local, key, reference, rows[oldest, TS] + program.within, barrier[k])
        else:
            newest = root if gap_of_root == n or at[n - 1] == NONE else at[n - 1]
            earliest = rows[newest, TS] - program.within
            if enter and barrier[k] == NONE and earliest <= reach:
                out, found = _give(out, found, at)
            row = ahead(stacks, cursor[k], local, key, lower, reference, earliest, barrier[k], place)
        at[place] = row
        if row == NONE:
            k, enter = k - 1, False
            continue
        cursor[k] = stacks.links[row, local]
        if program.word_place[program.positive[place], 0] != NONE:  # calls that do nothing would be half of what a step costs
            load(stacks, program, bound, program.positive[place], row)
        if steps[k, REFUTES] != 0:
            beyond_it = refuted(check, stacks, program, bound, steps[k, REFUTES], j, row)
            if beyond_it != STAYS:
                cursor[k], enter = beyond_it, False
                continue
        conditions, tested = steps[k, CONDITIONS], steps[k, TESTED]
        enter = (conditions == 0 and tested == 0) or _holds(check, stacks, program, bound, conditions, tested, key)
        if own >= 0 and place_of_root != NONE and tested != 0:
            load(stacks, program, bound, place_of_root, root)  # others have been tried in its place
        k += enter
    return out, found


@nb.njit(BOUND(PROGRAM, STACKS, s.ints), cache=True, forceinline=True)
def nothing_bound(program: SearchProgram, stacks: Stacks, words: np.ndarray) -> Bound:
    """Room for what a search binds, beside the words that never change."""
    n = len(program.positive)
    return Bound(
        np.full(n, NONE, np.int64),
        words.copy(),
        np.zeros(len(words), np.bool_),
        np.zeros(stacks.indexes.shape[1], np.int64),
        np.full(n + 1, NONE, np.int64),
        np.full(n + 1, NONE, np.int64),
    )
