"""Repeated places of patterns: what a late event does to the group of a result that is out."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine

STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, x INT) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY {delay} SECONDS;\n"
    for name, delay in (("a", 9), ("b", 20), ("c", 7))
)
EMITS = ("CHANGES", "FINAL", "FINAL IN ORDER", "FINAL IN ORDER USING KSLACK")


def arrivals(*texts: str) -> list[Batch]:
    """One batch per text: `b3=7` is an event of stream b at second 3 with x = 7."""
    batches = []
    for i, text in enumerate(texts):
        rows: dict[str, list[Arrival]] = {}
        for word in text.split():
            at, x = word[1:].split("=")
            rows.setdefault(word[0], []).append(Arrival((from_micros(int(at) * SECOND), int(x))))
        batches.append(Batch((i + 1) * SECOND, rows))
    return batches


def said(sql: str, *texts: str) -> list[list[str]]:
    """What leaves in every batch, as text."""
    engine = LocalEngine(parse_script(f"{STREAMS} {sql} INTO o"), 1)
    out = []
    for batch in arrivals(*texts):
        out.append([f"{'+' if c.sign > 0 else '-'} {' '.join(map(str, c.row))}" for c in engine.push(batch)["o"]])
    return out


INSIDE = "EVENT SEQ(a, b+, c) WITHIN 30 SECONDS RETURN a.x, COUNT(b) AS n, SUM(b.x) AS total, c.x AS last"


def test_a_late_event_of_a_group_corrects_the_result():
    assert said(INSIDE, "a1=1 b2=2 c9=9", "b5=5") == [["+ 1 1 2 9"], ["- 1 1 2 9", "+ 1 2 7 9"]]


def test_a_group_that_changes_twice_in_a_batch_is_said_once():
    assert said(INSIDE, "a1=1 b2=2 c9=9", "b5=5 b4=4")[1] == ["- 1 1 2 9", "+ 1 3 11 9"]


def test_an_event_before_the_first_of_a_group_makes_it_another_result():
    assert said(INSIDE, "a1=1 b5=5 c9=9", "b3=3") == [["+ 1 1 5 9"], ["- 1 1 5 9", "+ 1 2 8 9"]]


def test_what_changes_no_value_is_not_said():
    sql = "EVENT SEQ(a, b+, c) WITHIN 30 SECONDS RETURN a.x, MAX(b.x) AS most"
    assert said(sql, "a1=1 b2=5 c9=9", "b5=4", "b6=7") == [["+ 1 5"], [], ["- 1 5", "+ 1 7"]]


def test_a_result_that_waits_for_the_clock_has_the_group_of_that_time():
    sql = "EVENT SEQ(a, b+, c, !(b d)) WHERE d.x > 90 WITHIN 10 SECONDS RETURN COUNT(b) AS n"
    assert said(sql, "a1=1 b2=1 c4=1", "b3=1", "a20=1 b20=1 c20=1", "b3=2") == [[], [], ["+ 2"], ["- 2", "+ 3"]]


CASES = {
    "start": ("SEQ(b+ b, c) WHERE b.x < c.x", "COUNT(b) AS n, c.x"),
    "inside": ("SEQ(a, b+ b, c) WHERE b.x < c.x", "COUNT(b) AS n, SUM(b.x) AS total"),
    "end": ("SEQ(a, b+ b) WHERE a.x < b.x", "COUNT(b) AS n, FIRST(b.x) AS f"),
    "next": ("SEQ(a, b+ b, c) NEXT MATCH WHERE b.x < c.x", "COUNT(b) AS n"),
    "strict": ("SEQ(a, b+ b, c) STRICT WHERE b.x < c.x", "COUNT(b) AS n"),
    "strict start": ("SEQ(b+ b, c) STRICT WHERE b.x < c.x", "COUNT(b) AS n"),
    "strict end": ("SEQ(a, b+ b) STRICT WHERE a.x < b.x", "COUNT(b) AS n"),
    "one stream": ("SEQ(b f, b+ b, b l) WHERE f.x < b.x AND b.x < l.x", "COUNT(b) AS n, COUNT(DISTINCT b.x) AS d"),
    "two groups": ("SEQ(b+ f, a, b+ l) WHERE f.x <> a.x AND a.x <> l.x", "COUNT(f) AS n, SUM(l.x) FILTER (WHERE l.x > 2) AS s"),
    "aggregates": ("SEQ(a, b+, c)", "AVG(b.x) AS m, VARIANCE(b.x) AS v, MIN(b.at) AS f, LAST(b.x) l, COUNT(DISTINCT b.x) AS d"),
}  # fmt: skip


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("pattern", CASES)
def test_groups_conform(pattern, emit):
    what, shown = CASES[pattern]
    script = parse_script(f"{STREAMS} EVENT {what} WITHIN 12 SECONDS RETURN {shown} EMIT {emit} INTO o")
    late = ("a1=1 b3=2 c8=5", "b5=3 b4=9", "b2=1 a6=0", "c7=3 b7=4", "b9=2 a4=2 b6=1")
    batches = arrivals(*late, "c20=9 b18=1 a15=3", "b16=2 b17=7", "c31=1 b30=1")
    losses = pattern == "inside"  # late and rejected rows of the same input are the same whatever the pattern
    check_query(script, batches, local_engine, restarts=(2, 4, 6), recuts=2, losses=losses)


def test_a_row_that_forbids_is_tried_with_its_own_values():
    """Behind a choice that another row forbids, too: here a2 and b3, before b4 is tried with a1."""
    sql = "EVENT SEQ(a, !(b), c) WHERE b.x > a.x WITHIN 30 SECONDS RETURN a.x"
    assert said(sql, "a1=10 a2=1 b3=5 c9=1", "b4=20") == [["+ 10"], ["- 10"]]


def test_a_gap_is_searched_before_the_last_event_is_known():
    """With as many events in memory as there is room for, the last of them far away."""
    sql = "EVENT SEQ(a, !(b), c, a z) WHERE b.x > a.x WITHIN 30 SECONDS RETURN a.x"
    others = " ".join(f"c{i}=1" for i in range(5, 16))
    assert said(sql, f"b2=5 c3=1 a4=9 {others}", "a1=1 c100=1") == [[], []]


def test_letting_go_spares_what_may_still_be_in_a_group():
    """All of b up to second 20 are of one group once c comes; c is silent, a and b are not."""
    texts = [f"a{i}={i % 3} b{i}={i % 5}" for i in range(1, 40, 2)]
    script = parse_script(f"{STREAMS} {INSIDE} EMIT FINAL INTO o")
    check_query(script, arrivals(*texts, "c20=1", "c21=2 b60=1", "a61=1 c61=1"), local_engine, restarts=(5, 20))


def test_consolidate_tells_what_stayed_from_what_was_never_there():
    from headrace.changes.algebra import consolidate

    events = [(1, 1), (2, 0), (3, -1), (3, 1), (4, 1), (4, 0), (4, -1), (5, -1), (6, 0), (6, -1), (7, -1), (7, 1), (7, 0)]
    sequences, signs = (np.array(column, np.int64) for column in zip(*events, strict=True))
    made, unmade, stayed = consolidate(sequences.reshape(-1, 1), signs)
    assert (made.ravel().tolist(), unmade.ravel().tolist(), stayed.ravel().tolist()) == ([1], [5, 6], [2, 3, 7])
