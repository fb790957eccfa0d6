"""A front end judges its events as a bucket judges the partition of a source."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.oracle.admission import Admission, Arrival, Batch
from headrace.oracle.rows import to_micros
from headrace.plan.expr import Expr
from headrace.plan.stream import FileSource, Stream
from headrace.serve.stamps import Stamping
from headrace.testing.strategies import PAYMENTS, seeded_arrivals


@pytest.mark.parametrize("ahead", [None, 0, 5_000_000])
@pytest.mark.parametrize("delay", [0, 2_000_000, 10_000_000])
def test_the_same_events_are_late(delay, ahead):
    """As row by row from the design: every event a batch of its own."""
    stream = Stream("payments", FileSource("p.csv"), PAYMENTS, timestamp=Expr.of("at"), delay=delay, ahead=ahead)
    wider = replace(stream, delay=2 * delay + 10_000_000)  # arrivals keep to the bound of their stream
    late = 0
    for seed in range(10):
        door, stamping = Admission(stream), Stamping(stream)
        for batch in seeded_arrivals(Random(seed), wider, 30):
            for arrival in batch.rows["payments"]:
                if arrival.values[0] is None:
                    continue
                outcome = door.push(Batch(batch.now, {"payments": [Arrival(arrival.values)]}))
                if outcome.rejected:
                    continue
                behind = stamping.event(to_micros(arrival.values[0]), batch.now)
                assert behind == bool(outcome.late), (seed, arrival)
                late += behind
    assert late > 20
