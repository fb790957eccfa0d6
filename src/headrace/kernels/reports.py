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
