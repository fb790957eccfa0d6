"""What waits for K-slack, and what comes behind it."""

from __future__ import annotations

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.nodes import Late, base_streams
from headrace.sql import parse_script
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine

STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, id STRING) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY {delay} SECONDS;\n"
    for name, delay in (("a", 1), ("b", 5), ("c", 2))
)
SLACK = "EMIT FINAL IN ORDER USING KSLACK"
PAIRS = f"EVENT SEQ(a x, b y) WITHIN 1 HOUR RETURN y.id {SLACK} INTO pairs;"
LATE = "SELECT id FROM late(b) INTO lost;"


def batches(text: str) -> list[Batch]:
    """`a3 b4; b5`: one batch is what stands before a semicolon."""
    out = []
    for number, part in enumerate(text.split(";")):
        rows: dict[str, list[Arrival]] = {}
        for word in part.split():
            rows.setdefault(word[0], []).append(Arrival((from_micros(int(word[1:]) * 1_000_000), word)))
        out.append(Batch(number, rows))
    return out


def lost(sql: str, arrivals: str) -> list[list[str]]:
    """What is in `lost` after each batch, by the engine, which agrees with the oracle."""
    script, given = parse_script(STREAMS + sql), batches(arrivals)
    check_query(script, given, local_engine, buckets=(3, 1), recuts=2, losses=False)
    engine = LocalEngine(script, buckets=2)
    return [sorted(c.row[0] for c in engine.push(batch)["lost"]) for batch in given]


def test_a_row_behind_what_has_been_taken_is_late_once():
    arrivals = "a1 b2; a30; b3 b24 b25; b26 b18"
    assert lost(PAIRS + LATE, arrivals) == [[], [], ["b24", "b3"], ["b18"]]
    twice = PAIRS + PAIRS.replace("INTO pairs", "INTO others").replace("1 HOUR", "2 HOURS")
    assert lost(twice + LATE, arrivals) == [[], [], ["b24", "b3"], ["b18"]]


def test_without_slack_only_its_own_frontier_makes_a_row_late():
    assert lost(PAIRS.replace(" USING KSLACK", "") + LATE, "a1 b2; a30; b3 b24 b25; b26 b18") == [[], [], [], ["b18"]]


def test_the_query_that_is_furthest_ahead_decides():
    both = PAIRS + f"EVENT SEQ(b x, c y) WITHIN 1 HOUR RETURN y.id {SLACK} INTO others;"
    assert lost(both + LATE, "a1 b2 c40; a30; b34 b35 b3") == [[], [], ["b3", "b34"]]
    assert lost(f"{both} SELECT id FROM late(a) WHERE id <> 'a2' INTO lost;", "a1; c90 b9; a2 a3; a4") == [[], [], ["a3"], []]


def test_a_plan_of_late_rows_knows_what_is_taken_together_with_them_and_only_that():
    script = parse_script(f"{STREAMS} {LATE} SELECT id FROM late(c) INTO other; {PAIRS}")
    nodes = {q.name: q.node for q in script.queries}
    assert [s.name for s in base_streams(nodes["lost"])] == ["b", "a"]
    assert [s.name for s in base_streams(nodes["other"])] == ["c"]
    (below,) = (nodes["lost"].input,)
    assert isinstance(below, Late)
    assert str(below) == "Late b, and behind K-slack over a, b"


def test_rows_that_wait_are_in_memory():
    engine = LocalEngine(parse_script(STREAMS + PAIRS), buckets=1)
    ((_, processor),) = engine._processors.items()
    stored = []
    for batch in batches("a1 b2; a3; a7; a60"):
        engine.push(batch)
        stored.append(processor.step.stored)
    assert stored == [2, 3, 4, 5]
