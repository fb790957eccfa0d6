"""Lives of keys: under KEEP one that was silent for too long starts anew, in a DELTA window with a row too far from its first."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from headrace.kernels import signatures as s

_NUMBER = nb.types.FunctionType(nb.types.Tuple((nb.types.float64, nb.types.boolean))(s.ints, s.flags))
_VALUES, _NULLS = nb.types.Array(nb.types.int64, 2, "C"), nb.types.Array(nb.types.boolean, 2, "C")
NEVER = -(2**62)


@nb.njit(s.nothing(s.ints, s.keys, s.integer, s.INTS, s.INTS, s.INTS), cache=True)
def starts(ts: np.ndarray, key: np.ndarray, keep: int, last: np.ndarray, start: np.ndarray, out: np.ndarray) -> None:
    """For every row, when the life of its key began; `last` and `start` per key move along."""
    for i in range(len(ts)):
        k = key[i]
        if last[k] < ts[i] - keep:
            start[k] = ts[i]
        last[k] = ts[i]
        out[i] = start[k]


@nb.njit(
    s.nothing(
        _NUMBER, s.integer, nb.types.float64, s.ints, s.ints, s.keys, _VALUES, _NULLS, _VALUES, _NULLS,
        s.INTS, s.INTS, s.INTS, s.INTS, s.INTS,
    ),
    cache=True,
)  # fmt: skip
def delta_ends(
    number: Any, width: int, limit: float, ts: np.ndarray, name: np.ndarray, key: np.ndarray,
    values: np.ndarray, nulls: np.ndarray, first: np.ndarray, first_null: np.ndarray,
    life: np.ndarray, start: np.ndarray, last: np.ndarray, begun: np.ndarray, began: np.ndarray,
) -> None:  # fmt: skip
    """For every row, the name of its window and when that began; what is kept per key moves along.

    `number` is the distance of a row from the first one: the words of the row come first, then those of the first.
    """
    columns = values.shape[1]
    words, none = np.zeros(width, np.int64), np.zeros(width, np.bool_)
    for i in range(len(ts)):
        k = key[i]
        ends = last[k] == NEVER
        if not ends:
            for c in range(columns):
                words[c], none[c] = values[i, c], nulls[i, c]
                words[columns + c], none[columns + c] = first[k, c], first_null[k, c]
            distance, unknown = number(words, none)
            ends = not unknown and not distance <= limit
        if ends:
            for c in range(columns):
                first[k, c], first_null[k, c] = values[i, c], nulls[i, c]
            life[k], start[k] = name[i], ts[i]
        last[k] = ts[i]
        begun[i], began[i] = life[k], start[k]
