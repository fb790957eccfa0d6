"""When a window is looked at by the clock: which keys are in it then, and how far its rows have moved."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL

_INTS, _KEYS = nb.types.Array(nb.types.int64, 1, "C"), nb.types.Array(nb.types.int32, 1, "C")


@nb.njit(inline="always")
def _count(key, by, counts, live, place, n):  # type: ignore[no-untyped-def]
    """Count rows of a key; a key that comes or goes joins or leaves the first `n` of `live`. Gives the new n."""
    counts[key] += by
    if by > 0 and counts[key] == 1:
        live[n] = key
        place[key] = n
        n += 1
    elif by < 0 and counts[key] == 0:
        n -= 1
        last = live[n]
        live[place[key]] = last
        place[last] = place[key]
    return n


@nb.njit(inline="always")
def _longer(array, size):  # type: ignore[no-untyped-def]
    out = np.empty(size, array.dtype)
    out[: len(array)] = array
    return out


@nb.njit(
    nb.types.Tuple((_INTS, _KEYS, _INTS, _INTS))(
        s.ints, s.keys, s.codes, s.ints, s.keys, s.codes, s.ints, s.flags, s.integer, s.integer, s.integer, s.integer
    ),
    cache=True,
)
def looks(
    enter_at: np.ndarray, enter_key: np.ndarray, enter_code: np.ndarray,
    leave_at: np.ndarray, leave_key: np.ndarray, leave_code: np.ndarray,
    counts: np.ndarray, only: np.ndarray, start: int, stop: int, every: int, origin: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """At every look in start <= u < stop, the keys among `only` that are in the window.

    Rows enter at `enter_at` and leave at `leave_at`, both ascending; `counts` says how many of each key are in it before.
    Looks at which no key is in the window are passed over, however many there are.

    Gives for every look and key: the time, the key, how many rows have entered, and how many have left.
    """
    held = np.zeros(len(counts), np.int64)
    live, place = np.empty(len(counts) + 1, np.int32), np.empty(len(counts) + 1, np.int64)
    n = 0
    for key in range(len(counts)):
        if counts[key] > 0 and only[key]:
            held[key] = counts[key]
            live[n] = key
            place[key] = n
            n += 1
    size = 1024
    times, keys = np.empty(size, np.int64), np.empty(size, np.int32)
    entered, left = np.empty(size, np.int64), np.empty(size, np.int64)
    out, e, x = 0, 0, 0
    u = origin - (origin - start) // every * every
    while u < stop:
        while e < len(enter_at) and enter_at[e] <= u:
            if enter_code[e] < NULL and only[enter_key[e]]:
                n = _count(enter_key[e], 1, held, live, place, n)
            e += 1
        while x < len(leave_at) and leave_at[x] <= u:
            if leave_code[x] < NULL and only[leave_key[x]]:
                n = _count(leave_key[x], -1, held, live, place, n)
            x += 1
        if n == 0:
            while e < len(enter_at) and not (enter_code[e] < NULL and only[enter_key[e]]):
                e += 1
            if e == len(enter_at):
                break
            u = origin - (origin - enter_at[e]) // every * every
            continue
        if out + n > size:
            size = max(2 * size, out + n)
            times, keys = _longer(times, size), _longer(keys, size)
            entered, left = _longer(entered, size), _longer(left, size)
        for i in range(n):
            times[out] = u
            keys[out] = live[i]
            entered[out] = e
            left[out] = x
            out += 1
        u += every
    return times[:out], keys[:out], entered[:out], left[:out]


@nb.njit(inline="always")
def _link(key, by, counts, heads, after, before, part):  # type: ignore[no-untyped-def]
    """Count rows of a key; one that comes or goes joins or leaves the list of its partition."""
    counts[key] += by
    p = part[key]
    if by > 0 and counts[key] == 1:
        after[key] = heads[p]
        before[key] = -1
        if heads[p] >= 0:
            before[heads[p]] = key
        heads[p] = key
    elif by < 0 and counts[key] == 0:
        if before[key] >= 0:
            after[before[key]] = after[key]
        else:
            heads[p] = after[key]
        if after[key] >= 0:
            before[after[key]] = before[key]


@nb.njit(
    nb.types.Tuple((_INTS, _KEYS))(s.keys, s.codes, s.keys, s.codes, s.ints, s.keys, s.integer, s.ints, s.ints, s.keys),
    cache=True,
)
def live(
    enter_key: np.ndarray, enter_code: np.ndarray, leave_key: np.ndarray, leave_code: np.ndarray, counts: np.ndarray,
    part: np.ndarray, parts: int, entered: np.ndarray, left: np.ndarray, asked: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """For every look, when so many rows have entered and so many left, the keys in the window that are of partition `asked`.

    `part` is the partition of every key. Gives for every look and key: which look, and the key.
    """
    held = counts.copy()
    heads = np.full(parts, -1, np.int32)
    after, before = np.empty(len(counts), np.int32), np.empty(len(counts), np.int32)
    for key in range(len(counts)):
        if counts[key] > 0:
            held[key] = 0
            _link(np.int32(key), 1, held, heads, after, before, part)
            held[key] = counts[key]
    size, out = 1024, 0
    looks, keys = np.empty(size, np.int64), np.empty(size, np.int32)
    e, x = 0, 0
    for i in range(len(entered)):
        while e < entered[i]:
            if enter_code[e] < NULL:
                _link(enter_key[e], 1, held, heads, after, before, part)
            e += 1
        while x < left[i]:
            if leave_code[x] < NULL:
                _link(leave_key[x], -1, held, heads, after, before, part)
            x += 1
        key = heads[asked[i]]
        while key >= 0:
            if out == size:
                size *= 2
                looks, keys = _longer(looks, size), _longer(keys, size)
            looks[out], keys[out] = i, key
            out += 1
            key = after[key]
    return looks[:out], keys[:out]


@nb.njit(s.nothing(s.keys, s.INTS, s.INTS), cache=True)
def ordinals(part: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
    """For every row, which one of its partition it is; `counts` says how many there were, and counts on."""
    for i in range(len(part)):
        counts[part[i]] += 1
        out[i] = counts[part[i]]
