"""Rows on their way to the buckets: judged within their own segment, dropped where no query wants them, split by bucket.

A segment is a run of rows of one source partition whose order is known here; what lies before it is known to the bucket only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.keys import Keys
from headrace.kernels.keys.segments import NO_PROMISE, judge
from headrace.plan.time import START_OF_TIME
from headrace.program.stage import Anywhere, Disorder, OneBucket, Stage
from headrace.runtime.clock import Segment
from headrace.runtime.intake import all_true, routes_of


@dataclass(slots=True)
class Placed:
    """Rows of one stream with their time and place: partition, position, and the segment they are in."""

    keys: Keys
    segment: np.ndarray  # index into `segments`, ascending
    partition: np.ndarray  # per segment
    place: list[tuple[int, int]]  # per segment
    now: int
    partitioned: bool = False  # the high half of a position is the partition, else that of the segment's place
    promise: np.ndarray | None = None  # of a row that is punctuation: no more rows up to this time; else NO_PROMISE

    def events(self) -> tuple[Placed, np.ndarray | None]:
        """Without punctuation, and which of the rows that leaves; None: all."""
        if self.promise is None or not (self.promise != NO_PROMISE).any():
            return self, None
        rows = np.flatnonzero(self.promise == NO_PROMISE)
        return self.take(rows), rows

    def take(self, rows: np.ndarray) -> Placed:
        return Placed(self.keys.take(rows), self.segment[rows], self.partition, self.place, self.now, self.partitioned)


def segments_of(rows: Placed, disorder: Disorder) -> tuple[list[Segment], np.ndarray]:
    """What buckets must know of every segment, and which rows are behind their own segment."""
    delay = disorder.delay if isinstance(disorder.delay, int) else None
    limit = rows.now + disorder.ahead if disorder.ahead is not None else np.iinfo(np.int64).max
    count = len(rows.place)
    highest, promised = np.full((2, count), START_OF_TIME, np.int64)
    behind = np.zeros(len(rows.keys), np.bool_)
    promise = rows.promise if rows.promise is not None else np.zeros(0, np.int64)
    # Where a stream is complete, or read by arrival, punctuation is still no event, but says nothing.
    promise_limit = limit if disorder.punctuated else NO_PROMISE
    judge(rows.keys.ts, promise, rows.segment, -1 if delay is None else delay, limit, promise_limit, highest, promised, behind)
    sizes = np.bincount(rows.segment, minlength=count)
    segments = [
        Segment(int(rows.partition[i]), rows.place[i], int(highest[i]), int(sizes[i]), promised=int(promised[i]))
        for i in range(count)
    ]
    return segments, behind


def bucket_of(stage: Stage[Any], inputs: pa.RecordBatch, rows: Placed, chosen: np.ndarray | None, buckets: int) -> np.ndarray:
    """The bucket of every row that was chosen: by its key, in one bucket, or anywhere."""
    if isinstance(stage.route, Anywhere):
        place = rows.keys.low ^ rows.keys.high
        return np.asarray((place if chosen is None else place[chosen]) % buckets, np.int64)
    count = len(rows.keys) if chosen is None else len(chosen)
    if isinstance(stage.route, OneBucket):
        return np.zeros(count, np.int64)
    keys = [inputs.column(i) for i in stage.route.inputs]
    routes = routes_of(keys if chosen is None else [key.take(pa.array(chosen)) for key in keys], count)
    return (routes % np.uint32(buckets)).astype(np.int64)


def route(stage: Stage[Any], inputs: pa.RecordBatch, rows: Placed, buckets: int) -> tuple[np.ndarray | None, list[int]]:
    """The rows that some query wants, by bucket and in arrival order, and where each bucket ends. None: all, as they are."""
    keep = _wanted(stage, inputs)
    chosen = None if keep is None else np.flatnonzero(keep)
    if buckets == 1:
        return chosen, [len(rows.keys) if chosen is None else len(chosen)]
    bucket = bucket_of(stage, inputs, rows, chosen, buckets).astype(np.uint16)  # 16 bits: a radix sort
    order = np.argsort(bucket, kind="stable")
    return (order if chosen is None else chosen[order]), np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()


def _wanted(stage: Stage[Any], inputs: pa.RecordBatch) -> np.ndarray | None:
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
