"""Rows that end no beginning of a pattern are marked and passed by; late rows that may begin one take the marks away."""

from __future__ import annotations

from random import Random

import pytest

from headrace.kernels.patterns import stacks
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine

STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, k INT, x INT) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY 20 SECONDS;\n"
    for name in "abcd"
)
THREE = "EVENT SEQ(a, b, c) WHERE a.k = b.k AND b.k = c.k AND b.x > a.x + 2 WITHIN 30 SECONDS RETURN a.x AS x, b.x AS y, c.x AS z"


def batch(number: int, *events: tuple[str, int, int, int]) -> Batch:
    rows: dict[str, list[Arrival]] = {}
    for name, at, k, x in events:
        rows.setdefault(name, []).append(Arrival((from_micros(at * SECOND), k, x)))
    return Batch((number + 1) * SECOND, rows)


def marked(engine: LocalEngine) -> set[int]:
    """The times of the events that are marked."""
    (processor,) = engine._processors.values()
    events = processor.step.events
    rows = events.rows[events.there]
    return {int(ts) // SECOND for ts in rows[rows[:, stacks.DEAD] != 0, stacks.TS]}


def test_what_ends_no_beginning_is_marked():
    engine = LocalEngine(parse_script(f"{STREAMS} {THREE} EMIT CHANGES INTO o"), 1)
    assert engine.push(batch(0, ("a", 1, 1, 5), ("b", 2, 1, 6), ("b", 3, 1, 9), ("b", 4, 2, 9), ("c", 5, 1, 1)))["o"]
    assert marked(engine) == {2, 4}


def test_a_late_event_takes_marks_away():
    engine = LocalEngine(parse_script(f"{STREAMS} {THREE} EMIT CHANGES INTO o"), 1)
    assert not engine.push(batch(0, ("b", 12, 1, 6), ("b", 13, 2, 9), ("c", 14, 1, 1)))["o"]
    assert marked(engine) == {12, 13}
    assert len(engine.push(batch(1, ("a", 11, 1, 3)))["o"]) == 1
    assert marked(engine) == {13}
    assert len(engine.push(batch(2, ("c", 16, 1, 2)))["o"]) == 1


PATTERNS = {
    "first two": THREE,
    "four places": """EVENT SEQ(a, b, c, d) WHERE b.x > a.x AND c.x < b.x WITHIN 25 SECONDS
        RETURN a.x AS w, b.x AS x, c.x AS y, d.x AS z""",
    "over two": """EVENT SEQ(a, b, c, d) WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND c.x = a.x + 1 WITHIN 40 SECONDS
        RETURN a.x AS w, b.x AS x, c.x AS y, d.x AS z""",
    "first and last": """EVENT SEQ(a, b, c) WHERE a.k = b.k AND b.k = c.k AND c.x > a.x + 2 WITHIN 30 SECONDS
        RETURN a.x AS x, b.x AS y, c.x AS z""",
    "all with the last, and a negation": """EVENT SEQ(a, b, !(c n), d)
        WHERE d.x > a.x AND d.x < b.x + 2 AND n.x = d.x AND n.k = a.k WITHIN 25 SECONDS RETURN a.x AS x, b.x AS y, d.x AS z""",
    "one stream": """EVENT SEQ(a p, a q, a r) WHERE p.k = q.k AND q.k = r.k AND q.x > p.x AND r.x < q.x WITHIN 25 SECONDS
        RETURN p.x AS x, q.x AS y, r.x AS z""",
    "equal": "EVENT SEQ(a, b, c) WHERE a.x = b.x WITHIN 25 SECONDS RETURN a.x AS x, b.k AS y, c.x AS z",
    "negation inside": """EVENT SEQ(a, !(d n), b, c) WHERE a.k = b.k AND b.x > a.x AND n.x = a.x WITHIN 25 SECONDS
        RETURN a.x AS x, b.x AS y, c.x AS z""",
    "negation at the end": """EVENT SEQ(a, b, !(c n)) WHERE a.k = b.k AND b.k = n.k AND b.x > a.x + 1 AND n.x > b.x
        WITHIN 25 SECONDS RETURN a.x AS x, b.x AS y""",
    "next": """EVENT SEQ(a, b, c) NEXT MATCH WHERE a.k = b.k AND b.k = c.k AND b.x > a.x + 1 WITHIN 25 SECONDS
        RETURN a.x AS x, b.x AS y, c.x AS z""",
    "repeated": """EVENT SEQ(a, b+, c) WHERE a.k = c.k AND b.x > a.x WITHIN 25 SECONDS
        RETURN a.x AS x, COUNT(b) AS n, c.x AS z""",
    "memory": f"{THREE.replace('WITHIN 30 SECONDS', 'WITHIN 100 SECONDS')} WITH (memory = 8)",
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_disordered_input_gives_what_the_oracle_says(name):
    rng = Random(name)
    events = [(rng.choice("abcd"), at, rng.randrange(2), rng.randrange(6)) for at in range(90)]
    events.sort(key=lambda e: e[1] + (rng.randrange(20) if rng.random() < 0.4 else 0))
    batches = [batch(i, *events[start : start + 7]) for i, start in enumerate(range(0, len(events), 7))]
    script = parse_script(f"{STREAMS} {PATTERNS[name]} EMIT CHANGES INTO o")
    losses = name == "first two"  # what is late or rejected does not depend on the pattern
    check_query(script, batches, local_engine, buckets=(1, 3), restarts=(2, 5), recuts=1, losses=losses, seed=1)
