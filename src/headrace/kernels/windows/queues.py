"""A queue of candidates per key, where the result is one of the rows: the least, the greatest, the oldest, the newest.

All queues lie in one pool of nodes, doubly linked by index. For the least and the greatest they are kept monotone (a row that a
later one beats can never be the result), so they are short for most data; for the oldest one keeps every row, for the newest
only that. A node has the value that is compared, and behind it the one that is shown, where that is another.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import ABSENT, NULL

LEAST, GREATEST, EVERY, OLDEST, NEWEST = 0, 1, 2, 3, 4  # from OLDEST on NULL counts too
NIL = np.int32(-1)


@nb.njit(inline="always")
def _beats(new, old, mode, ranks):  # type: ignore[no-untyped-def]
    """Whether the candidate `old` can never again be the result once `new` is there."""
    if mode in (EVERY, OLDEST):
        return False
    if mode == NEWEST:
        return True
    a, b = (ranks[new], ranks[old]) if len(ranks) else (new, old)
    return a <= b if mode == LEAST else a >= b


@nb.njit(cache=True)
def _push(key, row, value, code, shown, mode, ranks, head, tail, nodes, values, codes, links, free):  # type: ignore[no-untyped-def]
    if code == ABSENT or (code == NULL and mode < OLDEST):
        return
    while tail[key] != NIL and _beats(value[0], values[tail[key], 0], mode, ranks):
        last = tail[key]
        tail[key] = links[last, 0]
        if tail[key] == NIL:
            head[key] = NIL
        else:
            links[tail[key], 1] = NIL
        free[0] -= 1  # free[0] points at the top of the stack of free nodes that follows it
        free[1 + free[0]] = last
    node = free[1 + free[0]]
    free[0] += 1
    nodes[node], codes[node] = row, shown
    values[node, :] = value
    links[node, 0], links[node, 1] = tail[key], NIL
    if tail[key] == NIL:
        head[key] = node
    else:
        links[tail[key], 1] = node
    tail[key] = node


@nb.njit(cache=True)
def _pop(key, row, head, tail, nodes, links, free):  # type: ignore[no-untyped-def]
    first = head[key]
    if first == NIL or nodes[first] != row:
        return
    head[key] = links[first, 1]
    if head[key] == NIL:
        tail[key] = NIL
    else:
        links[head[key], 0] = NIL
    free[0] -= 1
    free[1 + free[0]] = first


@nb.njit(
    s.INTS(
        s.keys, s.ints, s.ints, s.keys, s.ints, s.int_rows, s.codes, s.codes, s.keys, s.ints, s.integer, s.ints,
        s.KEYS, s.KEYS, s.INTS, s.LIMBS, s.CODES, s.LINKS, s.INTS, s.boolean, s.INTS, s.CODES,
    ),
    cache=True,
)  # fmt: skip
def queues(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_row: np.ndarray, enter_value: np.ndarray, enter_code: np.ndarray,
    enter_shown: np.ndarray, leave_key: np.ndarray, leave_row: np.ndarray,
    mode: int, ranks: np.ndarray, head: np.ndarray, tail: np.ndarray,
    nodes: np.ndarray, values: np.ndarray, codes: np.ndarray, links: np.ndarray, free: np.ndarray,
    whole: bool, ends: np.ndarray, out_code: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Push what enters, pop what leaves, and give the front at every event. `free` must hold a node for every row that enters.

    `enter_code` says what is compared, `enter_shown` what is shown. If `whole`, all values of the queue are given, those of one
    event behind those of the other, and in `ends` where they end.
    """
    shown, events = values.shape[1] - 1, len(event_key)
    out = np.zeros(max(64, events) if whole else events, np.int64)
    entered, left, total = 0, 0, 0
    for i in range(events + 1):
        rest = i == events  # what moves behind the last event
        while entered < (len(enter_key) if rest else enter_end[i]):
            _push(enter_key[entered], enter_row[entered], enter_value[entered], enter_code[entered],
                  enter_shown[entered], mode, ranks, head, tail, nodes, values, codes, links, free)  # fmt: skip
            entered += 1
        while left < (len(leave_key) if rest else leave_end[i]):
            _pop(leave_key[left], leave_row[left], head, tail, nodes, links, free)
            left += 1
        if rest:
            break
        node = head[event_key[i]]
        if not whole:
            out_code[i] = NULL
            if node != NIL:
                out[i], out_code[i] = values[node, shown], codes[node]
            continue
        while node != NIL:
            if total == len(out):
                out = np.concatenate((out, np.empty(total, np.int64)))
            out[total] = values[node, shown]
            total += 1
            node = links[node, 1]
        ends[i] = total
    return out[:total].copy() if whole else out


@nb.njit(s.INTS(s.keys, s.KEYS, s.LINKS), cache=True)
def lengths(keys: np.ndarray, head: np.ndarray, links: np.ndarray) -> np.ndarray:
    """How many candidates each key has."""
    out = np.zeros(len(keys), np.int64)
    for i in range(len(keys)):
        node = head[keys[i]]
        while node != NIL:
            out[i] += 1
            node = links[node, 1]
    return out


@nb.njit((s.keys, s.KEYS, s.INTS, s.LIMBS, s.CODES, s.LINKS, s.integer), cache=True)
def dump(
    keys: np.ndarray, head: np.ndarray, nodes: np.ndarray, values: np.ndarray, codes: np.ndarray, links: np.ndarray, total: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The queues of these keys one after the other: (rows, values, codes)."""
    rows, held, kinds = np.empty(total, np.int64), np.empty((total, values.shape[1]), np.int64), np.empty(total, np.uint8)
    at = 0
    for key in keys:
        node = head[key]
        while node != NIL:
            rows[at], kinds[at] = nodes[node], codes[node]
            held[at, :] = values[node]
            at += 1
            node = links[node, 1]
    return rows, held, kinds


@nb.njit(s.nothing(s.keys, s.KEYS, s.KEYS, s.LINKS, s.INTS), cache=True)
def clear(keys: np.ndarray, head: np.ndarray, tail: np.ndarray, links: np.ndarray, free: np.ndarray) -> None:
    for key in keys:
        node = head[key]
        while node != NIL:
            free[0] -= 1
            free[1 + free[0]] = node
            node = links[node, 1]
        head[key] = NIL
        tail[key] = NIL


@nb.njit(
    s.nothing(s.keys, s.ints, s.ints, s.int_rows, s.codes, s.KEYS, s.KEYS, s.INTS, s.LIMBS, s.CODES, s.LINKS, s.INTS), cache=True
)
def load(
    keys: np.ndarray, sizes: np.ndarray, rows: np.ndarray, held: np.ndarray, kinds: np.ndarray,
    head: np.ndarray, tail: np.ndarray, nodes: np.ndarray, values: np.ndarray, codes: np.ndarray, links: np.ndarray,
    free: np.ndarray,
) -> None:  # fmt: skip
    """Append dumped queues to the (empty) queues of these keys, as they are."""
    at = 0
    for i in range(len(keys)):
        key = keys[i]
        for _ in range(sizes[i]):
            node = free[1 + free[0]]
            free[0] += 1
            nodes[node], codes[node] = rows[at], kinds[at]
            values[node, :] = held[at]
            links[node, 0], links[node, 1] = tail[key], NIL
            if tail[key] == NIL:
                head[key] = node
            else:
                links[tail[key], 1] = node
            tail[key] = node
            at += 1
