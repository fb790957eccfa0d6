"""Result columns: from the readings of tallies to values with Spark SQL's types and NULLs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.aggregates.queue import Lists
from headrace.aggregates.tally import Reading
from headrace.kernels.codes import NULL
from headrace.kernels.keys.order import from_ordered
from headrace.plan.arrow import arrow_type
from headrace.plan.types import decimal_parts
from headrace.program.aggregates import Metric, Tally, vectors_of
from headrace.program.stage import Vector, VectorKind
from headrace.state.tables import Tables, ValueTable


@dataclass(slots=True)
class MetricColumn:
    """Values of a result column, as words that compare bit for bit, and which of them are not NULL."""

    words: Any  # an array, one row of words per value; or lists of them
    valid: np.ndarray

    def differs(self, other: MetricColumn) -> np.ndarray:
        """Where two columns are not the same to the bit."""
        same = (self.words == other.words).all(axis=1) if self.words.ndim > 1 else self.words == other.words
        return np.asarray((self.valid != other.valid) | (self.valid & ~same))

    def take(self, index: np.ndarray) -> MetricColumn:
        return MetricColumn(self.words[index], self.valid[index])

    def append(self, other: MetricColumn) -> MetricColumn:
        if len(self.valid) == 0 or len(other.valid) == 0:
            return other if len(self.valid) == 0 else self
        words = self.words.append(other.words) if isinstance(self.words, Lists) else np.concatenate((self.words, other.words))
        return MetricColumn(words, np.concatenate((self.valid, other.valid)))


def metric_column(metric: Metric, readings: list[Reading] | dict[int, Reading]) -> MetricColumn:
    """What a metric says at every event."""
    reading, reads = readings[metric.tally], metric.reads
    values, fits = reading[reads.part], reading.get(f"{reads.part} fits")
    if "code" in reading:
        valid = reading["code"] != NULL
    elif metric.count is not None:
        valid = readings[metric.count]["value"] >= reads.least
    else:
        valid = np.ones(len(values), np.bool_)
    if isinstance(values, Lists):
        return MetricColumn(values, valid)
    if fits is not None:
        valid &= fits
    if values.ndim > 1:
        valid &= _within(values, decimal_parts(metric.type)[0])
    if reads.root:
        values = np.sqrt(values)
    return MetricColumn(values.view(np.int64) if values.dtype == np.float64 else values, valid)


def _within(words: np.ndarray, precision: int) -> np.ndarray:
    """Whether 128-bit integers (low word, high word) have at most this many digits."""
    low, high = words[:, 0], words[:, 1].view(np.int64)
    limit = 10**precision - 1
    (top, bottom), (least_top, least_bottom) = ((np.int64(x >> 64), np.uint64(x & (2**64 - 1))) for x in (limit, -limit))
    below = (high < top) | ((high == top) & (low <= bottom))
    return np.asarray(below & ((high > least_top) | ((high == least_top) & (low >= least_bottom))))


def to_arrow(
    tallies: Sequence[Tally], vectors: Sequence[Vector], metric: Metric, column: MetricColumn, tables: Tables
) -> pa.Array:
    """A result column in its Arrow type."""
    tally = tallies[metric.tally]
    if not tally.kind.shows:
        return _plain(VectorKind.BITS, metric.type, column)
    return kept_to_arrow(vectors[vectors_of(tally)[-1]], metric.type, column, tables)


def kept_to_arrow(vector: Vector, kind: str, column: MetricColumn, tables: Tables) -> pa.Array:
    """Values that were kept to be shown, in their Arrow type."""
    if isinstance(column.words, Lists):
        flat = MetricColumn(column.words.words, np.ones(len(column.words.words), np.bool_))
        values = kept_to_arrow(vector, kind.removeprefix("ARRAY<").removesuffix(">"), flat, tables)
        return pa.ListArray.from_arrays(np.concatenate(([0], column.words.ends)).astype(np.int32), values, arrow_type(kind))
    if vector.kind is not VectorKind.NUMBERED:
        return _plain(vector.kind, kind, column)
    assert vector.table is not None
    table = tables[vector.table]
    assert isinstance(table, ValueTable)
    return _cast(table.lookup(column.words, column.valid), arrow_type(kind))


def _plain(values: VectorKind, spark_type: str, column: MetricColumn) -> pa.Array:
    """Values that are their own words; most types have them in memory just so."""
    kind, words, valid = arrow_type(spark_type), column.words, column.valid
    floating = pa.types.is_floating(kind)
    if floating and values is VectorKind.ORDERED:
        words = from_ordered(words)
    if pa.types.is_boolean(kind):
        return pa.array(words != 0, mask=~valid)
    if pa.types.is_date(kind):
        return pa.array(words.astype(np.int32), pa.int32(), mask=~valid).cast(kind)
    wide = kind if kind.bit_width >= 64 else pa.float64() if floating else pa.int64()
    bits = None if np.count_nonzero(valid) == len(valid) else pa.array(valid).buffers()[1]
    return _cast(pa.Array.from_buffers(wide, len(valid), [bits, pa.py_buffer(np.ascontiguousarray(words))]), kind)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """In this type; a cast that changes nothing still costs microseconds."""
    return column if column.type == kind else column.cast(kind)
