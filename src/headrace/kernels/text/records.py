"""Where the records of a text end."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

QUOTE, NEWLINE, BACKSLASH = 34, 10, 92


@nb.njit(s.integer(s.codes, s.integer), cache=True)
def last_end(text: np.ndarray, delimiter: int) -> int:
    """How many bytes of a text that begins with a record are whole records: up to a line end outside of quotes.

    A quote opens a field at its beginning only, and one that is written twice does not close it: as Arrow reads CSV.
    """
    end = 0
    begins, quoted = True, False
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        if quoted:
            if c == QUOTE:
                if i + 1 < n and text[i + 1] == QUOTE:
                    i += 1
                else:
                    quoted = False
        elif c == QUOTE and begins:
            quoted, begins = True, False
        elif c == NEWLINE:
            begins, end = True, i + 1
        else:
            begins = c == delimiter
        i += 1
    return end


@nb.njit(s.integer(s.codes), cache=True)
def last_json_end(text: np.ndarray) -> int:
    """The same for JSON: up to a line end outside of all brackets. A text in quotes does not go on in another line."""
    end, depth = 0, 0
    quoted = False
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        if c == NEWLINE:
            quoted = False
            if depth <= 0:
                end, depth = i + 1, 0
        elif quoted:
            if c == BACKSLASH:
                i += 1
            elif c == QUOTE:
                quoted = False
        elif c == QUOTE:
            quoted = True
        elif c in (91, 123):
            depth += 1
        elif c in (93, 125):
            depth -= 1
        i += 1
    return end
