"""KEEP: a key that has been silent for longer than some time starts anew."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s


@nb.njit(s.nothing(s.ints, s.keys, s.integer, s.INTS, s.INTS, s.INTS), cache=True)
def starts(ts: np.ndarray, key: np.ndarray, keep: int, last: np.ndarray, start: np.ndarray, out: np.ndarray) -> None:
    """For every row, when the life of its key began; `last` and `start` per key move along."""
    for i in range(len(ts)):
        k = key[i]
        if last[k] < ts[i] - keep:
            start[k] = ts[i]
        last[k] = ts[i]
        out[i] = start[k]
