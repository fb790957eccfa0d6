"""The open rows of a bucket: admitted, sorted, not yet final. What a late row may still change is all in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.keys import dump_keys, load_keys
from headrace.changes.rows import concat, from_bytes, take
from headrace.state.rows import Layout, Rows


@dataclass(slots=True)
class OpenRows:
    """Rows, what outputs show of them, and for which outputs they count (None: for all)."""

    rows: Rows
    carry: pa.RecordBatch
    wanted: list[np.ndarray | None]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: np.ndarray) -> OpenRows:
        return OpenRows(self.rows.take(index), take(self.carry, index), [None if w is None else w[index] for w in self.wanted])

    def slice(self, start: int, stop: int) -> OpenRows:
        return OpenRows(
            self.rows.slice(start, stop),
            self.carry.slice(start, stop - start),
            [None if w is None else w[start:stop] for w in self.wanted],
        )

    def sorted(self) -> OpenRows:
        order = self.rows.keys.order()
        return self if order is None else self.take(order)

    def append(self, other: OpenRows) -> OpenRows:
        if len(other) == 0:
            return self
        if len(self) == 0:
            return other
        wanted = [_both(a, len(self), b, len(other)) for a, b in zip(self.wanted, other.wanted, strict=True)]
        return OpenRows(self.rows.append(other.rows), concat([self.carry, other.carry]), wanted)

    def merge(self, fresh: OpenRows) -> tuple[OpenRows, np.ndarray]:
        """Both, in the total order, and which rows are fresh. Both must be sorted."""
        is_fresh = np.zeros(len(self) + len(fresh), np.bool_)
        is_fresh[len(self) :] = True
        both = self.append(fresh)
        order = both.rows.keys.order()
        return (both, is_fresh) if order is None else (both.take(order), is_fresh[order])


def _both(a: np.ndarray | None, n: int, b: np.ndarray | None, m: int) -> np.ndarray | None:
    """Flags of both; None: all."""
    if a is None and b is None:
        return None
    return np.concatenate((np.ones(n, np.bool_) if a is None else a, np.ones(m, np.bool_) if b is None else b))


def dump_open(open_: OpenRows) -> dict[str, Any]:
    state: dict[str, Any] = {"carry": open_.carry, **dump_keys(open_.rows.keys)}
    state |= {f"c{i}": c for i, c in enumerate(open_.rows.columns)}
    return state | {f"w{i}": w.view(np.uint8) for i, w in enumerate(open_.wanted) if w is not None}


def load_open(state: dict[str, Any], layout: Layout, outputs: int) -> OpenRows:
    columns = [state[f"c{i}"] for i in range(len(layout.types))]
    return OpenRows(
        Rows(load_keys(state), columns),
        from_bytes(state["carry"]),
        [state[f"w{i}"].view(np.bool_) if f"w{i}" in state else None for i in range(outputs)],
    )
