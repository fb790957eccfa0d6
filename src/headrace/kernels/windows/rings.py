"""The last n rows of every partition: which row each new one pushes out."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s


@nb.njit(s.nothing(s.keys, s.integer, s.INTS, s.INTS, s.integer, s.INTS, s.INTS), cache=True)
def push_out(
    partition: np.ndarray, size: int, total: np.ndarray, owner: np.ndarray, base: int, slot: np.ndarray, out: np.ndarray
) -> None:
    """Give every row the slot it takes and the row that was there.

    Slots of partition p are p*size .. p*size+size-1, filled in turn; `total[p]` counts its rows. `owner[slot]` is -1 while the
    slot holds what it held before this call, else base + the index of the row of this call in it. `out[i]`: -1 nothing was
    there, below `base` the slot number of an older row, else base + the index of a row of this call. The caller resets
    `owner` (of the slots in `slot`) to -1.
    """
    for i in range(len(partition)):
        p = partition[i]
        at = p * size + total[p] % size
        slot[i] = at
        if total[p] < size:
            out[i] = -1
        elif owner[at] >= 0:
            out[i] = owner[at]
        else:
            out[i] = at
        owner[at] = base + i
        total[p] += 1
