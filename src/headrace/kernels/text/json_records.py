"""JSON text cut into values, and the case of its keys made that of the declared ones: bytes in, positions out."""

from __future__ import annotations

import numba as nb
import numpy as np
from numba import types

from headrace.kernels import signatures as s

BYTES = types.Array(types.uint8, 1, "C", readonly=True)
QUOTE, BACKSLASH, COMMA, COLON, CR, LF, SPACE, TAB = 34, 92, 44, 58, 13, 10, 32, 9
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93
GOOD, UNCLOSED = 0, 1
LEAF, STRUCT, ARRAY, MAP = range(4)
DEEPEST = 64


@nb.njit(cache=True)
def _string_end(data: np.ndarray, at: int, size: int) -> int:
    """Behind the quote that closes the string whose quote is here; behind the data if nothing closes it."""
    at += 1
    while at < size:
        if data[at] == QUOTE:
            return at + 1
        at += 2 if data[at] == BACKSLASH else 1
    return size + 1


@nb.njit(cache=True)
def _value_end(data: np.ndarray, at: int, size: int) -> int:
    """Behind the value that begins here; behind the data if nothing closes it."""
    if data[at] == QUOTE:
        return _string_end(data, at, size)
    if data[at] != OPEN_OBJECT and data[at] != OPEN_ARRAY:
        while at < size and data[at] != COMMA and data[at] != CLOSE_ARRAY and data[at] != LF and data[at] != OPEN_OBJECT:
            at += 1
        return at
    depth = 0
    while at < size:
        byte = data[at]
        if byte == QUOTE:
            at = _string_end(data, at, size)
            continue
        at += 1
        if byte in (OPEN_OBJECT, OPEN_ARRAY):
            depth += 1
        elif byte in (CLOSE_OBJECT, CLOSE_ARRAY):
            depth -= 1
            if depth == 0:
                return at
    return size + 1


@nb.njit(cache=True)
def _as_deep(data: np.ndarray, at: int, size: int) -> int:
    """The next line that opens an object as far from its left edge as the value that begins here; or the end of the data."""
    line = at
    while line > 0 and data[line - 1] != LF:
        line -= 1
    indent, here = at - line, at
    while here < size:
        while here < size and data[here] != LF:
            here += 1
        here += 1
        first = here
        while first < size and (data[first] == SPACE or data[first] == TAB):
            first += 1
        if first < size and first - here == indent and data[first] == OPEN_OBJECT:
            return first
    return size


@nb.njit(types.UniTuple(types.int64, 4)(BYTES, s.integer, s.boolean, s.integer, s.integer, s.LIMBS), cache=True)
def split_values(
    data: np.ndarray, start: int, final: bool, inside: int, line: int, record: np.ndarray
) -> tuple[int, int, int, int]:
    """Cut data into values: those of arrays, or one after the other.

    How many, where to go on, whether that is in an array, and at which line. `record[r]` is where value r starts and
    ends, its line, and its state: one that nothing closes ends where the next one seems to begin. Unless `final`, the data goes
    on, and a value that may not be complete is left.
    """
    size, at, found, most = len(data), start, 0, len(record)
    while at < size and found < most:
        byte = data[at]
        if byte == LF:
            line += 1
        if byte in (LF, SPACE, TAB, CR, COMMA):
            at += 1
            continue
        if byte == OPEN_ARRAY and not inside:
            at, inside = at + 1, 1
            continue
        if byte == CLOSE_ARRAY and inside:
            at, inside = at + 1, 0
            continue
        end, state = _value_end(data, at, size), GOOD
        if end >= size and not final and not (end == size and (data[at] == OPEN_OBJECT or data[at] == OPEN_ARRAY)):
            break
        if end > size:
            end, state = _as_deep(data, at, size), UNCLOSED
        end = max(end, at + 1)
        record[found, 0], record[found, 1], record[found, 2], record[found, 3] = at, end, line, state
        found += 1
        for here in range(at, end):
            if data[here] == LF:
                line += 1
        at = end
    return found, at, inside, line


@nb.njit(cache=True)
def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


@nb.njit(cache=True)
def _same(data: np.ndarray, at: int, size: int, names: np.ndarray, start: int, end: int) -> int:
    """Whether a key is this name: 2 exactly, 1 but for the case of ASCII letters, 0 not at all."""
    if end - start != size:
        return 0
    exact = 2
    for i in range(size):
        if data[at + i] != names[start + i]:
            if _lower(data[at + i]) != _lower(names[start + i]):
                return 0
            exact = 1
    return exact


