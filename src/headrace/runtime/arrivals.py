"""Rows as they come to a bucket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.changes.keys import Keys
from headrace.changes.rows import take


@dataclass(slots=True)
class Arrivals:
    """Their keys, the segment each belongs to, whether it is behind its own segment, the inputs, and what is taken back."""

    keys: Keys
    segment: np.ndarray
    behind: np.ndarray
    inputs: pa.RecordBatch
    sign: np.ndarray | None = None  # None: nothing is taken back

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: np.ndarray) -> Arrivals:
        sign = None if self.sign is None else self.sign[index]
        return Arrivals(self.keys.take(index), self.segment[index], self.behind[index], take(self.inputs, index), sign)
