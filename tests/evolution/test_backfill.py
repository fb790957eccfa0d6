"""A query that is filled: all that had come is read again for it, and it goes on as one that was there from the start."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from headrace.errors import StateError
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.query import Script
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.local import Fill, LocalEngine

STREAM = "CREATE STREAM p (id INT, card STRING, at TIMESTAMP) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 3 SECONDS;"
COUNTED = "SELECT id, COUNT(*) AS n FROM p [RANGE {} SECONDS] GROUP BY card EMIT {} INTO counted;"
LOOKED = "SELECT window_end, card, COUNT(*) AS n FROM p [SIZE {} SECONDS] GROUP BY card EMIT {} INTO looked;"
BATCHES = [
    Batch(number, {"p": [Arrival((i, "ab"[i % 2], from_micros(i * SECOND))) for i in range(number * 5, number * 5 + 5)]})
    for number in range(8)
]


def script(seconds: int, emit: str = "FINAL") -> Script:
    return parse_script(STREAM + COUNTED.format(seconds, emit) + LOOKED.format(seconds, emit))


def rows_of(outputs: list[dict], query: str) -> list[tuple[int, tuple]]:
    return [(change.sign, change.row) for output in outputs for change in output[query]]


def run(engine: LocalEngine, batches: list[Batch]) -> list[dict]:
    return [*(engine.push(batch) for batch in batches), engine.finish(99)]


def saved(old: Script) -> tuple[list[dict], object]:
    engine = LocalEngine(old, 2)
    return [engine.push(batch) for batch in BATCHES[:4]], engine.save()


@pytest.mark.parametrize("buckets", [2, 3])
def test_what_is_final_goes_on_without_a_gap(buckets: int):
    """Under its own name, over a longer window: what was not final when it was changed is said with the longer one."""
    said, state = saved(script(6))
    with pytest.raises(StateError, match="query 'counted' cannot begin complete"):
        LocalEngine(script(20), buckets, state)
    fill = Fill(frozenset(("counted", "looked")), [Batch(3, {"p": [a for b in BATCHES[:4] for a in b.rows["p"]]})])
    after = run(LocalEngine(script(20), buckets, state, fill=fill), BATCHES[4:])
    for query in ("counted", "looked"):
        first, then = rows_of(said, query), rows_of(after, query)
        assert first
        known = {row[0] for _, row in first}
        whole = rows_of(run(LocalEngine(script(20), 2), BATCHES), query)
        if query == "counted":
            assert sorted(then) == sorted(row for row in whole if row[1][0] not in known)
        else:  # looks at the frontier and before it were told, whatever they saw
            last = max(known)
            assert sorted(then) == sorted(row for row in whole if row[1][0] > last)


def test_what_is_corrected_begins_as_if_it_were_new():
    """What it had said under CHANGES it does not take back: that was of a shorter window."""
    _, state = saved(script(6, "CHANGES"))
    fill = Fill(frozenset(("counted", "looked")), BATCHES[:4])
    engine = LocalEngine(script(20, "CHANGES"), 2, state, fill=fill)
    then = rows_of(run(engine, BATCHES[4:]), "counted")
    whole = rows_of(run(LocalEngine(script(20, "CHANGES"), 2), BATCHES), "counted")
    assert sorted(then) == sorted(row for row in whole if row[1][0] >= 20)


def test_a_run_that_ended_goes_on_beside_a_query_that_is_filled():
    """What the end had released of the one is taken back; the other never knew of an end."""
    old, new = script(6, "CHANGES"), script(20, "CHANGES")
    looked, longer = old.queries[1], replace(new.queries[0], name="longer")
    engine = LocalEngine(replace(old, queries=(looked,)), 2)
    said = run(engine, BATCHES[:4])
    assert said[-1]["looked"], "the end has released something"
    went_on = LocalEngine(
        replace(new, queries=(looked, longer)), 3, engine.save(), fill=Fill(frozenset(("longer",)), BATCHES[:4])
    )
    after = run(went_on, BATCHES[4:])
    whole = run(LocalEngine(replace(new, queries=(looked, longer)), 2), BATCHES)
    assert net(rows_of([*said, *after], "looked")) == net(rows_of(whole, "looked"))
    assert net(rows_of(after, "longer")) == net([row for row in rows_of(whole, "longer") if row[1][0] >= 20])


def net(changes: list[tuple[int, tuple]]) -> Counter[tuple]:
    total: Counter[tuple] = Counter()
    for sign, row in changes:
        total[row] += sign
    return Counter({row: count for row, count in total.items() if count})


def test_only_what_is_asked_for_is_filled():
    """Beside a query that begins complete, and one that is refused."""
    old, new = script(6), script(20)
    _, state = saved(replace(old, queries=old.queries[:1]))
    fill = Fill(frozenset(("counted",)), BATCHES[:4])
    with pytest.raises(StateError, match="query 'looked' cannot begin complete"):
        LocalEngine(new, 2, state, fill=fill)
    shorter = replace(script(4).queries[0], name="brief")
    engine = LocalEngine(replace(new, queries=(new.queries[0], shorter)), 2, state, fill=fill)
    assert engine.lowered.apart == {"counted": "filled"}
    assert len(engine.lowered.stages) == 2
