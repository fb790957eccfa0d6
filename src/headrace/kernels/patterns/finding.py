"""What steps ask a search: what rows change that come and go, ends of sequences from outside memory, and groups.

Conditions between the first events of a pattern would be tried again for every event behind them. So a row that comes is marked
at the places at which it ends no beginning, until a late row comes before it that may be one.

A frame of rows from outside memory (001, VIII) is linked by itself; the rows that are bound already stand behind its own, and are
in no chain.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent
from headrace.kernels.patterns.sequences import (
    ABOUT,
    AT,
    BOUND,
    CHECK,
    CONDITIONS,
    INDEX,
    LOWER,
    MOMENT,
    N_PLACE,
    PROBE,
    PROGRAM,
    REFUTES,
    ROOT,
    SIGN,
    START,
    STAYS,
    UPPER,
    Bound,
    SearchProgram,
    ahead,
    bind,
    bound_at,
    is_forbidden,
    load,
    newest_of,
    nothing_bound,
    refuted,
    search,
)
from headrace.kernels.patterns.stacks import BITS, DEAD, GRID, KEY, LOCAL, NONE, STACKS, TS, Stacks, before, link, unlink

# What a group is: positive place, place, index, conditions of its rows, where the index has its words.
G_AT, G_PLACE, G_INDEX, G_CONDITIONS, G_PROBE = range(5)


@nb.njit(s.boolean(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer, s.integer), cache=True, forceinline=True)
def _begins(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, end: int, root: int, reach: int) -> bool:
    """Whether a row at positive place `end` ends a beginning: rows before it that meet the conditions among these places.

    Negations are left out: what one forbids today it may not tomorrow. Of rows that are not here nothing is known.
    """
    rows, at, cursor = stacks.rows, bound.row, bound.cursor
    key, earliest = rows[root, KEY], rows[root, TS] - program.within
    if earliest <= reach:
        return True
    steps = program.steps[len(at) + len(program.negations) + end]
    at[end] = root
    load(stacks, program, bound, program.positive[end], root)
    k, enter = 0, True
    while 0 <= k < end:
        place, j = steps[k, AT], steps[k, INDEX]
        if enter:
            cursor[k] = newest_of(stacks, bound, steps[k, PROBE:], j, key)
        local = stacks.indexes[j, LOCAL]
        lower, upper = bound_at(at, root, steps[k, LOWER]), bound_at(at, root, steps[k, UPPER])
        row = ahead(stacks, cursor[k], local, key, lower, upper, earliest, NONE, place)
        if row == NONE:
            k, enter = k - 1, False
            continue
        at[place], cursor[k] = row, stacks.links[row, local]
        load(stacks, program, bound, program.positive[place], row)
        if steps[k, REFUTES] != 0:
            beyond_it = refuted(check, stacks, program, bound, steps[k, REFUTES], j, row)
            if beyond_it != STAYS:
                cursor[k], enter = beyond_it, False
                continue
        enter = steps[k, CONDITIONS] == 0 or check(steps[k, CONDITIONS], bound.words, bound.nulls)
        k += enter
    return k == end


@nb.njit(s.nothing(CHECK, STACKS, PROGRAM, BOUND, s.integer, s.integer), cache=True, forceinline=True)
def _mark(check: Any, stacks: Stacks, program: SearchProgram, bound: Bound, row: int, reach: int) -> None:
    """Mark a row at the places at which it ends no beginning."""
    for q in range(1, len(program.positive)):
        fits = (program.marked >> q) & 1 and (stacks.rows[row, BITS] >> program.positive[q]) & 1
        if fits and not _begins(check, stacks, program, bound, q, row, reach):
            stacks.rows[row, DEAD] |= 1 << q


@nb.njit(s.nothing(STACKS, PROGRAM, BOUND, s.integer), cache=True, forceinline=True)
def _unmark(stacks: Stacks, program: SearchProgram, bound: Bound, row: int) -> None:
    """Rows behind one that comes late may end a beginning that it is in."""
    rows, key = stacks.rows, stacks.rows[row, KEY]
    for q in range(1, len(program.positive)):
        if (program.marked >> q) & 1:
            j = program.positive[q]  # the index of a place by nothing but the key has its number
            other, local = newest_of(stacks, bound, program.positive[:0], j, key), stacks.indexes[j, LOCAL]
            while other != NONE and before(rows, row, other):
                rows[other, DEAD] &= ~(1 << q)
                other = stacks.links[other, local]


@nb.njit(nb.types.Tuple((GRID, GRID))(CHECK, PROGRAM, s.ints, STACKS, s.ints, s.ints, s.integer), cache=True)
def change(
    check: Any, program: SearchProgram, words: np.ndarray, stacks: Stacks, chosen: np.ndarray, sign: np.ndarray, reach: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows come (sign > 0) and go, one after the other: the sequences that this makes and unmakes, in that order.

    About each: +1 or -1, the row that the search began at and where, and how many rows had come and gone then.

    A row that comes at a negated place unmakes the sequences around it that nothing else forbids, one that goes makes them again.
    Sequences that have it in the group of a repeated place, and neither begin nor end there, change (0). `words` are those that
    never change.
    """
    n, places = len(program.positive), len(program.word_place)
    out, found = np.empty((64, n), np.int64), 0
    about = np.empty((64, ABOUT), np.int64)
    room, nothing = nothing_bound(program, stacks, words), np.full(n, NONE, np.int64)
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    for i in range(len(chosen)):
        row, comes = chosen[i], sign[i] > 0
        for phase in range(2):
            negative = (phase == 0) == comes  # what comes forbids before it takes part; what goes takes part before it forbids
            if comes and not negative:
                link(stacks, row)
                if program.marked:
                    _unmark(stacks, program, bound, row)
                    _mark(check, stacks, program, bound, row, reach)
            for start in range(n if negative else 0, n + len(program.negations) if negative else n):
                place = program.positive[start] if start < n else program.negations[start - n, N_PLACE]
                if not (stacks.rows[row, BITS] >> (place if place != NONE else places)) & 1:
                    continue
                was = found
                bind(stacks, program, bound, start, row, nothing)
                out, found = search(check, stacks, program, bound, start, row, 0, reach, out, found)
                if len(out) > len(about):
                    about = np.concatenate((about, np.empty((len(out) - len(about), ABOUT), np.int64)))
                about[was:found, SIGN] = 0 if start >= n + program.forbidding else -1 if negative == comes else 1
                about[was:found, ROOT], about[was:found, START], about[was:found, MOMENT] = row, start, i + phase
            if not comes and not negative:
                unlink(stacks, row, True)
    room.row[:] = NONE  # it was lent up to here
    return out[:found], about[:found]


