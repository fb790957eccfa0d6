"""Sequence patterns against the oracle: any places, conditions and selection, each stream with its own disorder, in any cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.oracle.admission import Batch, admit
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import check_bounded_state, check_query
from headrace.testing.disorder import disordered
from headrace.testing.local import local_engine
from headrace.testing.pattern_strategies import pattern_cases, seeded_pattern_case
from headrace.testing.rows import from_micros

RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much]


@settings(suppress_health_check=RELAXED, max_examples=max(8, settings.default.max_examples // 4))
@given(st.integers(0, 2**32))
def test_patterns_conform(seed):
    case = seeded_pattern_case(seed)
    check_query(case.script, case.batches, local_engine, buckets=(4, 1), restarts=(1, 3), recuts=1, seed=seed)


@settings(suppress_health_check=RELAXED, max_examples=max(4, settings.default.max_examples // 8))
@given(pattern_cases(most_rows=12))
def test_small_patterns_conform(case):
    """The same, of a kind that shrinks when it fails."""
    check_query(case.script, case.batches, local_engine, buckets=(4, 1), restarts=(1, 3), recuts=1)


@settings(suppress_health_check=RELAXED, max_examples=max(6, settings.default.max_examples // 6))
@given(st.integers(0, 2**32))
def test_patterns_over_streams_that_promise_conform(seed):
    """All streams are punctuated, most have no DELAY; promises are lost, late, out of order, or never made."""
    case = seeded_pattern_case(seed, promises=True)
    check_query(case.script, case.batches, local_engine, buckets=(4, 1), restarts=(1, 3), recuts=1, seed=seed)


def test_promises_move_frontiers_and_mostly_hold():
    """Else the property above would say little."""
    late = admitted = moved = 0
    for seed in range(20):
        case = seeded_pattern_case(seed, promises=True)
        for stream in case.script.streams:
            outcomes = admit(replace(stream, delay=None), case.batches, end=False)
            late += sum(len(o.late) for o in outcomes)
            admitted += sum(len(o.admitted) for o in outcomes)
            moved += sum(a.frontier < b.frontier for a, b in pairwise(outcomes))
    assert 0 < late < admitted / 5
    assert moved > admitted / 10


STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, id STRING, x DOUBLE) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY 3 SECONDS;\n"
    for name in ("shelf", "checkout", "door")
)
THEFT = "EVENT SEQ(shelf s, !(checkout c), door e) WHERE s.id = c.id AND c.id = e.id WITHIN 5 SECONDS RETURN s.id"
UNPAID = "EVENT SEQ(shelf s, !(checkout c)) WHERE s.id = c.id WITHIN 5 SECONDS RETURN s.id"
ANY_BOOK = "EVENT SEQ(!(checkout c), shelf s, door e) WHERE s.x < e.x WITHIN 1 SECOND RETURN s.id, e.x"
READ = "EVENT SEQ(shelf s, checkout+ c, door e) WHERE s.id = c.id AND c.id = e.id WITHIN 5 SECONDS RETURN s.id, COUNT(c) AS n"
NEAREST = "EVENT SEQ(shelf s, door e) NEXT MATCH WHERE s.id = e.id WITHIN 5 SECONDS RETURN s.id"
EMITS = ("CHANGES", "FINAL", "FINAL IN ORDER", "FINAL IN ORDER USING KSLACK")


def readings(name: str, seed: int, fresh_keys: bool) -> list[Batch]:
    """A steady stream; with fresh keys each of them is soon silent for ever."""
    rng = Random(seed)
    events = []
    for i in range(1200):
        key = f"book {i // 40 * 4 + rng.randrange(4)}" if fresh_keys else f"book {rng.randrange(8)}"
        events.append((i * SECOND // 10, (from_micros(i * SECOND // 10), key, rng.choice((0.1, 0.2, 1e9)))))
    return disordered(name, events, seed=seed, share=0.3, up_to=3 * SECOND, batches=120)


QUERIES = {"theft": THEFT, "unpaid": UNPAID, "any": ANY_BOOK, "read": READ, "nearest": NEAREST}
LEVELS = [("theft", emit) for emit in EMITS] + [(name, "CHANGES") for name in QUERIES if name != "theft"] + [("unpaid", "FINAL")]


@pytest.mark.parametrize(("name", "emit", "fresh_keys"), [(*level, True) for level in LEVELS] + [("theft", "CHANGES", False)])
def test_state_of_a_pattern_levels_off(name, emit, fresh_keys):
    parts = [readings(stream, seed, fresh_keys) for seed, stream in enumerate(("shelf", "checkout", "door"))]
    batches = [
        Batch(max(b.now for b in some), {k: v for b in some for k, v in b.rows.items()}) for some in zip(*parts, strict=True)
    ]
    check_bounded_state(
        parse_script(f"{STREAMS} {QUERIES[name]} EMIT {emit} INTO o"), batches, local_engine, buckets=2, tolerance=1.4
    )
