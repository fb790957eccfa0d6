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
    partitioned: bool = False  # the high half of a position is the partition, else that of the segment's place


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


def route(stage: Stage, inputs: pa.RecordBatch, rows: Placed, buckets: int) -> tuple[np.ndarray | None, list[int]]:
    """The rows that some query wants, by bucket and in arrival order, and where each bucket ends. None: all, as they are."""
    keep = _wanted(stage, inputs)
    chosen = None if keep is None else np.flatnonzero(keep)
    if buckets == 1:
        return chosen, [len(rows.ts) if chosen is None else len(chosen)]
    bucket = bucket_of(stage, inputs, rows, buckets).astype(np.uint16)  # 16 bits: a radix sort
    if chosen is not None:
        bucket = bucket[chosen]
    order = np.argsort(bucket, kind="stable")
    return (order if chosen is None else chosen[order]), np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()


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
