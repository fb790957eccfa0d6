"""Changes: rows with a sign and an order key. A `-` takes back the `+` with the same key and row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa


@dataclass(slots=True)
class Changes:
    """Signed rows: +1 adds a row, -1 takes one back; the order key is (time, high, low, sub).

    The fourth part tells rows apart that were made by one event or by one tick of the clock; None where there is nothing to tell.
    """

    sign: np.ndarray
    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    rows: pa.RecordBatch
    sub: np.ndarray | None = None

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
            joined_subs(parts),
        )

    def in_order(self) -> Changes:
        """Sorted by the order key; at one key, what is taken back comes first."""
        keys = (self.low, self.high, self.ts) if self.sub is None else (self.sub, self.low, self.high, self.ts)
        order = np.lexsort((self.sign, *keys))
        return self.take(order)

    def take(self, index: np.ndarray) -> Changes:
        """The changes at these places."""
        sub = None if self.sub is None else self.sub[index]
        rows = self.rows.take(pa.array(index)) if self.rows.num_columns else self.rows.slice(0, len(index))
        return Changes(self.sign[index], self.ts[index], self.high[index], self.low[index], rows, sub)


class Keyed(Protocol):
    """Rows whose order keys may have a fourth part."""

    ts: np.ndarray
    sub: np.ndarray | None


def joined_subs(parts: Sequence[Keyed]) -> np.ndarray | None:
    """The fourth parts of all rows, one after the other; None if none of them has one."""
    if all(p.sub is None for p in parts):
        return None
    return np.concatenate([np.zeros(len(p.ts), np.int64) if p.sub is None else p.sub for p in parts])
