"""Changes: rows with a sign and an order key. A `-` takes back the `+` with the same key and row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(slots=True)
class Changes:
    """Signed rows: +1 adds a row, -1 takes one back; the order key is (time, high, low)."""

    sign: np.ndarray
    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    rows: pa.RecordBatch

    def __len__(self) -> int:
        """How many changes."""
        return len(self.sign)

    @staticmethod
    def concat(parts: list[Changes]) -> Changes:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        rows = pa.Table.from_batches([p.rows for p in parts]).combine_chunks().to_batches()
        return Changes(
            np.concatenate([p.sign for p in parts]),
            np.concatenate([p.ts for p in parts]),
            np.concatenate([p.high for p in parts]),
            np.concatenate([p.low for p in parts]),
            rows[0] if rows else parts[0].rows,
        )

    def in_order(self) -> Changes:
        """Sorted by the order key; at one key, what is taken back comes first."""
        order = np.lexsort((self.sign, self.low, self.high, self.ts))
        return Changes(self.sign[order], self.ts[order], self.high[order], self.low[order], self.rows.take(pa.array(order)))
