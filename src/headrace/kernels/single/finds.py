"""Which rows of a key enter and leave windows between the frontier and some events: found once for all tallies."""

from __future__ import annotations

import numba as nb

from headrace.kernels import signatures as s
from headrace.kernels.single import memory, rows
from headrace.kernels.single import record as r

RUN_BITS = 40  # a find is a run, and above these bits a place in it
PLACES = (1 << RUN_BITS) - 1


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer, s.INTS, s.integer), cache=True)
def _among(d, run, group, low, high, key, found, used):  # type: ignore[no-untyped-def]
    """The rows low..high of a run that have the key; gives how many are found by now."""
    numbers, mark = memory.keys(rows.column(d, run, group)), run << RUN_BITS
    for at in range(low, high):
        if numbers[at] == key:
            found[used] = mark | at
            used += 1
    return used


@nb.njit(
    s.integer(s.INTS, s.integer, s.boolean, s.integer, s.INTS, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.INTS), cache=True
)
def _scan_open(d, group, peers, key, places, events, count, found, used, ends, stops):  # type: ignore[no-untyped-def]
    at, stop = d[r.START], d[r.STOP]
    ts = memory.ints(d[r.OPEN_TS])
    if used + stop - at > d[r.MATCHES_ROOM]:
        return -r.MORE_MATCHES
    for i in range(count):
        event = places[events[i]]
        to = rows.upper(ts, event, stop, ts[event]) if peers else event + 1
        used = _among(d, r.OPEN_RUN, group, at, to, key, found, used)
        at = max(at, to)
        ends[i], stops[i] = used, d[r.FIRST] + at - d[r.START]
    return used


@nb.njit(
    s.integer(s.INTS, s.integer, s.integer, s.integer, s.INTS, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.INTS), cache=True
)
def _scan_edge(d, edge, group, key, places, events, count, found, used, ends, stops):  # type: ignore[no-untyped-def]
    row, offset = d[edge + r.E_ROW], d[edge + r.E_OFFSET]
    total, times = d[r.FIRST] + d[r.STOP] - d[r.START], memory.ints(d[r.OPEN_TS])
    for i in range(count):
        bound = times[places[events[i]]] - offset
        while row < total:
            run = rows.run_of(d, row)
            if run < 0:
                return -r.A_CHUNK
            line = rows.run_at(d, run)
            at, size = row - line[r.R_BASE], line[r.R_COUNT]
            to = rows.upper(memory.ints(line[r.R_TS]), at, size, bound)
            if used + to - at > d[r.MATCHES_ROOM]:
                return -r.MORE_MATCHES
            used = _among(d, run, group, at, to, key, found, used)
            row = line[r.R_BASE] + to
            if to < size:
                break
        ends[i], stops[i] = used, row
    return used


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.INTS, s.INTS, s.integer, s.INTS, s.integer, s.INTS, s.INTS), cache=True)
def scan(d, s, key, places, events, count, found, used, ends, stops):  # type: ignore[no-untyped-def]
    """What has passed an edge, or come among the open rows, when each of the events is looked at; below 0: what is asked for.

    `ends` becomes how many are found up to each event, `stops` the number of the first row that has not passed then.
    """
    edge, group = d[s + r.S_EDGE], d[s + r.S_GROUP]
    if edge < 0:
        return _scan_open(d, group, d[s + r.S_PEERS] != 0, key, places, events, count, found, used, ends, stops)
    return _scan_edge(d, edge, group, key, places, events, count, found, used, ends, stops)
