"""All metrics at some of the open rows, seen from the frontier: what the batch path finds in one pass, for few events."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL
from headrace.kernels.single import memory, readings, rows
from headrace.kernels.single import record as r
from headrace.kernels.single.finds import scan

_SIGN_BITS = np.int64(0x7FFFFFFFFFFFFFFF)
_READINGS = nb.types.Array(nb.types.int64, 3, "C")  # by tally, by event


@nb.njit(s.boolean(s.word, s.integer, s.integer, s.word), cache=True)
def _within(low, high, limit, limit_too):  # type: ignore[no-untyped-def]
    """Whether a number of 128 bits is at most so far from 0, either way."""
    if high < 0:
        low = ~low + np.uint64(1)
        high = ~high + (1 if low == 0 else 0)
    return 0 <= high < limit or (high == limit and low <= limit_too)


@nb.njit(s.nothing(s.INTS, s.integer, _READINGS, s.integer, s.INTS, s.integer), cache=True)
def _metric(d, m, raw, event, out, at):  # type: ignore[no-untyped-def]
    """A result column at an event: `aggregates/metrics` for one value."""
    own = raw[d[m + r.M_TALLY], event]
    valid, first, second = True, own[d[m + r.M_PART]], np.int64(0)
    if d[m + r.M_CODE]:
        valid = own[1] != NULL
    elif d[m + r.M_COUNT] >= 0:
        valid = raw[d[m + r.M_COUNT], event, 0] >= d[m + r.M_LEAST]
    if d[m + r.M_FITS] >= 0 and own[d[m + r.M_FITS]] == 0:
        valid = False
    if d[m + r.M_PAIR]:
        second = own[d[m + r.M_PART] + 1]
        if not _within(np.uint64(first), second, d[m + r.M_LIMIT], np.uint64(d[m + r.M_LIMIT_TOO])):
            valid = False
    if d[m + r.M_ROOT]:
        first = np.float64(np.sqrt(np.int64(first).view(np.float64))).view(np.int64)
    if d[m + r.M_ORDERED]:
        first = first ^ ((first >> 63) & _SIGN_BITS)
    out[at], out[at + 1], out[at + 2] = np.int64(valid), first, second


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.INTS, s.INTS, s.integer, s.integer, _READINGS), cache=True)
def _of_key(d, group, key, places, events, count, which, raw):  # type: ignore[no-untyped-def]
    """Read all tallies of a group at the events of one key; what is asked for, if something is lacking."""
    scans, n_scans = d[r.SCANS], d[r.N_SCANS]
    found, used = memory.ints(d[r.MATCHES]), 0
    begins, ends, stops = np.empty(n_scans, np.int64), np.empty((n_scans, count), np.int64), np.empty((n_scans, count), np.int64)
    for i in range(n_scans):
        s = scans + i * r.SCAN
        if d[s + r.S_GROUP] == group:
            begins[i] = used
            used = scan(d, s, key, places, events, count, found, used, ends[i], stops[i])
            if used < 0:
                return -used
    nothing = np.full(count, -1, np.int64)
    counted, own = np.zeros(count, np.int64), np.empty((count, r.READING), np.int64)
    for i in range(d[r.N_TALLIES]):
        y = d[r.TALLIES] + i * r.TALLY
        if d[y + r.Y_GROUP] != group or not d[y + r.Y_FOR] & which:
            continue
        enter, leave = d[y + r.Y_ENTER], d[y + r.Y_LEAVE]
        asked = readings.room_for(d, y, begins[enter], ends[enter, count - 1], found)
        if asked != r.DONE:
            return asked
        if d[y + r.Y_COUNT] >= 0:
            for j in range(count):
                counted[j] = raw[d[y + r.Y_COUNT], events[j], 0]
        own[:] = 0
        if leave < 0:
            readings.read_tally(d, y, key, begins[enter], ends[enter], -1, nothing, nothing, count, found, counted, own)
        else:
            readings.read_tally(
                d, y, key, begins[enter], ends[enter], begins[leave], ends[leave], stops[leave], count, found, counted, own
            )
        for j in range(count):
            raw[i, events[j]] = own[j]
    return r.DONE


@nb.njit(s.integer(s.INTS, s.LIMBS, s.integer, s.integer), cache=True)
def evaluate(d, lines, count, which):  # type: ignore[no-untyped-def]
    """Read the metrics at open rows, whose places, ascending, begin these lines, into the words from the third on.

    Gives what is asked for, if something is lacking: then it is asked again.
    """
    raw = np.zeros((d[r.N_TALLIES], count, r.READING), np.int64)
    done, events, places = np.empty(count, np.bool_), np.empty(count, np.int64), lines[:count, 0].copy()
    for g in range(d[r.N_GROUPS]):
        group = d[d[r.GROUPS] + g]
        numbers = memory.keys(rows.column(d, r.OPEN_RUN, group))
        done[:] = False
        for i in range(count):
            if done[i]:
                continue
            key, n = np.int64(numbers[places[i]]), 0
            for j in range(i, count):
                if not done[j] and numbers[places[j]] == key:
                    events[n], done[j] = j, True
                    n += 1
            asked = _of_key(d, group, key, places, events, n, which, raw)
            if asked != r.DONE:
                return asked
    for i in range(count):
        for j in range(d[r.N_METRICS]):
            _metric(d, d[r.METRICS] + j * r.METRIC, raw, i, lines[i], 2 + j * r.SHOWN)
    return r.DONE
