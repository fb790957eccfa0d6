"""Rows inside a bucket: sorted by the total order, fixed-width arrays only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.changes.keys import Keys
from headrace.program.stage import Stage, Vector, VectorKind

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
    def of(stage: Stage[Any]) -> Layout:
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
        return [np.empty(0, t) for t in self.types]


def _needs_code(vector: Vector) -> bool:
    return vector.kind is not VectorKind.ROW or bool(vector.masks)


@dataclass(slots=True)
class Rows:
    """Rows in the total order: their keys, and the columns of the layout."""

    keys: Keys
    columns: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.keys.ts)

    @property
    def ts(self) -> np.ndarray:
        return self.keys.ts

    @staticmethod
    def empty(layout: Layout) -> Rows:
        return Rows(Keys.none(), layout.empty())

    def take(self, index: np.ndarray) -> Rows:
        return Rows(self.keys.take(index), [c[index] for c in self.columns])

    def slice(self, start: int, stop: int) -> Rows:
        """Rows start..stop, without a copy."""
        return Rows(self.keys.slice(start, stop), [c[start:stop] for c in self.columns])

    def append(self, other: Rows) -> Rows:
        if len(other) == 0:
            return self
        if len(self) == 0:
            return other
        columns = [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)]
        return Rows(self.keys.append(other.keys), columns)
