"""One row enters a window for good, or leaves it: what every tally keeps moves along. `kernels/windows/passes` for one row."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.single import memory, rows
from headrace.kernels.single import record as r
from headrace.kernels.windows.queues import _pop, _push

_EXPONENT = np.int64(0x7FF)
_BIAS, _PIECES, _SQUARE_PIECES = 1075, 3, 5  # as in `kernels/exact/accumulators`


@nb.njit(s.integer(nb.types.float64), cache=True)
def _field(value):  # type: ignore[no-untyped-def]
    """The exponent field of a double that is not 0."""
    return max(np.int64(1), (np.float64(value).view(np.int64) >> 52) & _EXPONENT)


@nb.njit(s.boolean(s.INTS, s.integer, nb.types.float64), cache=True)
def covers(d, y, value):  # type: ignore[no-untyped-def]
    """Whether the sums of a tally have limbs for a double, and for its square where they have those."""
    if value == 0.0:
        return True
    place = _field(value) - _BIAS
    first = (place - 32 * d[y + r.Y_LOW]) >> 5
    if first < 0 or first + _PIECES > d[y + r.Y_WIDTH]:
        return False
    if d[y + r.Y_KIND] != r.MOMENTS:
        return True
    first = (2 * place - 32 * d[y + r.Y_SQUARES_LOW]) >> 5
    return first >= 0 and first + _SQUARE_PIECES <= d[y + r.Y_SQUARES_WIDTH]


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer), cache=True)
def ready(d, y, run, at):  # type: ignore[no-untyped-def]
    """Whether a tally has room for a row that enters; what is asked for, if not."""
    kind = d[y + r.Y_KIND]
    if kind == r.DOUBLE_SUMS or kind == r.MOMENTS:
        if rows.code(d, run, d[y + r.Y_CODE], at) != 0:
            return r.DONE
        value = memory.floats(rows.column(d, run, d[y + r.Y_VALUE]))[at]
        if not covers(d, y, value):
            d[r.DETAIL], d[r.DETAIL_TOO] = y, np.float64(value).view(np.int64)
            return r.MORE_LIMBS
    elif kind == r.QUEUES and memory.ints(d[y + r.Y_FREE])[0] == d[y + r.Y_POOL]:
        d[r.DETAIL] = y
        return r.MORE_NODES
    return r.DONE


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True)
def _move_queue(d, y, run, at, number, key, sign):  # type: ignore[no-untyped-def]
    head, tail, nodes = memory.keys(d[y + r.Y_STATE]), memory.keys(d[y + r.Y_TAIL]), memory.ints(d[y + r.Y_NODES])
    links, free = memory.pairs(d[y + r.Y_LINKS]), memory.ints(d[y + r.Y_FREE])
    if sign < 0:
        _pop(key, number, head, tail, nodes, links, free)
        return
    shown = d[y + r.Y_SHOWN] >= 0
    d[r.VALUE] = rows.word(d, run, d[y + r.Y_VALUE], at)
    what = rows.code(d, run, d[y + r.Y_CODE], at)
    told = what
    if shown:
        d[r.VALUE_TOO] = rows.word(d, run, d[y + r.Y_SHOWN], at)
        told = rows.code(d, run, d[y + r.Y_SHOWN_CODE], at)
    held = memory.lines(d[y + r.Y_HELD], 2 if shown else 1)
    value, ranks = d[r.VALUE : r.VALUE + (2 if shown else 1)], memory.sized(d[y + r.Y_RANKS], d[y + r.Y_N_RANKS])
    _push(key, number, value, what, told, d[y + r.Y_MODE], ranks, head, tail, nodes, held,
          memory.codes(d[y + r.Y_CODES]), links, free)  # fmt: skip


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True)
def _move_sum(d, y, run, at, key, what, sign):  # type: ignore[no-untyped-def]
    kind, width = d[y + r.Y_KIND], d[y + r.Y_WIDTH]
    limbs, value = memory.lines(d[y + r.Y_STATE], width), d[y + r.Y_VALUE]
    if kind == r.INTEGER_SUMS:
        if what == 0:
            exact.add_int(limbs, key, 0, memory.ints(rows.column(d, run, value))[at], sign)
    elif kind == r.DECIMAL_SUMS:
        if what == 0:
            high, low = memory.ints(rows.column(d, run, value)), memory.words(rows.column(d, run, value + 1))
            exact.add_int128(limbs, key, 0, high[at], low[at], sign)
    elif what == 0:
        number = memory.floats(rows.column(d, run, value))[at]
        exact.add(limbs, key, d[y + r.Y_LOW], number, sign)
        if kind == r.MOMENTS:
            squares = memory.lines(d[y + r.Y_SQUARES], d[y + r.Y_SQUARES_WIDTH])
            exact.add_square(squares, key, d[y + r.Y_SQUARES_LOW], number, sign)
    elif what < NULL:
        memory.lines(d[y + r.Y_SPECIALS], 3)[key, what - 1] += sign


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True)
def move_pair(d, y, run, at, key, sign):  # type: ignore[no-untyped-def]
    """A value of a key comes or goes."""
    counts, pair = memory.ints(d[y + r.Y_SQUARES]), memory.keys(rows.column(d, run, d[y + r.Y_PAIRS]))[at]
    counts[pair] += sign
    if counts[pair] == (1 if sign > 0 else 0):
        memory.ints(d[y + r.Y_STATE])[key] += sign


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True)
def move(d, y, run, at, number, sign):  # type: ignore[no-untyped-def]
    """A row enters the window of a tally (1), or leaves it (-1)."""
    kind = d[y + r.Y_KIND]
    key = np.int64(memory.keys(rows.column(d, run, d[y + r.Y_GROUP]))[at])
    if kind == r.QUEUES:
        _move_queue(d, y, run, at, number, key, sign)
        return
    what = rows.code(d, run, d[y + r.Y_CODE], at)
    if kind == r.COUNTS:
        if what < NULL:
            memory.ints(d[y + r.Y_STATE])[key] += sign
    elif kind == r.DISTINCTS:
        if what < NULL:
            move_pair(d, y, run, at, key, sign)
    else:
        _move_sum(d, y, run, at, key, what, sign)
