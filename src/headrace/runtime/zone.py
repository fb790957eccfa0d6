"""The open rows of a bucket: admitted, sorted, not yet final. What a late row may still change is all in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.kernels.keys.order import locate_all, locate_subs, sort_order
from headrace.state.rows import Layout, Rows


@dataclass(slots=True)
class Zone:
    """Rows, what outputs show of them, and for which outputs they count (None: for all)."""

    rows: Rows
    carry: pa.RecordBatch
    wanted: list[np.ndarray | None]

    def __len__(self) -> int:
        """How many rows."""
        return len(self.rows)

    def take(self, index: np.ndarray) -> Zone:
        """The rows at these places."""
        return Zone(self.rows.take(index), take(self.carry, index), [None if w is None else w[index] for w in self.wanted])

    def slice(self, start: int, stop: int) -> Zone:
        """Rows start..stop."""
        return Zone(
            self.rows.slice(start, stop),
            self.carry.slice(start, stop - start),
            [None if w is None else w[start:stop] for w in self.wanted],
        )

    def sorted(self) -> Zone:
        """In the total order."""
        order = sort_order(self.rows.ts, self.rows.high, self.rows.low, self.rows.sub)
        return self if order is None else self.take(order)

    def append(self, other: Zone) -> Zone:
        """These rows, then the others."""
        if len(other) == 0:
            return self
        if len(self) == 0:
            return other
        table = pa.Table.from_batches([self.carry, other.carry]).combine_chunks()
        wanted = [
            None if a is None or b is None else np.concatenate((a, b)) for a, b in zip(self.wanted, other.wanted, strict=True)
        ]
        return Zone(self.rows.append(other.rows), _one_batch(table), wanted)

    def merge(self, fresh: Zone) -> tuple[Zone, np.ndarray]:
        """Both, in the total order, and which rows are fresh. Both must be sorted."""
        is_fresh = np.zeros(len(self) + len(fresh), np.bool_)
        is_fresh[len(self) :] = True
        both = self.append(fresh)
        order = sort_order(both.rows.ts, both.rows.high, both.rows.low, both.rows.sub)
        return (both, is_fresh) if order is None else (both.take(order), is_fresh[order])

    def places(self, rows: Rows) -> np.ndarray:
        """Where the rows with these order keys are; -1 where there is none."""
        own = self.rows
        if own.sub is not None and rows.sub is not None:
            return locate_subs(own.ts, own.high, own.low, own.sub, rows.ts, rows.high, rows.low, rows.sub)
        return locate_all(own.ts, own.high, own.low, rows.ts, rows.high, rows.low)


def take(batch: pa.RecordBatch, index: np.ndarray) -> pa.RecordBatch:
    """Rows of a batch by place. A batch without columns has only a length, which Arrow's take would lose."""
    if batch.num_columns == 0:
        return empty_batch(len(index))
    return batch.take(pa.array(index))


def empty_batch(rows: int) -> pa.RecordBatch:
    """A batch of that many rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None], children=[]))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    return (
        empty_batch(table.num_rows)
        if table.num_columns == 0
        else pa.RecordBatch.from_arrays(
            [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in table.columns], schema=table.schema
        )
    )


def dump(zone: Zone) -> dict[str, Any]:
    """The zone, as arrays."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, zone.carry.schema) as writer:
        writer.write_batch(zone.carry)
    rows = zone.rows
    state: dict[str, Any] = {"ts": rows.ts, "high": rows.high, "low": rows.low, "carry": sink.getvalue().to_pybytes()}
    state |= {f"c{i}": c for i, c in enumerate(rows.columns)}
    state |= {} if rows.sub is None else {"sub": rows.sub}
    return state | {f"w{i}": w.view(np.uint8) for i, w in enumerate(zone.wanted) if w is not None}


def load(state: dict[str, Any], layout: Layout, outputs: int) -> Zone:
    """The zone that was dumped."""
    with pa.ipc.open_stream(state["carry"]) as reader:
        carry = reader.read_next_batch()
    columns = [state[f"c{i}"] for i in range(len(layout.types))]
    rows = Rows(state["ts"], state["high"], state["low"], columns, state.get("sub"))
    return Zone(rows, carry, [state[f"w{i}"].view(np.bool_) if f"w{i}" in state else None for i in range(outputs)])
