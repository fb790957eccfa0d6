"""Rows that come twice: which of the open rows count, from what the final ones have shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headrace.kernels.keys.uniques import first_of_each
from headrace.plan.time import START_OF_TIME
from headrace.state.parts import KeyArrays

if TYPE_CHECKING:
    from headrace.state.tables import KeyTable


class Uniques(KeyArrays):
    """Per number of the UNIQUE table, the time of the last final row that counted."""

    arrays: ClassVar[dict[str, str]] = {"last": "last"}
    fill = START_OF_TIME

    def __init__(self, within: int, index: int, table: KeyTable) -> None:
        self.within, self.index, self.table = within, index, table
        self.last = np.full(0, START_OF_TIME, np.int64)

    def kept(self, ts: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
        """Which of the open rows, in order, count. Nothing is remembered."""
        numbers = columns[self.index]
        before = self.last[numbers].copy()
        kept = np.zeros(len(ts), np.bool_)
        first_of_each(ts, numbers, self.within, self.last, kept)
        self.last[numbers] = before
        return kept

    def settle(self, ts: np.ndarray, columns: list[np.ndarray], frontier: int) -> np.ndarray:
        """These rows are final. Returns the numbers that were forgotten, because no later row can come within reach."""
        numbers = columns[self.index]
        first_of_each(ts, numbers, self.within, self.last, np.zeros(len(ts), np.bool_))
        np.subtract.at(self.table.references, numbers, 1)
        count = self.table.count
        idle = self.table.live[:count] & (self.table.references[:count] == 0) & (self.last[:count] < frontier - self.within)
        gone = np.flatnonzero(idle).astype(np.int32)
        self.table.forget(gone)
        self.last[gone] = START_OF_TIME
        return gone
