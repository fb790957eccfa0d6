"""What a value is, beside the value itself: one small integer per row, so that the hot loops never meet NULL or NaN.

The order counts: below NULL there is a value of some sort; ABSENT rows are in the window, but a WHERE or FILTER keeps them out
of this aggregate.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

VALUE = 0
NAN = 1
PLUS_INFINITY = 2
MINUS_INFINITY = 3
NULL = 4
ABSENT = 5


@nb.njit(s.boolean(s.floats, s.CODES), cache=True)
def mark_odd(values: np.ndarray, code: np.ndarray) -> bool:
    """Say which doubles are NaN or infinite; whether any is."""
    found = False
    for i in range(len(values)):
        if not np.isfinite(values[i]):
            found = True
            code[i] = NAN if np.isnan(values[i]) else PLUS_INFINITY if values[i] > 0 else MINUS_INFINITY
    return found
