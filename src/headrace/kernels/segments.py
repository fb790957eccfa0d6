"""Which rows are behind the largest time of their own run of rows."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s


@nb.njit(s.nothing(s.ints, s.keys, s.integer, s.integer, s.INTS, s.FLAGS), cache=True)
def judge(ts: np.ndarray, segment: np.ndarray, delay: int, limit: int, highest: np.ndarray, behind: np.ndarray) -> None:
    """Mark rows more than `delay` behind an earlier row of their segment, and note the largest time of each.

    Times above `limit` do not count. A negative delay means that no row is ever late.
    """
    for i in range(len(ts)):
        s = segment[i]
        if delay >= 0 and ts[i] < highest[s] - delay:
            behind[i] = True
        if ts[i] > highest[s] and ts[i] <= limit:
            highest[s] = ts[i]
