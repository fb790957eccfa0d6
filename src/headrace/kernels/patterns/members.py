"""The groups of repeated places: all rows that fit between the neighbours of the one that stands for them in a sequence."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent
from headrace.kernels.patterns.sequences import CHECK, PROGRAM, SearchProgram, load, newest_of, nothing_bound
from headrace.kernels.patterns.stacks import GRID, KEY, LOCAL, NONE, STACKS, Stacks, before

# What a group is: positive place, place, index, conditions of its rows, where the index has its words.
G_AT, G_PLACE, G_INDEX, G_CONDITIONS, G_PROBE = range(5)


@nb.njit(nb.types.Tuple((s.INTS, s.INTS))(CHECK, STACKS, PROGRAM, s.ints, s.ints, GRID), cache=True)
def members(
    check: Any, stacks: Stacks, program: SearchProgram, words: np.ndarray, group: np.ndarray, sequences: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of every sequence the rows of a group, in order: where they end in the list, and the list.

    At the end of a pattern a group goes from the row before it up to its own, else from its own on to the next. `words` are
    those that never change.
    """
    room = nothing_bound(program, stacks, len(words))
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    rows, n, q, j = stacks.rows, len(program.positive), group[G_AT], group[G_INDEX]
    bound.words[:] = words
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
