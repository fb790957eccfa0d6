"""Changes: rows with a sign and an order key. A `-` takes back the `+` with the same key and row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.changes.keys import Keys, from_arrow, to_arrow
from headrace.changes.rows import batch_of, concat, from_bytes, take, to_bytes

KEY_NAMES = ("_ts", "_high", "_low", "_sub")


@dataclass(slots=True)
class Changes:
    """Signed rows: +1 adds a row, -1 takes one back."""

    sign: np.ndarray
    keys: Keys
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.sign)

    @staticmethod
    def of(sign: int, keys: Keys, rows: pa.RecordBatch) -> Changes:
        signs = np.empty(len(keys), np.int8)
        signs.fill(sign)
        return Changes(signs, keys, rows)

    @staticmethod
    def merge(parts: Sequence[Changes]) -> Changes:
        if len(parts) == 1:
            return parts[0]
        sign = np.concatenate([p.sign for p in parts])
        return Changes(sign, Keys.concat([p.keys for p in parts]), concat([p.rows for p in parts]))

    def take(self, index: np.ndarray) -> Changes:
        return Changes(self.sign[index], self.keys.take(index), take(self.rows, index))

    def in_order(self) -> Changes:
        """Sorted by the order key; at one key, what is taken back comes first."""
        return self.take(np.lexsort((self.sign, *self.keys.columns[::-1])))


def write_changes(changes: Changes) -> bytes:
    own = [pa.array(changes.sign), *to_arrow(changes.keys)]
    names = ["_sign", *KEY_NAMES, *changes.rows.schema.names]
    return to_bytes(pa.RecordBatch.from_arrays([*own, *changes.rows.columns], names))


def read_changes(data: bytes) -> Changes:
    batch = from_bytes(data)
    sign, *rest = batch.columns
    n = len(KEY_NAMES)
    rows = batch_of(rest[n:], batch.schema.names[n + 1 :], len(sign))
    return Changes(sign.to_numpy(zero_copy_only=False), from_arrow(rest[:n]), rows)