@nb.njit(nb.types.Tuple((GRID, s.INTS))(CHECK, PROGRAM, s.ints, STACKS, GRID, GRID, s.integer), cache=True)
def extend(
    check: Any, program: SearchProgram, words: np.ndarray, stacks: Stacks, ends: np.ndarray, about: np.ndarray, reach: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take ends of sequences further back, by the rows of a frame: what they become, and of which of them.

    An end that older frames may complete, the newest of whose rows is of the time `reach`, is among what it becomes.
    """
    out, found = np.empty((64, ends.shape[1]), np.int64), 0
    origin = np.empty(64, np.int64)
    room = nothing_bound(program, stacks, words)
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    for i in range(len(ends)):
        was, start, root = found, about[i, START], about[i, ROOT]
        done = bind(stacks, program, bound, start, root, ends[i])
        out, found = search(check, stacks, program, bound, start, root, done, reach, out, found)
        if len(out) > len(origin):
            origin = np.concatenate((origin, np.empty(len(out) - len(origin), np.int64)))
        origin[was:found] = i
    room.row[:] = NONE  # it was lent up to here
    return out[:found], origin[:found]


@nb.njit(s.FLAGS(CHECK, PROGRAM, s.ints, STACKS, GRID, s.ints, s.ints, s.ints), cache=True)
def forbidden(
    check: Any, program: SearchProgram, words: np.ndarray, stacks: Stacks, sequences: np.ndarray, moment: np.ndarray,
    chosen: np.ndarray, sign: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which sequences have a row of a negation in its gap, among those that are linked.

    The last to be linked (sign > 0) and unlinked were these rows; each sequence is looked at as things were when `moment` of
    them were done. Sequences come with the latest moment first.
    """
    out = np.zeros(len(sequences), np.bool_)
    room = nothing_bound(program, stacks, words)
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    done = len(chosen)
    for i in range(len(sequences)):
        while done > moment[i]:
            done -= 1
            if sign[done] > 0:
                unlink(stacks, chosen[done], True)
            else:
                link(stacks, chosen[done])
        bind(stacks, program, bound, 0, sequences[i, 0], sequences[i])
        key, g = stacks.rows[sequences[i, 0], KEY], 0
        while g < program.forbidding and not out[i]:
            out[i] = is_forbidden(check, stacks, program, bound, g, key)
            g += 1
    while done < len(chosen):
        if sign[done] > 0:
            link(stacks, chosen[done])
        else:
            unlink(stacks, chosen[done], True)
        done += 1
    room.row[:] = NONE  # it was lent up to here
    return out


@nb.njit(nb.types.Tuple((s.INTS, s.INTS))(CHECK, PROGRAM, s.ints, STACKS, s.ints, GRID), cache=True)
def members(
    check: Any, program: SearchProgram, words: np.ndarray, stacks: Stacks, group: np.ndarray, sequences: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of every sequence the rows of a group, in order: where they end in the list, and the list.

    At the end of a pattern a group goes from the row before it up to its own, else from its own on to the next. `words` are
    those that never change.
    """
    room = nothing_bound(program, stacks, words)
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    rows, n, q, j = stacks.rows, len(program.positive), group[G_AT], group[G_INDEX]
    out, found = np.empty(64, np.int64), 0
    ends, local = np.empty(len(sequences), np.int64), stacks.indexes[j, LOCAL]
    for i in range(len(sequences)):
        at = sequences[i]
        key, start = rows[at[q], KEY], found
        for p in range(n):
            load(stacks, program, bound, program.positive[p], at[p])
        first, last = (at[q - 1], at[q]) if q == n - 1 else (at[q], at[q + 1])
        row = newest_of(stacks, bound, group[G_PROBE:], j, key)
        while row != NONE and not before(rows, row, first):
            fits = row == at[q]
            if not fits and rows[row, KEY] == key and before(rows, first, row) and before(rows, row, last):
                load(stacks, program, bound, group[G_PLACE], row)
                fits = check(group[G_CONDITIONS], bound.words, bound.nulls)
            if fits:
                if found == len(out):
                    out = np.concatenate((out, np.empty_like(out)))
                out[found] = row
                found += 1
            row = stacks.links[row, local]
        out[start:found] = out[start:found][::-1].copy()
        ends[i] = found
    room.row[:] = NONE  # it was lent up to here
    return ends, out[:found]
