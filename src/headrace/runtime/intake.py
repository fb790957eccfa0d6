"""From the Arrow columns of arriving rows to the fixed-width columns of the layout. Everything is hashed here, once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.evolution.buckets import noted
from headrace.kernels.codes import ABSENT, NULL, mark_odd
from headrace.kernels.keys.hashing import as_words, hash_columns
from headrace.kernels.keys.order import to_ordered
from headrace.program.stage import Stage, TableRole, Vector, VectorKind
from headrace.state.tables import ROUTE_BITS, Tables, ValueTable

if TYPE_CHECKING:
    from headrace.state.rows import Layout
    from headrace.state.tables import Routes


def truth(column: pa.Array) -> np.ndarray:
    """A boolean column as an array; NULL is not true."""
    if column.null_count:
        column = pc.fill_null(column, False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def all_true(batch: pa.RecordBatch, masks: tuple[int, ...]) -> np.ndarray | None:
    """Where all of these boolean columns hold; None for everywhere."""
    if not masks:
        return None
    out = truth(batch.column(masks[0]))
    for mask in masks[1:]:
        out = out & truth(batch.column(mask))
    return out


def routes_of(columns: list[pa.Array], rows: int) -> np.ndarray:
    """What rows with these values are routed by: a hash, of which the remainder is the bucket."""
    # The low bits number keys inside a bucket's table; take others here, so that tables stay evenly filled.
    return (hash_columns(columns, rows)[0] >> ROUTE_BITS).astype(np.uint32)


class Intake:
    """Turns arriving rows into columns of the layout, numbering their keys."""

    def __init__(self, stage: Stage[Any], layout: Layout, tables: Tables) -> None:
        self.stage, self.layout, self.tables = stage, layout, tables
        self._noted = noted(stage)

    def columns(self, batch: pa.RecordBatch) -> list[np.ndarray]:
        route = getattr(self.stage.route, "inputs", ())
        routes = cache(lambda: routes_of([batch.column(i) for i in route], batch.num_rows)) if self._noted else None
        out: list[np.ndarray] = [
            self._numbers(i, batch, routes if i in self._noted else None) for i in range(len(self.stage.tables))
        ]
        for vector, code in zip(self.stage.vectors, self.layout.codes, strict=True):
            if code is not None:  # else every row counts, and that is all there is to it
                out += self._vector(vector, batch)
        return out

    def _numbers(self, index: int, batch: pa.RecordBatch, routes: Routes | None) -> np.ndarray:
        spec, table = self.stage.tables[index], self.tables[index]
        if spec.derived:
            return np.zeros(batch.num_rows, np.int32)
        arrays = [batch.column(i) for i in spec.inputs]
        high, low = hash_columns(arrays, batch.num_rows)
        if spec.role is TableRole.VALUE:
            assert isinstance(table, ValueTable)
            return table.number_values(high, low, arrays[0], routes)
        return table.number(high, low, routes)

    def _vector(self, vector: Vector, batch: pa.RecordBatch) -> list[np.ndarray]:
        """The values of a vector, and their code."""
        code = np.zeros(batch.num_rows, np.uint8)
        values: list[np.ndarray] = []
        if vector.input is not None:
            column = batch.column(vector.input)
            if column.null_count:
                code[pc.is_null(column).to_numpy(zero_copy_only=False)] = NULL
            values = _values(vector.kind, column, code)
        kept = all_true(batch, vector.masks)
        if kept is not None:
            code[~kept] = ABSENT
        return [*values, code]


def _values(kind: VectorKind, column: pa.Array, code: np.ndarray) -> list[np.ndarray]:
    """The value columns of a vector; for doubles the code learns of NaN and the infinities."""
    match kind:
        case VectorKind.DOUBLE:
            floats = _doubles(column)
            return [np.where(np.isfinite(floats), floats, 0.0) if mark_odd(floats, code) else floats]
        case VectorKind.DECIMAL:
            words = as_words(column)
            assert words is not None
            present = code != NULL
            return [np.where(present, words[1], 0).view(np.int64), np.where(present, words[0], np.uint64(0))]
        case VectorKind.HASHED:
            return [hash_columns([column], len(column))[1].view(np.int64)]
        case VectorKind.INT | VectorKind.ORDERED | VectorKind.BITS if pa.types.is_floating(column.type):
            floats = _doubles(column)
            return [to_ordered(floats) if kind is VectorKind.ORDERED else np.ascontiguousarray(floats).view(np.int64)]
        case VectorKind.INT | VectorKind.ORDERED | VectorKind.BITS:
            words = as_words(column)
            assert words is not None
            return [words[0].view(np.int64)]
    return []


def _doubles(column: pa.Array) -> np.ndarray:
    floats = column if pa.types.is_float64(column.type) else column.cast(pa.float64())
    if floats.null_count:
        floats = pc.fill_null(floats, 0.0)
    return np.asarray(floats.to_numpy(zero_copy_only=False))
