"""Sequences that reach back to rows outside memory (001, VIII): ends that a frame of such rows may complete, and what forbids.

A frame is linked by itself; the rows that are bound already stand behind its own, and are in no chain.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent
from headrace.kernels.patterns.linking import link, unlink
from headrace.kernels.patterns.sequences import (
    CHECK,
    PROGRAM,
    ROOT,
    START,
    SearchProgram,
    bind,
    is_forbidden,
    nothing_bound,
    search,
)
from headrace.kernels.patterns.stacks import GRID, KEY, NONE, STACKS, Stacks


@nb.njit(nb.types.Tuple((GRID, s.INTS))(CHECK, STACKS, PROGRAM, s.ints, GRID, GRID, s.integer), cache=True)
def extend(
    check: Any, stacks: Stacks, program: SearchProgram, words: np.ndarray, ends: np.ndarray, about: np.ndarray, reach: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take ends of sequences further back, by the rows of a frame: what they become, and of which of them.

    An end that older frames may complete, the newest of whose rows is of the time `reach`, is among what it becomes.
    """
    out, found = np.empty((64, ends.shape[1]), np.int64), 0
    origin = np.empty(64, np.int64)
    room = nothing_bound(program, stacks, len(words))
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    bound.words[:] = words
    for i in range(len(ends)):
        was, start, root = found, about[i, START], about[i, ROOT]
        done = bind(stacks, program, bound, start, root, ends[i])
        out, found = search(check, stacks, program, bound, start, root, done, reach, out, found)
        if len(out) > len(origin):
            origin = np.concatenate((origin, np.empty(len(out) - len(origin), np.int64)))
        origin[was:found] = i
    room.row[:] = NONE  # it was lent up to here
    return out[:found], origin[:found]


@nb.njit(s.FLAGS(CHECK, STACKS, PROGRAM, s.ints, GRID, s.ints, s.ints, s.ints), cache=True)
def forbidden(
    check: Any, stacks: Stacks, program: SearchProgram, words: np.ndarray, sequences: np.ndarray, moment: np.ndarray,
    chosen: np.ndarray, sign: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which sequences have a row of a negation in its gap, among those that are linked.

    The last to be linked (sign > 0) and unlinked were these rows; each sequence is looked at as things were when `moment` of
    them were done. Sequences come with the latest moment first.
    """
    out = np.zeros(len(sequences), np.bool_)
    room = nothing_bound(program, stacks, len(words))
    stacks, program, bound = lent(stacks), lent(program), lent(room)
    bound.words[:] = words
    done = len(chosen)
    for i in range(len(sequences)):
        while done > moment[i]:
            done -= 1
            if sign[done] > 0:
                unlink(stacks, chosen[done])
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
            unlink(stacks, chosen[done])
        done += 1
    room.row[:] = NONE  # it was lent up to here
    return out
