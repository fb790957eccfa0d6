"""The open rows in their arrays, and runs of rows wherever they lie: open, in the open chunk, in sealed chunks."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import ABSENT, MINUS_INFINITY, NAN, NULL, PLUS_INFINITY
from headrace.kernels.single import memory
from headrace.kernels.single import record as r

_SIGN_BITS = np.int64(0x7FFFFFFFFFFFFFFF)


@nb.njit(s.INTS(s.INTS, s.integer), cache=True)
def run_at(d, run):  # type: ignore[no-untyped-def]
    """The line of a run, by its address."""
    return memory.ints(d[r.RUNS] + 8 * run * d[r.RUN_SIZE])


@nb.njit(s.integer(s.INTS, s.integer, s.integer), cache=True)
def column(d, run, index):  # type: ignore[no-untyped-def]
    """The address of a column of a run."""
    return run_at(d, run)[r.R_COLUMNS + index]


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer), cache=True)
def word(d, run, index, at):  # type: ignore[no-untyped-def]
    """A value of a row as a word, however wide its column is."""
    width = d[d[r.COLUMNS] + index * r.COLUMN + r.C_WIDTH]
    address = column(d, run, index)
    if width == 8:
        return memory.ints(address)[at]
    if width == 4:
        return np.int64(memory.keys(address)[at])
    return np.int64(memory.codes(address)[at])


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer), cache=True)
def code(d, run, index, at):  # type: ignore[no-untyped-def]
    """What a value is; without a column every row counts."""
    return np.int64(memory.codes(column(d, run, index))[at]) if index >= 0 else 0


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer), cache=True)
def upper(ts, low, high, bound):  # type: ignore[no-untyped-def]
    """The first of the rows low..high later than a time."""
    while low < high:
        middle = (low + high) // 2
        if ts[middle] <= bound:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(s.integer(s.INTS, s.integer), cache=True)
def run_of(d, row):  # type: ignore[no-untyped-def]
    """The run that has a row, by its number; -1 if that is a sealed chunk which is not here."""
    if row >= d[r.FIRST]:
        return r.OPEN_RUN
    if row >= run_at(d, r.LAST_RUN)[r.R_BASE]:
        return r.LAST_RUN
    last = upper(memory.ints(d[r.SEALED]), 0, d[r.N_SEALED], row) - 1
    run = np.int64(memory.keys(d[r.SEALED_RUNS])[last])
    if run < 0:
        d[r.DETAIL] = row
    return run


@nb.njit(s.integer(s.INTS), cache=True)
def find_place(d):  # type: ignore[no-untyped-def]
    """Where the event stands among the open rows, in the total order."""
    ts, high, low = memory.ints(d[r.OPEN_TS]), memory.ints(d[r.OPEN_HIGH]), memory.ints(d[r.OPEN_LOW])
    first, last = d[r.START], d[r.STOP]
    if last > first and ts[last - 1] < d[r.TS]:
        return last
    while first < last:
        middle = (first + last) // 2
        before = ts[middle] < d[r.TS]
        if ts[middle] == d[r.TS]:
            before = high[middle] < d[r.HIGH] or (high[middle] == d[r.HIGH] and low[middle] <= d[r.LOW])
        if before:
            first = middle + 1
        else:
            last = middle
    return first


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def _shift(d, place, stop):  # type: ignore[no-untyped-def]
    """Make room at a place: the rows from there on move back by one."""
    for name in (r.OPEN_TS, r.OPEN_HIGH, r.OPEN_LOW, r.OPEN_WANTS):
        own = memory.ints(d[name])
        for i in range(stop, place, -1):
            own[i] = own[i - 1]
    for c in range(d[r.N_COLUMNS]):
        address, width = column(d, r.OPEN_RUN, c), d[d[r.COLUMNS] + c * r.COLUMN + r.C_WIDTH]
        if width == 8:
            wide = memory.ints(address)
            for i in range(stop, place, -1):
                wide[i] = wide[i - 1]
        elif width == 4:
            half = memory.keys(address)
            for i in range(stop, place, -1):
                half[i] = half[i - 1]
        else:
            narrow = memory.codes(address)
            for i in range(stop, place, -1):
                narrow[i] = narrow[i - 1]


@nb.njit(s.integer(nb.types.float64), cache=True)
def to_ordered(value):  # type: ignore[no-untyped-def]
    """As in `kernels/keys/order`."""
    bits = np.int64(0x7FF8000000000000) if np.isnan(value) else np.float64(value + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN_BITS)


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def _put_vector(d, v, place):  # type: ignore[no-untyped-def]
    """The values of a vector, and their code."""
    if d[v + r.V_CODE] < 0:
        return
    kind, at, first = d[v + r.V_KIND], d[v + r.V_INPUT], d[v + r.V_COLUMN]
    what = NULL if at >= 0 and d[at] == 0 else 0
    if kind == r.DOUBLE:
        value = np.int64(d[at + 1]).view(np.float64)
        if not np.isfinite(value):
            what = NAN if np.isnan(value) else PLUS_INFINITY if value > 0 else MINUS_INFINITY
            value = 0.0
        memory.floats(column(d, r.OPEN_RUN, first))[place] = value
    elif kind == r.DECIMAL:
        memory.ints(column(d, r.OPEN_RUN, first))[place] = d[at + 2]
        memory.ints(column(d, r.OPEN_RUN, first + 1))[place] = d[at + 1]
    elif kind == r.PLAIN:
        memory.ints(column(d, r.OPEN_RUN, first))[place] = d[at + 1]
    elif kind == r.ORDERED_FLOAT:
        memory.ints(column(d, r.OPEN_RUN, first))[place] = to_ordered(np.int64(d[at + 1]).view(np.float64))
    if d[r.TRUTH] & d[v + r.V_NEEDS] != d[v + r.V_NEEDS]:
        what = ABSENT
    memory.codes(column(d, r.OPEN_RUN, d[v + r.V_CODE]))[place] = what


@nb.njit(s.nothing(s.INTS), cache=True)
def insert(d):  # type: ignore[no-untyped-def]
    """Put the event where it stands."""
    place, stop = d[r.PLACE], d[r.STOP]
    if place < stop:
        _shift(d, place, stop)
    memory.ints(d[r.OPEN_TS])[place] = d[r.TS]
    memory.ints(d[r.OPEN_HIGH])[place] = d[r.HIGH]
    memory.ints(d[r.OPEN_LOW])[place] = d[r.LOW]
    wants = 0
    for o in range(d[r.N_OUTPUTS]):
        needs = d[d[r.OUTPUTS] + o * r.OUTPUT + r.O_NEEDS]
        if d[r.TRUTH] & needs == needs:
            wants |= 1 << o
    memory.ints(d[r.OPEN_WANTS])[place] = wants
    for t in range(d[r.N_TABLES]):
        memory.keys(column(d, r.OPEN_RUN, t))[place] = d[d[r.TABLES] + t * r.TABLE + r.T_NUMBER]
    for v in range(d[r.N_VECTORS]):
        _put_vector(d, d[r.VECTORS] + v * r.VECTOR, place)
    d[r.STOP] = stop + 1
    run_at(d, r.OPEN_RUN)[r.R_COUNT] = stop + 1


@nb.njit(s.nothing(s.INTS), cache=True)
def store_first(d):  # type: ignore[no-untyped-def]
    """The first open row, behind those of the open chunk."""
    at, last = d[r.START], run_at(d, r.LAST_RUN)
    to = last[r.R_COUNT]
    memory.ints(last[r.R_TS])[to] = memory.ints(d[r.OPEN_TS])[at]
    for c in range(d[r.N_COLUMNS]):
        source, target = column(d, r.OPEN_RUN, c), column(d, r.LAST_RUN, c)
        width = d[d[r.COLUMNS] + c * r.COLUMN + r.C_WIDTH]
        if width == 8:
            memory.ints(target)[to] = memory.ints(source)[at]
        elif width == 4:
            memory.keys(target)[to] = memory.keys(source)[at]
        else:
            memory.codes(target)[to] = memory.codes(source)[at]
    last[r.R_COUNT] = to + 1
