"""Which rows are behind the largest time of their own run of rows."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

NO_PROMISE = -(2**62)  # of a row that is an event


@nb.njit(s.nothing(s.ints, s.ints, s.keys, s.integer, s.integer, s.integer, s.INTS, s.INTS, s.FLAGS), cache=True)
def judge(
    ts: np.ndarray, promise: np.ndarray, segment: np.ndarray, delay: int, limit: int, promise_limit: int, highest: np.ndarray,
    promised: np.ndarray, behind: np.ndarray,
) -> None:  # fmt: skip
    """Mark rows more than `delay` behind an earlier row of their segment, and note the largest time of each.

    A row with a promise is punctuation: it says that no more rows come up to that time, and what comes then is behind as well.
    `promised` becomes the time before which none come. `promise` is empty where there is no punctuation.
    Times above `limit` do not count, nor promises above theirs. A negative delay means that no row is late for its time alone.
    """
    punctuated = len(promise) > 0
    for i in range(len(ts)):
        s = segment[i]
        if punctuated and promise[i] != NO_PROMISE:
            if promised[s] <= promise[i] <= promise_limit:
                promised[s] = promise[i] + 1
            continue
        if ts[i] < promised[s] or (delay >= 0 and ts[i] < highest[s] - delay):
            behind[i] = True
        if ts[i] > highest[s] and ts[i] <= limit:
            highest[s] = ts[i]
