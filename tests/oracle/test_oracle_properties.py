"""The oracle against itself: what it calls final never changes, and each row ends in one place."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import settings

from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import canonical_row
from headrace.plan.query import Emit
from headrace.testing.conformance import Run
from headrace.testing.reach import hold
from headrace.testing.strategies import Case, cases, sampled

COUNT = max(20, settings.default.max_examples // 6)


def a_case(seed: int) -> Case:
    return sampled(cases(most_queries=1), seed)


def bag(rows):
    return Counter((key, canonical_row(row)) for key, row in rows)


def final_stays(run: Run, seed: int) -> None:
    query = replace(run.script.queries[0], emit=Emit.CHANGES)
    expected = expected_after_each_batch(query, run.batches)
    for earlier, later in pairwise(expected):
        assert earlier.outcomes[0].frontier <= later.outcomes[0].frontier
        assert bag(earlier.final) <= bag(later.final)
        assert bag(earlier.final) <= bag(earlier.changes)
        past = [key for key, _ in later.final]
        new = past[len(earlier.final) :]
        assert past == sorted(past)
        assert not earlier.final or not new or earlier.final[-1][0] < new[0]
    assert expected[-1].final == expected[-1].changes


def each_row_has_its_place(run: Run, seed: int) -> None:
    outcomes = [e.outcomes[0] for e in run.expected[run.script.queries[0].name]]
    promises = run.script.streams[0].punctuation is not None
    for batch, outcome in zip(run.batches, outcomes, strict=False):
        rows = len(outcome.admitted) + len(outcome.late) + len(outcome.rejected)
        arrived = len(batch.rows["payments"])
        assert rows == arrived or (promises and rows < arrived)  # a promise is no row
    positions = [e.key[1:] for o in outcomes for e in (*o.admitted, *o.late, *o.rejected)]
    assert len(positions) == len(set(positions))


def test_what_is_final_stays_and_the_end_is_complete():
    hold(a_case, final_stays, COUNT)


def test_each_row_is_admitted_late_or_rejected():
    hold(a_case, each_row_has_its_place, COUNT, first=10_000)
