"""The rows of a bucket on their way through the exchange, in as few bytes as they need.

A time travels as its distance from the first one, a place as its distance from the first of its segment, both in four bytes where
that is enough; what is the same for all rows is not sent at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes
from headrace.changes.keys import SOURCE_BITS, Keys, from_arrow, to_arrow
from headrace.changes.rows import batch_of as named_batch
from headrace.changes.rows import concat
from headrace.exchange.heads import Shape
from headrace.exchange.pack import Placed, route
from headrace.plan.arrow import arrow_type
from headrace.plan.time import START_OF_TIME
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Segment

_NARROW = 1 << 32


def write_cells(
    stage: Stage[Any], inputs: pa.RecordBatch, times: tuple[int, ...], placed: Placed, behind: np.ndarray, buckets: int
) -> tuple[Shape, list[pa.Buffer | bytes]]:
    """One cell per bucket, empty where it gets no row. `times`: inputs that are the time itself."""
    order, ends = route(stage, inputs, placed, buckets)
    if order is not None and len(order) < len(placed.keys):  # what nobody wants need not be made small first
        placed, behind, inputs, order = placed.take(order), behind[order], inputs.take(pa.array(order)), None
    shape, own = _shaped(times, placed, behind)
    arrays = [*map(pa.array, own), *(inputs.column(i) for i in shape.sent(stage))]
    return shape, _cut(pa.RecordBatch.from_arrays(arrays, schema=shape.schema(stage)), order, ends)


def _cut(rows: pa.RecordBatch, order: np.ndarray | None, ends: list[int]) -> list[pa.Buffer | bytes]:
    rows = rows if order is None else rows.take(pa.array(order))
    return [rows.slice(a, b - a).serialize() if b > a else b"" for a, b in pairwise([0, *ends])]


def _shaped(shown: tuple[int, ...], placed: Placed, behind: np.ndarray) -> tuple[Shape, list[np.ndarray]]:
    times = placed.keys.ts
    first = int(times.min()) if len(times) else 0
    ts, short_ts = _narrow(times - first)
    several = len(placed.place) > 1
    lows = np.array([low for _, low in placed.place], np.int64)
    low, short_low = _narrow(placed.keys.low - (lows[placed.segment] if several else lows[:1]))
    any_behind = bool(behind.any())
    own = [ts, low]
    own += [placed.segment.astype(np.int32, copy=False)] if several else []
    own += [behind.view(np.uint8)] if any_behind else []
    return Shape(first, short_ts, short_low, several, any_behind, placed.partitioned, shown), own


def _narrow(distance: np.ndarray) -> tuple[np.ndarray, bool]:
    fits = not len(distance) or (int(distance.min()) >= 0 and int(distance.max()) < _NARROW)
    return (distance.astype(np.uint32), True) if fits else (distance, False)


def read_cell(stage: Stage[Any], shape: Shape, segments: Sequence[Segment], body: bytes, shift: int) -> Arrivals:
    """The rows of a cell; `shift` moves their segments behind those of other cells.

    At one time, rows of an earlier source of the stage come before those of a later one.
    """
    batch = pa.ipc.read_record_batch(pa.py_buffer(body), shape.schema(stage))
    rows = batch.num_rows
    columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
    own = {name: columns[name].to_numpy() for name in ("ts", "low", "segment", "behind") if name in columns}
    ts = np.add(own["ts"], shape.first, dtype=np.int64)
    segment = own.get("segment", np.zeros(rows, np.int32))
    ranks = [s.rank for s in stage.sources]
    highs = np.array(
        [(ranks[s.source] << SOURCE_BITS) + (s.partition if shape.partitioned else s.place[0]) for s in segments], np.int64
    )
    lows = np.array([s.place[1] for s in segments], np.int64)
    if shape.segments:
        high, low = highs[segment], np.add(own["low"], lows[segment], dtype=np.int64)
    else:
        high, low = np.full(rows, highs[0]), np.add(own["low"], lows[0], dtype=np.int64)
    behind = own["behind"].view(np.bool_) if shape.behind else np.zeros(rows, np.bool_)
    inputs = [
        pa.array(ts).view(arrow_type(spec.type)) if i in shape.times else columns[f"x{i}"] for i, spec in enumerate(stage.inputs)
    ]
    return Arrivals(Keys(ts, high, low), segment + shift, behind, batch_of(inputs, rows))


_KEY = [("sign", pa.int8()), ("ts", pa.int64()), ("high", pa.int64()), ("low", pa.int64()), ("sub", pa.binary())]


def write_feed(stage: Stage[Any], changes: Changes, buckets: int) -> list[pa.Buffer | bytes]:
    """Results of another stage on their way to this one, whose inputs are their columns: one cell per bucket."""
    none = np.zeros(len(changes), np.int64)
    order, ends = route(stage, changes.rows, Placed(changes.keys, none, none[:1], [(0, 0)], 0), buckets)
    key = [pa.array(changes.sign), *to_arrow(changes.keys)]
    return _cut(pa.RecordBatch.from_arrays([*key, *changes.rows.columns], schema=_feed_schema(stage)), order, ends)


def read_feed(stage: Stage[Any], source: int, body: bytes, segment: int) -> Arrivals:
    """The rows of such a cell; `segment` is that of all of them."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(body), _feed_schema(stage))
    sign, *key = batch.columns[: len(_KEY)]
    keys, rows = from_arrow(key).of_source(stage.sources[source].rank), batch.num_rows
    inputs = batch_of(batch.columns[len(_KEY) :], rows)
    return Arrivals(keys, np.full(rows, segment, np.int32), np.zeros(rows, np.bool_), inputs, sign.to_numpy())


def _feed_schema(stage: Stage[Any]) -> pa.Schema:
    return pa.schema([*_KEY, *((f"x{i}", arrow_type(spec.type)) for i, spec in enumerate(stage.inputs))])


def feed_segment(source: int) -> Segment:
    """What stands in the header for the rows of a feed: they come from no partition, and say nothing of its frontier."""
    return Segment(0, (0, 0), START_OF_TIME, 0, source)


def batch_of(columns: list[pa.Array], rows: int) -> pa.RecordBatch:
    """The inputs of a stage, also if there are none and they have only a length."""
    return named_batch(columns, [f"x{i}" for i in range(len(columns))], rows)


def join_arrivals(parts: list[Arrivals]) -> Arrivals | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    segment, behind = (np.concatenate([getattr(p, name) for p in parts]) for name in ("segment", "behind"))
    sign = None
    if any(p.sign is not None for p in parts):
        sign = np.concatenate([np.ones(len(p), np.int8) if p.sign is None else p.sign for p in parts])
    return Arrivals(Keys.concat([p.keys for p in parts]), segment, behind, concat([p.inputs for p in parts]), sign)
