"""UNIQUE BY: of rows with one number no further apart than some time, only the first counts."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s


@nb.njit(s.nothing(s.ints, s.keys, s.integer, s.INTS, s.FLAGS), cache=True)
def first_of_each(ts: np.ndarray, number: np.ndarray, within: int, last: np.ndarray, kept: np.ndarray) -> None:
    """Mark the rows that count; `last` is the time of the last one that did, per number, and moves along."""
    for i in range(len(ts)):
        n = number[i]
        kept[i] = last[n] < ts[i] - within
        if kept[i]:
            last[n] = ts[i]
