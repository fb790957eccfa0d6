"""Values of a key in order, each with how many rows have it, so that any rank can be read: a treap per key.

All treaps lie in one pool of nodes, linked by index. A node stands above those with a lower priority, which is a hash of its
value: the shape follows from the values that are there, not from the order in which they came.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.codes import NULL

NIL = np.int32(-1)
LEFT, RIGHT = 0, 1
ROWS, BELOW = 0, 1  # of `counts`: rows with the value of a node, rows with the values of all nodes from it down


@nb.njit(inline="always")
def _before(a, b, ranks):  # type: ignore[no-untyped-def]
    return ranks[a] < ranks[b] if len(ranks) else a < b


@nb.njit(cache=True)
def _priority(value: int) -> int:
    word = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(32))


@nb.njit(inline="always")
def _below(node, counts, links):  # type: ignore[no-untyped-def]
    total = counts[node, ROWS]
    for side in (LEFT, RIGHT):
        if links[node, side] != NIL:
            total += counts[links[node, side], BELOW]
    counts[node, BELOW] = total


@nb.njit(cache=True)
def _move(key, value, by, ranks, root, values, counts, links, free, path):  # type: ignore[no-untyped-def]
    """Rows of a value come, or go. `path` is room for the nodes on the way down."""
    depth, node = 0, root[key]
    while node != NIL and values[node] != value:
        path[depth] = node
        depth += 1
        node = links[node, RIGHT if _before(values[node], value, ranks) else LEFT]
    if node == NIL:
        node = free[1 + free[0]]
        free[0] += 1
        values[node], counts[node, ROWS], counts[node, BELOW] = value, by, by
        links[node, LEFT], links[node, RIGHT] = NIL, NIL
        _hang(key, node, depth, root, links, values, path, ranks)
        # Turn it up past those with a lower priority.
        while depth > 0 and _priority(values[path[depth - 1]]) < _priority(value):
            above = path[depth - 1]
            side = LEFT if links[above, LEFT] == node else RIGHT
            links[above, side] = links[node, 1 - side]
            links[node, 1 - side] = above
            _below(above, counts, links)
            depth -= 1
            _hang(key, node, depth, root, links, values, path, ranks)
        _below(node, counts, links)
    else:
        counts[node, ROWS] += by
        counts[node, BELOW] += by
        if counts[node, ROWS] == 0:
            depth = _drop(key, node, depth, root, values, counts, links, free, path)
    while depth > 0:
        depth -= 1
        _below(path[depth], counts, links)


@nb.njit(cache=True)
def _hang(key, node, depth, root, links, values, path, ranks):  # type: ignore[no-untyped-def]
    """Under the last node of the path, or at the root."""
    if depth == 0:
        root[key] = node
    else:
        above = path[depth - 1]
        links[above, RIGHT if _before(values[above], values[node], ranks) else LEFT] = node


@nb.njit(cache=True)
def _drop(key, node, depth, root, values, counts, links, free, path):  # type: ignore[no-untyped-def]
    """Turn a node down until nothing is below it, and take it out; gives how long the path to it was then."""
    gone = node
    while True:
        left, right = links[gone, LEFT], links[gone, RIGHT]
        if left == NIL or right == NIL:
            heir = right if left == NIL else left
        elif _priority(values[left]) > _priority(values[right]):
            heir = left
        else:
            heir = right
        if depth == 0:
            root[key] = heir
        else:
            above = path[depth - 1]
            links[above, LEFT if links[above, LEFT] == gone else RIGHT] = heir
        if left == NIL or right == NIL:
            break
        side = RIGHT if heir == left else LEFT  # of the heir, where what goes hangs on
        links[gone, 1 - side] = links[heir, side]
        links[heir, side] = gone
        path[depth] = heir
        depth += 1
    free[0] -= 1
    free[1 + free[0]] = gone
    return depth


@nb.njit(cache=True)
def _at(rank, node, values, counts, links):  # type: ignore[no-untyped-def]
    """The value at a rank, from 0 on."""
    while True:
        before = counts[links[node, LEFT], BELOW] if links[node, LEFT] != NIL else 0
        if rank < before:
            node = links[node, LEFT]
        elif rank < before + counts[node, ROWS]:
            return values[node]
        else:
            rank -= before + counts[node, ROWS]
            node = links[node, RIGHT]


@nb.njit(
    s.nothing(
        s.keys, s.ints, s.ints, s.keys, s.ints, s.codes, s.keys, s.ints, s.codes, s.floats, s.flags, s.ints,
        s.KEYS, s.INTS, s.LIMBS, s.LINKS, s.INTS, s.LIMBS, s.LIMBS, s.INTS,
    ),
    cache=True,
)  # fmt: skip
def ranks(
    event_key: np.ndarray, enter_end: np.ndarray, leave_end: np.ndarray,
    enter_key: np.ndarray, enter_value: np.ndarray, enter_code: np.ndarray,
    leave_key: np.ndarray, leave_value: np.ndarray, leave_code: np.ndarray,
    shares: np.ndarray, between: np.ndarray, order: np.ndarray,
    root: np.ndarray, values: np.ndarray, counts: np.ndarray, links: np.ndarray, free: np.ndarray,
    low: np.ndarray, high: np.ndarray, n: np.ndarray,
) -> None:  # fmt: skip
    """Rows enter and leave; at every event the values on both sides of each share of its n rows are read.

    Where it is not `between`, both are the first value with at least that share of the rows up to it. `order` has the places of
    values that are numbers of a table.
    """
    path = np.empty(len(values) + 1, np.int32)
    entered, left = 0, 0
    for i in range(len(event_key) + 1):
        last = i == len(event_key)
        while entered < (len(enter_key) if last else enter_end[i]):
            if enter_code[entered] < NULL:
                _move(enter_key[entered], enter_value[entered], 1, order, root, values, counts, links, free, path)
            entered += 1
        while left < (len(leave_key) if last else leave_end[i]):
            if leave_code[left] < NULL:
                _move(leave_key[left], leave_value[left], -1, order, root, values, counts, links, free, path)
            left += 1
        if last:
            break
        top = root[event_key[i]]
        n[i] = 0 if top == NIL else counts[top, BELOW]
        for j in range(len(shares) if n[i] else 0):
            if between[j]:
                place = (n[i] - 1) * shares[j]
                low[i, j] = _at(np.int64(np.floor(place)), top, values, counts, links)
                high[i, j] = _at(np.int64(np.ceil(place)), top, values, counts, links)
            else:
                rank = np.int64(np.ceil(n[i] * shares[j])) - 1
                low[i, j] = _at(max(rank, 0), top, values, counts, links)


@nb.njit((s.keys, s.KEYS, s.INTS, s.LIMBS, s.LINKS), cache=True)
def dump(
    keys: np.ndarray, root: np.ndarray, values: np.ndarray, counts: np.ndarray, links: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of these keys in order, one key behind the other: (how many of each key, values, rows of each)."""
    sizes = np.zeros(len(keys), np.int64)
    held, rows = np.empty(64, np.int64), np.empty(64, np.int64)
    path, total = np.empty(len(values) + 1, np.int32), 0
    for i in range(len(keys)):
        begin, depth, node = total, 0, root[keys[i]]
        while depth > 0 or node != NIL:
            while node != NIL:
                path[depth] = node
                depth += 1
                node = links[node, LEFT]
            depth -= 1
            node = path[depth]
            if total == len(held):
                held, rows = np.concatenate((held, held)), np.concatenate((rows, rows))
            held[total], rows[total] = values[node], counts[node, ROWS]
            total += 1
            node = links[node, RIGHT]
        sizes[i] = total - begin
    return sizes, held[:total].copy(), rows[:total].copy()


