"""Rows on their way to the buckets: judged within their own segment, dropped where no query wants them, split by bucket.

A segment is a run of rows of one source partition whose order is known here; what lies before it is known to the bucket only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.kernels.hashing import hash_columns
from headrace.kernels.segments import judge
from headrace.plan.time import START_OF_TIME
from headrace.runtime.clock import Segment
from headrace.runtime.intake import all_true
from headrace.runtime.processor import Arrivals
from headrace.stages.program import Disorder, Stage


@dataclass(slots=True)
class Placed:
    """Rows of one stream with their time and place: partition, position, and the segment they are in."""

    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    segment: np.ndarray  # index into `segments`, ascending
    partition: np.ndarray  # per segment
    place: list[tuple[int, int]]  # per segment
    now: int


def segments_of(rows: Placed, disorder: Disorder) -> tuple[list[Segment], np.ndarray]:
    """What buckets must know of every segment, and which rows are behind their own segment."""
    delay = disorder.delay if isinstance(disorder.delay, int) else None
    limit = rows.now + disorder.ahead if disorder.ahead is not None else np.iinfo(np.int64).max
    count = len(rows.place)
    highest, behind = np.full(count, START_OF_TIME, np.int64), np.zeros(len(rows.ts), np.bool_)
    judge(rows.ts, rows.segment, delay if delay is not None else -1, limit, highest, behind)
    sizes = np.bincount(rows.segment, minlength=count)
    segments = [Segment(int(rows.partition[i]), rows.place[i], int(highest[i]), int(sizes[i])) for i in range(count)]
    return segments, behind


def bucket_of(stage: Stage, inputs: pa.RecordBatch, rows: Placed, buckets: int) -> np.ndarray:
    """The bucket of every row: by its key, in one bucket, or anywhere."""
    if stage.route is None:
        return ((rows.low ^ rows.high) % buckets).astype(np.int64)
    if not stage.route:
        return np.zeros(len(rows.ts), np.int64)
    high, _ = hash_columns([inputs.column(i) for i in stage.route], len(rows.ts))
    # The low bits number keys inside a bucket's table; take others here, so that tables stay evenly filled.
    return ((high >> np.uint64(40)) % np.uint64(buckets)).astype(np.int64)


def split(stage: Stage, inputs: pa.RecordBatch, rows: Placed, behind: np.ndarray, buckets: int) -> dict[int, Arrivals]:
    """The rows that some query wants, per bucket, in arrival order."""
    keep = _wanted(stage, inputs)
    arrivals = Arrivals(rows.ts, rows.high, rows.low, rows.segment, behind, inputs)
    bucket = bucket_of(stage, inputs, rows, buckets)
    if keep is not None:
        chosen = np.flatnonzero(keep)
        arrivals, bucket = arrivals.take(chosen), bucket[chosen]
    if buckets == 1 or (len(bucket) and bucket.min() == bucket.max()):
        return {int(bucket[0]): arrivals} if len(bucket) else {}
    order = np.argsort(bucket.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
    ordered = arrivals.take(order)
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    out = {}
    for b in range(buckets):
        start, stop = (int(ends[b - 1]) if b else 0), int(ends[b])
        if stop > start:
            out[b] = _slice(ordered, start, stop)
    return out


def _slice(rows: Arrivals, a: int, b: int) -> Arrivals:
    return Arrivals(rows.ts[a:b], rows.high[a:b], rows.low[a:b], rows.segment[a:b], rows.behind[a:b], rows.inputs.slice(a, b - a))


def _wanted(stage: Stage, inputs: pa.RecordBatch) -> np.ndarray | None:
    """Rows for which all masks of one of the wanted sets hold; None for every row."""
    if not stage.keep:
        return None
    out = np.zeros(inputs.num_rows, np.bool_)
    for masks in stage.keep:
        some = all_true(inputs, masks)
        if some is None:
            return None
        out |= some
    return out
