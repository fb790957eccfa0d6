"""Text with delimiters, cut into records and fields: bytes in, positions out.

A field is quoted if a quote is its first character; a quote inside is written twice, and newlines inside belong to it. A quote
elsewhere is a character like any other. A record that breaks these rules, or has another number of fields than expected, costs
one line only: its first. What follows is read from the next line on, so that a quote that is never closed swallows nothing.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numba import types

from headrace.kernels import signatures as s

QUOTE, CR, LF, SPACE, TAB = 34, 13, 10, 32, 9
GOOD, TOO_FEW, TOO_MANY, UNCLOSED, GARBAGE, NOT_TEXT = range(6)
PLAIN, QUOTED, DOUBLED = range(3)  # DOUBLED: quoted, and has quotes that are written twice


@nb.njit(cache=True)
def _line_end(data: np.ndarray, at: int, size: int) -> int:
    """Where the line ends that this byte is in: at its line break, or at the end of the data."""
    while at < size and data[at] != LF and data[at] != CR:
        at += 1
    return at


@nb.njit(cache=True)
def _next_line(data: np.ndarray, end: int, size: int) -> int:
    """Where the line begins behind the one that ends here."""
    if end < size and data[end] == CR:
        end += 1
        return end + 1 if end < size and data[end] == LF else end
    return end + 1 if end < size else end


@nb.njit(cache=True)
def _may_go_on(data: np.ndarray, end: int, size: int) -> bool:
    """Whether what ends here may go on behind the data; a line break may be half of one."""
    return end >= size or (data[end] == CR and end + 1 == size)


@nb.njit(cache=True)
def _is_blank(data: np.ndarray, start: int, end: int, delimiter: int) -> bool:
    while start < end and (data[start] == SPACE or data[start] == TAB) and data[start] != delimiter:
        start += 1
    return start == end


BYTES, ROWS = types.Array(types.uint8, 1, "C", readonly=True), types.Array(types.int32, 2, "C")
CUT = types.UniTuple(types.int64, 3)


@nb.njit(
    CUT(
        BYTES, s.integer, s.boolean, s.integer, s.integer, s.ints, s.integer,
        ROWS, ROWS, types.Array(types.uint8, 2, "C"), s.LIMBS,
    ),
    cache=True,
)  # fmt: skip
def split_records(
    data: np.ndarray, start: int, final: bool, delimiter: int, fields: int, slots: np.ndarray, line: int,
    starts: np.ndarray, ends: np.ndarray, kinds: np.ndarray, record: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """Cut data from `start` on; how many records, where the next one begins, and its line.

    `slots[k]` says which of the wanted columns field k is, or -1; of a field of record r, `starts[r, slot]`, `ends[r, slot]` and
    `kinds[r, slot]` are set, without its quotes. `record[r]` is its start, its end, its line, its state (GOOD, ..) and
    how many fields it has. Unless `final`, the data goes on, and a record that may not be complete is left. `fields` may be -1:
    any number.
    """
    size, at, found, most = len(data), start, 0, len(record)
    stops = np.zeros(256, np.bool_)  # what a field without quotes ends at
    stops[delimiter] = stops[LF] = stops[CR] = True
    while at < size and found < most:
        if data[at] == LF or data[at] == CR or data[at] == SPACE or data[at] == TAB:
            end = _line_end(data, at, size)
            if not final and _may_go_on(data, end, size):
                break
            if _is_blank(data, at, end, delimiter):
                at = _next_line(data, end, size)
                line += 1
                continue
        number, state, lines, here = 0, GOOD, 0, at
        while True:  # a field
            if here < size and data[here] == QUOTE:
                here += 1
                opened, kind = here, QUOTED
                while here < size:
                    byte = data[here]
                    if byte == QUOTE:
                        if here + 1 < size and data[here + 1] == QUOTE:
                            kind = DOUBLED
                            here += 2
                            continue
                        break
                    if byte == LF or (byte == CR and not (here + 1 < size and data[here + 1] == LF)):
                        lines += 1
                    here += 1
                if here >= size:
                    state = UNCLOSED
                    break
                closed = here
                here += 1
                while here < size and (data[here] == SPACE or data[here] == TAB) and data[here] != delimiter:
                    here += 1
                if here < size and not stops[data[here]]:
                    state = GARBAGE
                    break
            else:
                opened, kind = here, PLAIN
                while here < size and not stops[data[here]]:
                    here += 1
                closed = here
            slot = slots[number] if number < len(slots) else -1
            if slot >= 0:
                starts[found, slot], ends[found, slot], kinds[found, slot] = opened, closed, kind
            number += 1
            if here < size and data[here] == delimiter:
                here += 1
            else:
                break
        if not final and _may_go_on(data, here, size):
            break
        if state == GOOD and fields >= 0 and number != fields:
            state = TOO_FEW if number < fields else TOO_MANY
        if state != GOOD and lines > 0:
            state = UNCLOSED  # what the quote took in makes no row
        if state >= UNCLOSED:
            here, lines = _line_end(data, at, size), 0
            if not final and _may_go_on(data, here, size):
                break
        record[found, 0], record[found, 1], record[found, 2] = at, here, line
        record[found, 3], record[found, 4] = state, number
        found += 1
        at = _next_line(data, here, size)
        line += lines + 1
    return found, at, line


@nb.njit(
    types.Tuple((s.KEYS, s.CODES, s.FLAGS))(
        BYTES, types.Array(types.int32, 1, "A"), types.Array(types.int32, 1, "A"), types.Array(types.uint8, 1, "A"),
        types.Array(types.int64, 1, "A"), s.boolean,
    ),
    cache=True,
)  # fmt: skip
def gather_field(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, kinds: np.ndarray, states: np.ndarray, empty_is_null: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One column: offsets, bytes, and which values are there. An empty field is NULL; a quoted one only if `empty_is_null`."""
    rows = len(states)
    offsets, valid = np.zeros(rows + 1, np.int32), np.zeros(rows, np.bool_)
    total = 0
    for r in range(rows):
        if states[r] == GOOD:
            length = ends[r] - starts[r]
            valid[r] = length > 0 or (kinds[r] != PLAIN and not empty_is_null)
            total += length
    out, at = np.empty(total, np.uint8), 0
    for r in range(rows):
        if valid[r]:
            if kinds[r] == DOUBLED:
                here = starts[r]
                while here < ends[r]:
                    out[at] = data[here]
                    at += 1
                    here += 2 if data[here] == QUOTE else 1
            else:
                for here in range(starts[r], ends[r]):
                    out[at] = data[here]
                    at += 1
        offsets[r + 1] = at
    return offsets, out[:at], valid
