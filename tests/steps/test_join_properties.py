"""Joins against the oracle: any kind, windows and keys, each stream with its own disorder, in any cut, restarted anywhere."""

from __future__ import annotations

from random import Random

import pytest

from headrace.oracle.admission import Batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import Run, check_bounded_state
from headrace.testing.disorder import disordered
from headrace.testing.local import local_engine
from headrace.testing.reach import hold
from headrace.testing.strategies import sampled
from join_cases import joins
from seeds import FIRST, agrees, examples


def conforms(run: Run, seed: int) -> None:
    agrees(run, seed, (4, 1), (3,), (1,), (7,), restarts=(1, 3))


def test_joins_conform():
    hold(lambda seed: sampled(joins(), seed), conforms, examples(10, 3), first=FIRST)


STREAMS = """
CREATE STREAM p (at TIMESTAMP, card STRING, x DOUBLE) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 3 SECONDS;
CREATE STREAM l (at TIMESTAMP, card STRING, x DOUBLE) SOURCE FILE('l.csv') TIMESTAMP BY at DELAY 3 SECONDS;
"""
RANGES = "SELECT p.card, p.x, l.x AS y FROM p [RANGE 10 SECONDS] LEFT JOIN l [RANGE 5 SECONDS] ON p.card = l.card"
LAST = "SELECT p.card, p.x, l.x AS y FROM p [NOW] JOIN l [ROWS 2 PARTITIONED BY card] ON p.card = l.card"
ROWS = "SELECT p.card, p.x, l.x AS y FROM p [ROWS 5], l [ROWS 7] WHERE p.card = l.card"


@pytest.mark.parametrize(("sql", "fresh_keys"), [(RANGES, True), (RANGES, False), (LAST, False), (ROWS, True)])
@pytest.mark.parametrize("emit", ["CHANGES", "FINAL"])
def test_state_of_a_join_levels_off(sql, fresh_keys, emit):
    rng = Random(0)
    parts = []
    for name in ("p", "l"):
        events = []
        for i in range(1200):
            key = f"card {i // 40 * 4 + rng.randrange(4)}" if fresh_keys else f"card {rng.randrange(8)}"
            events.append((i * SECOND // 10, (from_micros(i * SECOND // 10), key, rng.choice((0.1, 0.2, 1e9)))))
        parts.append(disordered(name, events, seed=1, share=0.3, up_to=3 * SECOND, batches=120))
    both = [Batch(max(a.now, b.now), {**a.rows, **b.rows}) for a, b in zip(*parts, strict=True)]
    check_bounded_state(parse_script(f"{STREAMS} {sql} EMIT {emit} INTO o"), both, local_engine, buckets=2, tolerance=1.4)
