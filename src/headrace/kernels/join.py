"""Which rows meet: every row has the one before it with its key on its own side, and an event walks back along these.

Rows of a side are numbered as they become final; `base` is the number of the first one in the arrays, and rows before `oldest`
are gone. The rows of a pass are put behind those that are there.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

RANGE, ROWS, ROWS_OF_KEY, EVERYTHING = 0, 1, 2, 3  # kinds of windows
NONE = -1

_SIDE = (s.INTS, s.INTS, s.FLAGS, s.INTS)  # ts, previous, met, last of every key


@nb.njit(
    nb.types.UniTuple(s.INTS, 2)(s.ints, s.codes, s.keys, s.flags, s.flags, *_SIDE, *_SIDE, s.ints, s.ints, s.ints, s.INTS),
    cache=True,
)
def meet(
    ts: np.ndarray, side: np.ndarray, key: np.ndarray, live: np.ndarray, ask: np.ndarray,
    ts0: np.ndarray, previous0: np.ndarray, met0: np.ndarray, last0: np.ndarray,
    ts1: np.ndarray, previous1: np.ndarray, met1: np.ndarray, last1: np.ndarray,
    windows: np.ndarray, base: np.ndarray, oldest: np.ndarray, count: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Link these rows, and find the partners of those that are asked for: (which row, number of its partner).

    `windows` has kind, size and lag of each side, one after the other; `count` moves along.
    """
    event, partner, found = np.empty(64, np.int64), np.empty(64, np.int64), 0
    for i in range(len(ts)):
        own, k = side[i], key[i]
        if own == 0:
            mine = (ts0, previous0, met0, last0)
            other_ts, other_previous, other_met, other_last = ts1, previous1, met1, last1
        else:
            mine = (ts1, previous1, met1, last1)
            other_ts, other_previous, other_met, other_last = ts0, previous0, met0, last0
        o = 1 - own
        at = count[own] - base[own]
        mine[0][at], mine[1][at], mine[2][at] = ts[i], NONE, False
        if live[i] and ask[i]:
            kind, size, lag = windows[3 * o], windows[3 * o + 1], windows[3 * o + 2]
            row, steps = other_last[k], 0
            while row >= oldest[o]:
                then = other_ts[row - base[o]]
                if kind == RANGE and then <= ts[i] - lag - size:
                    break
                if (kind == ROWS and row < count[o] - size) or (kind == ROWS_OF_KEY and steps == size):
                    break
                if kind != RANGE or then <= ts[i] - lag:
                    if found == len(event):
                        event = np.concatenate((event, np.empty(found, np.int64)))
                        partner = np.concatenate((partner, np.empty(found, np.int64)))
                    event[found], partner[found] = i, row
                    found += 1
                    mine[2][at] = True
                    other_met[row - base[o]] = True
                steps += 1
                row = other_previous[row - base[o]]
        if live[i]:
            mine[1][at] = mine[3][k]
            mine[3][k] = count[own]
        count[own] += 1
    return event[:found], partner[:found]


@nb.njit(s.nothing(s.codes, s.keys, s.flags, s.ints, s.INTS, s.ints, s.INTS, s.ints, s.INTS), cache=True)
def part(
    side: np.ndarray, key: np.ndarray, live: np.ndarray, previous0: np.ndarray, last0: np.ndarray,
    previous1: np.ndarray, last1: np.ndarray, base: np.ndarray, count: np.ndarray,
) -> None:  # fmt: skip
    """Unlink these rows again, the last one first."""
    for i in range(len(side) - 1, -1, -1):
        own = side[i]
        count[own] -= 1
        if live[i]:
            if own == 0:
                last0[key[i]] = previous0[count[0] - base[0]]
            else:
                last1[key[i]] = previous1[count[1] - base[1]]


@nb.njit(s.nothing(s.INTS, s.ints, s.integer, s.integer, s.integer, s.FLAGS), cache=True)
def reachable(last: np.ndarray, previous: np.ndarray, base: int, oldest: int, rows: int, out: np.ndarray) -> None:
    """Mark the last `rows` rows of every key; `out` is one flag per row from `oldest` on."""
    for k in range(len(last)):
        row, steps = last[k], 0
        while row >= oldest and steps < rows:
            out[row - oldest] = True
            steps += 1
            row = previous[row - base]