@nb.njit(s.nothing(s.keys, s.KEYS, s.LINKS, s.INTS, s.integer), cache=True)
def clear(keys: np.ndarray, root: np.ndarray, links: np.ndarray, free: np.ndarray, size: int) -> None:
    path = np.empty(size + 1, np.int32)
    for key in keys:
        depth = 0
        if root[key] != NIL:
            path[0], depth = root[key], 1
        root[key] = NIL
        while depth > 0:
            depth -= 1
            node = path[depth]
            for side in (LEFT, RIGHT):
                if links[node, side] != NIL:
                    path[depth] = links[node, side]
                    depth += 1
            free[0] -= 1
            free[1 + free[0]] = node


@nb.njit(s.nothing(s.keys, s.ints, s.ints, s.ints, s.ints, s.KEYS, s.INTS, s.LIMBS, s.LINKS, s.INTS), cache=True)
def load(
    keys: np.ndarray, sizes: np.ndarray, held: np.ndarray, rows: np.ndarray, order: np.ndarray,
    root: np.ndarray, values: np.ndarray, counts: np.ndarray, links: np.ndarray, free: np.ndarray,
) -> None:  # fmt: skip
    """Put dumped values into the (empty) treaps of these keys."""
    path = np.empty(len(values) + 1, np.int32)
    at = 0
    for i in range(len(keys)):
        for _ in range(sizes[i]):
            _move(keys[i], held[at], rows[at], order, root, values, counts, links, free, path)
            at += 1
