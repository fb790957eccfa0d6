"""Rows inside a bucket: sorted by the total order, fixed-width arrays only."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headrace.changes.changes import joined_subs
from headrace.program.stage import Stage, Vector, VectorKind

SOURCE_BITS = 50  # of the high half of a place: below them there is room for a time in milliseconds, or a partition
VALUE_TYPES: dict[VectorKind, tuple[type, ...]] = {
    VectorKind.ROW: (),
    VectorKind.DOUBLE: (np.float64,),
    VectorKind.INT: (np.int64,),
    VectorKind.DECIMAL: (np.int64, np.uint64),
    VectorKind.ORDERED: (np.int64,),
    VectorKind.BITS: (np.int64,),
    VectorKind.HASHED: (np.int64,),
    VectorKind.NUMBERED: (),  # the number itself is the column of its table
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are among the columns of a row: first one number per table, then the vectors, each ending in its code."""

    types: tuple[type, ...]
    values: tuple[tuple[int, ...], ...]  # per vector: its value columns
    codes: tuple[int | None, ...]  # per vector: its code column; None: every row counts
    tables: int

    @staticmethod
    def of(stage: Stage) -> Layout:
        """Lay out the columns of a stage."""
        types: list[type] = [np.int32] * len(stage.tables)
        values: list[tuple[int, ...]] = []
        codes: list[int | None] = []
        for vector in stage.vectors:
            start = len(types)
            types += VALUE_TYPES[vector.kind]
            columns = tuple(range(start, len(types)))
            values.append((vector.table,) if vector.kind is VectorKind.NUMBERED and vector.table is not None else columns)
            if _needs_code(vector):
                codes.append(len(types))
                types.append(np.uint8)
            else:
                codes.append(None)
        return Layout(tuple(types), tuple(values), tuple(codes), len(stage.tables))

    def empty(self) -> list[np.ndarray]:
        """Columns of no rows."""
        return [np.empty(0, t) for t in self.types]


def _needs_code(vector: Vector) -> bool:
    return vector.kind is not VectorKind.ROW or bool(vector.masks)


@dataclass(slots=True)
class Rows:
    """Rows in the total order: time, position (high, low, and sub where rows are derived), and the columns of the layout."""

    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    columns: list[np.ndarray] = field(default_factory=list)
    sub: np.ndarray | None = None

    def __len__(self) -> int:
        """How many rows."""
        return len(self.ts)

    @staticmethod
    def empty(layout: Layout) -> Rows:
        """No rows."""
        none = np.empty(0, np.int64)
        return Rows(none, none, none, layout.empty())

    def take(self, index: np.ndarray) -> Rows:
        """The rows at these places."""
        sub = None if self.sub is None else self.sub[index]
        return Rows(self.ts[index], self.high[index], self.low[index], [c[index] for c in self.columns], sub)

    def slice(self, start: int, stop: int) -> Rows:
        """Rows start..stop, without a copy."""
        sub = None if self.sub is None else self.sub[start:stop]
        columns = [c[start:stop] for c in self.columns]
        return Rows(self.ts[start:stop], self.high[start:stop], self.low[start:stop], columns, sub)

    def append(self, other: Rows) -> Rows:
        """These rows, then the others."""
        if len(other) == 0:
            return self
        if len(self) == 0:
            return other
        return Rows(
            np.concatenate((self.ts, other.ts)),
            np.concatenate((self.high, other.high)),
            np.concatenate((self.low, other.low)),
            [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)],
            joined_subs((self, other)),
        )
