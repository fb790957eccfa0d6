"""Where the records of a CSV text end."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

QUOTE, NEWLINE, RETURN = 34, 10, 13


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
