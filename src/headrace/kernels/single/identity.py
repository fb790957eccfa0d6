"""The numbers of an event's keys: 128 bits as `kernels/keys/hashing` has them, looked up or added, and let go."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.keys.hashing import _HIGH, _LOW, _NULL, _mix
from headrace.kernels.keys.keytable import EMPTY, GONE
from headrace.kernels.single import memory
from headrace.kernels.single import record as r

ROUTE_BITS = 40
_ONE, _NAN = np.uint64(1), np.uint64(0x7FF8000000000000)


@nb.njit(s.word(s.integer, s.integer), cache=True)
def _word(bits, kind):  # type: ignore[no-untyped-def]
    """A word as it is hashed: one NaN, and -0.0 is 0.0, as in GROUP BY."""
    if kind != r.FLOAT:
        return np.uint64(bits)
    value = np.int64(bits).view(np.float64)
    return _NAN if np.isnan(value) else np.uint64(np.float64(value + 0.0).view(np.int64))


@nb.njit(cache=True)
def _mix_text(high, low, text, size):  # type: ignore[no-untyped-def]
    length = np.uint64(size + 1)
    one, two = _mix(high * _HIGH + length), _mix(low * _LOW + length)
    word, filled = np.uint64(0), 0
    for i in range(size):
        word |= np.uint64(text[i]) << np.uint64(8 * filled)
        filled += 1
        if filled == 8:
            one, two = _mix((one ^ word) * _HIGH), _mix((two ^ word) * _LOW)
            word, filled = np.uint64(0), 0
    return _mix((one ^ word) * _HIGH), _mix((two ^ word) * _LOW)


@nb.njit(nb.types.UniTuple(s.word, 2)(s.INTS, s.integer, s.integer), cache=True)
def identity(d, inputs, count):  # type: ignore[no-untyped-def]
    """The 128 bits of some inputs, each listed as its place and how it lies there."""
    high, low = _HIGH, _LOW
    for i in range(count):
        at, kind = d[inputs + 2 * i], d[inputs + 2 * i + 1]
        if d[at] == 0:
            parts, flag = (2, np.uint64(0)) if kind == r.PAIR else (1, np.uint64(0))
            if kind == r.TEXT_BYTES:
                high, low = _mix((high + _NULL) * _HIGH), _mix((low + _NULL) * _LOW)
                continue
            for _ in range(parts):
                high, low = _mix((high + _NULL) * _HIGH + flag), _mix((low + _NULL) * _LOW + flag)
        elif kind == r.TEXT_BYTES:
            high, low = _mix_text(high, low, memory.codes(d[r.TEXT] + d[at + 1]), d[at + 2])
        else:
            for part in range(2 if kind == r.PAIR else 1):
                word = _word(d[at + 1 + part], kind)
                high, low = _mix((high + word) * _HIGH + _ONE), _mix((low + word) * _LOW + _ONE)
    return high, low


@nb.njit(nb.types.UniTuple(nb.types.uint64, 2)(s.integer, s.integer, s.integer), cache=True)
def identity_at(address: int, inputs: int, count: int) -> tuple[int, int]:
    """The same, of a record at an address."""
    return identity(memory.ints(address), inputs, count)


@nb.njit(s.integer(s.INTS, s.integer), cache=True)
def number(d, t):  # type: ignore[no-untyped-def]
    """Find the number of the event's key in the table at t, or add it; what is asked for, if that cannot be."""
    high, low = identity(d, d[t + r.T_INPUTS], d[t + r.T_N_INPUTS])
    d[t + r.T_HASH], d[t + r.T_HASH_TOO] = np.int64(high), np.int64(low)
    slots, mask = memory.keys(d[t + r.T_SLOTS]), np.uint64(d[t + r.T_SLOT_COUNT] - 1)
    highs, lows = memory.words(d[t + r.T_HIGH]), memory.words(d[t + r.T_LOW])
    at = high & mask
    while slots[at] != EMPTY:
        key = slots[at]
        if key >= 0 and highs[key] == high and lows[key] == low:
            d[t + r.T_NUMBER] = key
            return r.DONE
        at = (at + _ONE) & mask
    if d[t + r.T_VALUES]:
        return r.NEW_VALUE
    full = d[t + r.T_FREE_COUNT] == 0 and d[t + r.T_COUNT] == d[t + r.T_CAPACITY]
    if full or 2 * (d[t + r.T_USED] + 1) > d[t + r.T_SLOT_COUNT]:
        return r.MORE_KEYS
    if d[t + r.T_FREE_COUNT] > 0:
        d[t + r.T_FREE_COUNT] -= 1
        found = np.int64(memory.keys(d[t + r.T_FREE])[d[t + r.T_FREE_COUNT]])
    else:
        found = d[t + r.T_COUNT]
        d[t + r.T_COUNT] += 1
    d[t + r.T_USED] += 1
    highs[found], lows[found], slots[at] = high, low, found
    memory.flags(d[t + r.T_LIVE])[found] = True
    if d[t + r.T_ROUTES]:
        route, _ = identity(d, d[r.ROUTE], d[r.N_ROUTE])
        memory.routes(d[t + r.T_ROUTES])[found] = np.uint32(route >> np.uint64(ROUTE_BITS))
    d[t + r.T_NUMBER] = found
    return r.DONE


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def touch(d, t, number):  # type: ignore[no-untyped-def]
    """It has changed, and must be saved."""
    memory.flags(d[t + r.T_PAGES])[number] = True


@nb.njit(s.nothing(s.INTS, s.integer), cache=True)
def hold(d, t):  # type: ignore[no-untyped-def]
    """The event holds its number."""
    memory.ints(d[t + r.T_REFERENCES])[d[t + r.T_NUMBER]] += 1
    touch(d, t, d[t + r.T_NUMBER])


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def let_go(d, t, number):  # type: ignore[no-untyped-def]
    """A row holds it no longer."""
    references = memory.ints(d[t + r.T_REFERENCES])
    references[number] -= 1
    live = memory.flags(d[t + r.T_LIVE])
    if not d[t + r.T_FREES] or references[number] != 0 or not live[number]:
        return
    slots, mask = memory.keys(d[t + r.T_SLOTS]), np.uint64(d[t + r.T_SLOT_COUNT] - 1)
    at = memory.words(d[t + r.T_HIGH])[number] & mask
    while slots[at] != number:
        at = (at + _ONE) & mask
    slots[at], live[number] = GONE, False
    memory.keys(d[t + r.T_FREE])[d[t + r.T_FREE_COUNT]] = number
    d[t + r.T_FREE_COUNT] += 1