@nb.njit(
    types.boolean(
        BYTES, s.CODES, types.Array(types.int64, 2, "C", readonly=True), s.ints, s.ints, s.LIMBS, s.LIMBS, BYTES, s.FLAGS
    ),
    cache=True,
)
def fold_keys(
    data: np.ndarray, out: np.ndarray, record: np.ndarray, kinds: np.ndarray, childs: np.ndarray, first: np.ndarray,
    field: np.ndarray, names: np.ndarray, changed: np.ndarray,
) -> bool:  # fmt: skip
    """Write keys that differ from declared ones by case alone as they are declared, into `out`; whether there was any.

    The declared types are a tree: node n is `kinds[n]`; `childs[n]` is the node of the elements of an ARRAY and of the values of
    a MAP, whose keys stay; `first[n]` is the first of the fields of a STRUCT, and their number; `field[f]` is where its
    name starts and ends in `names`, and its node. Where an object has the exact key as well, nothing is changed.
    """
    most = max(1, first[:, 1].max()) if len(first) else 1
    seen = np.zeros((DEEPEST, most), np.bool_)
    node, keyed = np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.bool_)
    pending, base = np.zeros((256, 2), np.int64), np.zeros(DEEPEST, np.int64)
    some = False
    for r in range(len(record)):
        at, end = record[r, 0], record[r, 1]
        depth, waiting, guess, child, key = -1, 0, 0, 0, False
        while at < end:
            byte = data[at]
            if byte == QUOTE:
                close = _string_end(data, at, end)
                if key:
                    key, child, here = False, -1, node[depth]
                    if here >= 0 and kinds[here] == STRUCT:
                        count, begin = first[here, 1], first[here, 0]
                        for step in range(count):
                            f = begin + (guess + step) % count
                            same = _same(data, at + 1, close - at - 2, names, field[f, 0], field[f, 1])
                            if same:
                                child, guess = field[f, 2], f - begin + 1
                                if same == 2:
                                    seen[depth, f - begin] = True
                                elif waiting < len(pending):
                                    pending[waiting, 0], pending[waiting, 1] = at + 1, f
                                    waiting += 1
                                break
                    elif here >= 0:
                        child = childs[here]
                at = close
                continue
            at += 1
            if byte in (OPEN_OBJECT, OPEN_ARRAY):
                depth += 1
                if depth >= DEEPEST:
                    break
                fits = child >= 0 and (kinds[child] == ARRAY) == (byte == OPEN_ARRAY)
                node[depth], keyed[depth], base[depth] = child if fits else -1, byte == OPEN_OBJECT, waiting
                key = keyed[depth]
                if key:
                    seen[depth] = False
                    guess = 0
                else:
                    child = childs[child] if fits else -1
            elif byte in (CLOSE_OBJECT, CLOSE_ARRAY):
                if depth < 0:
                    break
                for w in range(base[depth], waiting):
                    position, f = pending[w]
                    if not seen[depth, f - first[node[depth], 0]]:
                        for i in range(field[f, 0], field[f, 1]):
                            out[position + i - field[f, 0]] = names[i]
                        changed[r] = some = True
                waiting = base[depth]
                depth -= 1
                key = False
            elif byte == COMMA and depth >= 0:
                key = keyed[depth]
                if not key:
                    child = childs[node[depth]] if node[depth] >= 0 else -1
    return some


@nb.njit(types.UniTuple(types.int64, 3)(BYTES, s.integer, s.boolean, s.integer, s.LIMBS), cache=True)
def split_lines(data: np.ndarray, start: int, final: bool, line: int, record: np.ndarray) -> tuple[int, int, int]:
    """Cut data into lines that are not blank: how many, where to go on, at which line. Records are those of `split_values`."""
    size, at, found, most = len(data), start, 0, len(record)
    while at < size and found < most:
        end = at
        while end < size and data[end] != LF:
            end += 1
        if end == size and not final:
            break
        while at < end and (data[at] == SPACE or data[at] == TAB or data[at] == CR):
            at += 1
        if at < end:
            record[found, 0], record[found, 1], record[found, 2], record[found, 3] = at, end, line, GOOD
            found += 1
        at = min(end + 1, size)
        line += 1
    return found, at, line


@nb.njit(types.Tuple((s.KEYS, s.CODES))(BYTES, types.Array(types.int64, 1, "A"), types.Array(types.int64, 1, "A")), cache=True)
def gather_spans(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of bytes, one behind the other: offsets, and bytes."""
    offsets = np.zeros(len(starts) + 1, np.int32)
    for r in range(len(starts)):
        offsets[r + 1] = offsets[r] + ends[r] - starts[r]
    out = np.empty(offsets[-1], np.uint8)
    for r in range(len(starts)):
        at = offsets[r]
        for here in range(starts[r], ends[r]):
            out[at] = data[here]
            at += 1
    return offsets, out
