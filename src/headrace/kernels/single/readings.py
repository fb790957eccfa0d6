"""What tallies are at some events of one key, seen from the frontier. Nothing that is kept changes."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import ABSENT, NULL
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.exact import moments as read
from headrace.kernels.single import memory, moves, rows
from headrace.kernels.single import record as r
from headrace.kernels.single.finds import PLACES, RUN_BITS
from headrace.kernels.windows.passes import _special
from headrace.kernels.windows.queues import NIL, OLDEST, _beats


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.LIMBS), cache=True)
def _counts(d, y, key, enter, enter_ends, leave, leave_ends, count, found, out):  # type: ignore[no-untyped-def]
    n, value = memory.ints(d[y + r.Y_STATE])[key], d[y + r.Y_CODE]
    for i in range(count):
        while enter < enter_ends[i]:
            n += rows.code(d, found[enter] >> RUN_BITS, value, found[enter] & PLACES) < NULL
            enter += 1
        while leave < leave_ends[i]:
            n -= rows.code(d, found[leave] >> RUN_BITS, value, found[leave] & PLACES) < NULL
            leave += 1
        out[i, 0] = n


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.LIMBS), cache=True)
def _distincts(d, y, key, enter, enter_ends, leave, leave_ends, count, found, out):  # type: ignore[no-untyped-def]
    """Counts of pairs move and are moved back: whole numbers."""
    state, value, first, gone = memory.ints(d[y + r.Y_STATE]), d[y + r.Y_CODE], enter, leave
    for i in range(count):
        while enter < enter_ends[i]:
            run, at = found[enter] >> RUN_BITS, found[enter] & PLACES
            if rows.code(d, run, value, at) < NULL:
                moves.move_pair(d, y, run, at, key, 1)
            enter += 1
        while leave < leave_ends[i]:
            run, at = found[leave] >> RUN_BITS, found[leave] & PLACES
            if rows.code(d, run, value, at) < NULL:
                moves.move_pair(d, y, run, at, key, -1)
            leave += 1
        out[i, 0] = state[key]
    for j in range(gone, leave):
        run, at = found[j] >> RUN_BITS, found[j] & PLACES
        if rows.code(d, run, value, at) < NULL:
            moves.move_pair(d, y, run, at, key, 1)
    for j in range(first, enter):
        run, at = found[j] >> RUN_BITS, found[j] & PLACES
        if rows.code(d, run, value, at) < NULL:
            moves.move_pair(d, y, run, at, key, -1)


@nb.njit(s.nothing(s.INTS, s.integer, s.LIMBS, s.LIMBS, s.INTS, s.integer, s.integer), cache=True)
def _add(d, y, limbs, squares, specials, find, sign):  # type: ignore[no-untyped-def]
    """A row comes to a copy of the sums of a key, or leaves it."""
    run, at = find >> RUN_BITS, find & PLACES
    what, kind, value = rows.code(d, run, d[y + r.Y_CODE], at), d[y + r.Y_KIND], d[y + r.Y_VALUE]
    if what >= NULL:
        return
    if kind == r.INTEGER_SUMS:
        exact.add_int(limbs, 0, 0, memory.ints(rows.column(d, run, value))[at], sign)
    elif kind == r.DECIMAL_SUMS:
        high, low = memory.ints(rows.column(d, run, value)), memory.words(rows.column(d, run, value + 1))
        exact.add_int128(limbs, 0, 0, high[at], low[at], sign)
    elif what > 0:
        specials[what - 1] += sign
    else:
        number = memory.floats(rows.column(d, run, value))[at]
        exact.add(limbs, 0, d[y + r.Y_LOW], number, sign)
        if kind == r.MOMENTS:
            exact.add_square(squares, 0, d[y + r.Y_SQUARES_LOW], number, sign)


@nb.njit(s.integer(nb.types.float64), cache=True)
def _bits(value):  # type: ignore[no-untyped-def]
    return np.float64(value).view(np.int64)


@nb.njit(s.nothing(s.INTS, s.integer, s.LIMBS, s.LIMBS, s.INTS, s.integer, s.INTS), cache=True)
def _read_sum(d, y, limbs, squares, specials, n, out):  # type: ignore[no-untyped-def]
    """As the kernels of `passes` read; `n` values, of which there are none where nothing is to be read."""
    kind, low = d[y + r.Y_KIND], d[y + r.Y_LOW]
    if kind == r.INTEGER_SUMS:
        if n > 0:
            value, fits = read.read_int64(limbs, 0, 0)
            out[0], out[1], out[2] = value, np.int64(fits), _bits(read.read_mean(limbs, 0, 0, n))
    elif kind == r.DECIMAL_SUMS:
        if n > 0:
            high, word, fits = read.read_int128(limbs, 0, 0)
            out[0], out[1], out[2] = np.int64(word), high, np.int64(fits)
            high, word, fits = read.read_mean_int128(limbs, 0, 0, n, d[y + r.Y_MEAN])
            out[3], out[4], out[5] = np.int64(word), high, np.int64(fits)
    elif kind == r.MOMENTS:
        if specials[0] or specials[1] or specials[2]:
            out[0] = out[1] = _bits(np.nan)
        elif n > 0:
            out[1] = _bits(read.read_variance(limbs, low, squares, d[y + r.Y_SQUARES_LOW], 0, n, 0))
            if n > 1:
                out[0] = _bits(read.read_variance(limbs, low, squares, d[y + r.Y_SQUARES_LOW], 0, n, 1))
    elif specials[0] or specials[1] or specials[2]:
        out[0] = out[1] = _bits(_special(specials[0], specials[1], specials[2]))
    elif n > 0:
        out[0] = _bits(read.read_sum(limbs, 0, low))
        if d[y + r.Y_MEAN]:
            out[1] = _bits(read.read_mean(limbs, 0, low, n))


@nb.njit(s.LIMBS(s.integer, s.integer, s.integer), cache=True)
def _copy(address, width, key):  # type: ignore[no-untyped-def]
    """The limbs of a key, by themselves."""
    out = np.empty((1, width), np.int64)
    kept = memory.lines(address, width)
    for j in range(width):
        out[0, j] = kept[key, j]
    return out


@nb.njit(
    s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.INTS, s.LIMBS), cache=True
)
def _sums(d, y, key, enter, enter_ends, leave, leave_ends, count, found, counted, out):  # type: ignore[no-untyped-def]
    limbs = _copy(d[y + r.Y_STATE], d[y + r.Y_WIDTH], key)
    squares = _copy(d[y + r.Y_SQUARES], d[y + r.Y_SQUARES_WIDTH], key)
    specials = np.zeros(3, np.int64)
    if d[y + r.Y_SPECIALS]:
        specials[:] = memory.lines(d[y + r.Y_SPECIALS], 3)[key]
    for i in range(count):
        while enter < enter_ends[i]:
            _add(d, y, limbs, squares, specials, found[enter], 1)
            enter += 1
        while leave < leave_ends[i]:
            _add(d, y, limbs, squares, specials, found[leave], -1)
            leave += 1
        _read_sum(d, y, limbs, squares, specials, counted[i], out[i])


@nb.njit(nb.types.int32(s.INTS, s.integer, s.integer, s.integer), cache=True)
def _front(d, y, key, stop):  # type: ignore[no-untyped-def]
    """The first candidate of a key that has not left."""
    node, nodes, links = memory.keys(d[y + r.Y_STATE])[key], memory.ints(d[y + r.Y_NODES]), memory.pairs(d[y + r.Y_LINKS])
    while node != NIL and nodes[node] < stop:
        node = links[node, 1]
    return node


@nb.njit(s.integer(s.INTS, s.integer, s.integer), cache=True)
def _value(d, y, find):  # type: ignore[no-untyped-def]
    return rows.word(d, find >> RUN_BITS, d[y + r.Y_VALUE], find & PLACES)


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.boolean, s.INTS, s.integer, s.INTS, s.LIMBS), cache=True)
def _queues(d, y, key, enter, enter_ends, leaves, leave_stops, count, found, out):  # type: ignore[no-untyped-def]
    """Candidates that have come since the frontier queue up beside those that are kept; the better one of both fronts is read.

    What has left is passed over by its number: rows leave in the order in which they stand.
    """
    mode, ranks = d[y + r.Y_MODE], memory.sized(d[y + r.Y_RANKS], d[y + r.Y_N_RANKS])
    shown, width = d[y + r.Y_SHOWN] >= 0, 2 if d[y + r.Y_SHOWN] >= 0 else 1
    held, codes = memory.lines(d[y + r.Y_HELD], width), memory.codes(d[y + r.Y_CODES])
    queue = np.empty(max(1, enter_ends[count - 1] - enter), np.int64)  # finds
    first, last = 0, 0
    for i in range(count):
        stop = leave_stops[i] if leaves else 0
        while enter < enter_ends[i]:
            run, at = found[enter] >> RUN_BITS, found[enter] & PLACES
            what = rows.code(d, run, d[y + r.Y_CODE], at)
            if what != ABSENT and (what != NULL or mode >= OLDEST):
                value = rows.word(d, run, d[y + r.Y_VALUE], at)
                while last > first and _beats(value, _value(d, y, queue[last - 1]), mode, ranks):
                    last -= 1
                queue[last] = found[enter]
                last += 1
            enter += 1
        while first < last and rows.run_at(d, queue[first] >> RUN_BITS)[r.R_BASE] + (queue[first] & PLACES) < stop:
            first += 1
        node = _front(d, y, key, stop)
        out[i, 0], out[i, 1] = 0, NULL
        if first < last and (node == NIL or _beats(_value(d, y, queue[first]), held[node, 0], mode, ranks)):
            run, at = queue[first] >> RUN_BITS, queue[first] & PLACES
            out[i, 0] = rows.word(d, run, d[y + (r.Y_SHOWN if shown else r.Y_VALUE)], at)
            out[i, 1] = rows.code(d, run, d[y + (r.Y_SHOWN_CODE if shown else r.Y_CODE)], at)
        elif node != NIL:
            out[i, 0], out[i, 1] = held[node, width - 1], codes[node]


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer, s.INTS), cache=True)
def room_for(d, y, enter, stop, found):  # type: ignore[no-untyped-def]
    """Whether the sums of a tally have limbs for all that enters; what is asked for, if not."""
    if d[y + r.Y_KIND] == r.DOUBLE_SUMS or d[y + r.Y_KIND] == r.MOMENTS:
        for j in range(enter, stop):
            asked = moves.ready(d, y, found[j] >> RUN_BITS, found[j] & PLACES)
            if asked != r.DONE:
                return asked
    return r.DONE


@nb.njit(
    s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.integer, s.INTS, s.INTS, s.integer, s.INTS, s.INTS, s.LIMBS),
    cache=True,
)
def read_tally(  # type: ignore[no-untyped-def]
    d, y, key, enter, enter_ends, leave, leave_ends, leave_stops, count, found, counted, out
):
    """The readings of a tally at some events. `leave` is below 0 where nothing leaves; `counted`: of how many values."""
    kind = d[y + r.Y_KIND]
    if kind == r.QUEUES:
        _queues(d, y, key, enter, enter_ends, leave >= 0, leave_stops, count, found, out)
    elif kind == r.COUNTS:
        _counts(d, y, key, enter, enter_ends, leave, leave_ends, count, found, out)
    elif kind == r.DISTINCTS:
        _distincts(d, y, key, enter, enter_ends, leave, leave_ends, count, found, out)
    else:
        _sums(d, y, key, enter, enter_ends, leave, leave_ends, count, found, counted, out)
