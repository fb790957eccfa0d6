"""The clock and the judgement of a batch against the oracle, where the rows of a partition come in many segments.

Spark brings them so: a segment for every file, and in whatever order the tasks were done.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.changes.keys import Keys
from headrace.exchange.pack import Placed, segments_of
from headrace.kernels.keys.segments import NO_PROMISE
from headrace.oracle.admission import Admission, Arrival, Batch
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import FrameSource, Stream
from headrace.runtime.clock import Clock, Header
from headrace.stages.lower import disorder_of

SCHEMA = Schema.of(at="BIGINT", upto="BIGINT")
Came = tuple[int, bool, int]  # a time, whether it is punctuation, the partition


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    clauses = {name: draw(st.sampled_from((None, None, 3))) for name in ("idle", "ahead", "end_after")}
    return Stream(
        "s", FrameSource("s", ("p", "o")), SCHEMA, timestamp=Expr.of("at"), timestamp_unit=1, punctuation=Expr.of("upto"),
        delay=draw(st.sampled_from((None, None, 0, 2, 5))), **clauses,
    )  # fmt: skip


came = st.tuples(st.integers(0, 20), st.integers(0, 3).map(lambda n: n == 0), st.integers(0, 1))


def placed(batch: list[Came], cuts: set[int], low: int, now: int) -> Placed:
    """Rows with a new segment where the partition changes and at every cut."""
    segment, places, partitions = [], [], []
    for i, (_, _, partition) in enumerate(batch):
        if i == 0 or i in cuts or partition != batch[i - 1][2]:
            places.append((0, low + i))
            partitions.append(partition)
        segment.append(len(places) - 1)
    high, numbers = np.array([p for _, _, p in batch], np.int64), np.arange(low, low + len(batch), dtype=np.int64)
    promise = np.array([t if promised else NO_PROMISE for t, promised, _ in batch], np.int64)
    ts = np.array([0 if promised else t for t, promised, _ in batch], np.int64)
    return Placed(
        Keys(ts, high, numbers), np.array(segment, np.int32), np.array(partitions, np.int64), places, now, True, promise
    )


@given(st.data())
def test_late_rows_and_the_frontier_are_those_of_the_oracle(data):
    stream = data.draw(streams())
    disorder = disorder_of(stream)
    clock, door = Clock(disorder), Admission(stream)
    now = low = 0
    for batch in data.draw(st.lists(st.lists(came, max_size=8), max_size=6)):
        now += data.draw(st.integers(0, 4))
        rows = placed(batch, data.draw(st.sets(st.integers(1, 8))), low, now)
        segments, behind = segments_of(rows, disorder)
        order = data.draw(st.permutations(range(len(segments))))
        header = Header(now, tuple(segments[i] for i in order))
        bounds = clock.thresholds(header)[np.argsort(order)] if order else np.zeros(0, np.int64)
        clock.advance(header)
        clock = Clock.load(disorder, clock.dump())
        events, kept = rows.events()
        index = np.arange(len(batch)) if kept is None else kept
        late = behind[index] | (events.keys.ts < bounds[events.segment])
        arrivals = [Arrival((None, t) if promised else (t, None), p) for t, promised, p in batch]
        want = door.push(Batch(now, {"s": arrivals}))
        assert events.keys.ts[late].tolist() == [e.key[0] for e in want.late]
        assert events.keys.ts[~late].tolist() == [e.key[0] for e in want.admitted]
        assert (clock.frontier, clock.latest, clock.final_before) == (want.frontier, want.clock, want.final_before)
        low += len(batch)


def test_punctuation_of_a_complete_stream_is_no_event_and_makes_nothing_late():
    stream = Stream("s", FrameSource("s"), SCHEMA, timestamp=Expr.of("at"), punctuation=Expr.of("upto"))
    disorder = replace(disorder_of(stream), punctuated=False)
    rows = placed([(5, False, 0), (9, True, 0), (4, False, 0)], set(), 0, 0)
    (segment,), behind = segments_of(rows, disorder)
    assert (segment.highest, segment.promised, behind.any()) == (5, NO_PROMISE, False)
    assert rows.events()[0].keys.ts.tolist() == [5, 4]
