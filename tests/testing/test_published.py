"""What is published is held against the oracle batch by batch: what comes right in the end may have been wrong on the way."""

from __future__ import annotations

import pytest

from headrace.sql import parse_script
from headrace.testing.conformance import ConformanceError, Run, drive
from headrace.testing.local import local_engine
from headrace.testing.published import Signed, check_published
from headrace.testing.tables import read_batches

SQL = """CREATE STREAM p (at TIMESTAMP, id INT, ok BOOLEAN) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;
SELECT id, COUNT(*) AS n FROM p [RANGE 5 SECONDS] EMIT CHANGES INTO changes;
SELECT id, COUNT(*) AS n FROM p [RANGE 5 SECONDS] EMIT FINAL INTO final;
EVENT SEQ(p a, !(p b), p c) WHERE NOT b.ok WITHIN 5 SECONDS RETURN a.id AS x, c.id AS y EMIT CHANGES INTO matches;"""
ROWS = """
    | now | at | id | ok    |
    | 1   | 1  | 1  | true  |
    | 1   | 4  | 2  | true  |
    | 2   | 2  | 3  | false |
    | 3   | 9  | 4  | true  |
    | 4   | 30 | 5  | true  |
"""


@pytest.fixture(scope="module")
def run():
    script = parse_script(SQL)
    return Run.of(script, read_batches("p", script.streams[0].schema, ROWS))


@pytest.fixture
def published(run) -> dict[str, list[list[Signed]]]:
    """What a right engine publishes, in batches of its own among which some are empty."""
    outputs = drive(local_engine(run.script, 3, None), run)
    return {q.name: [*([(c.sign, c.row) for c in o[q.name]] for o in outputs), []] for q in run.script.queries}


def check(run, published, name):
    query = next(q for q in run.script.queries if q.name == name)
    check_published(query, published[name], run.expected[name])


def test_a_right_engine_passes_with_empty_batches_and_with_the_end_among_the_last_rows(run, published):
    for name, outputs in published.items():
        check(run, published, name)
        check(run, {name: [[], outputs[0], [], *outputs[1:]]}, name)
        check(run, {name: [*outputs[:-3], outputs[-3] + outputs[-2]]}, name)


def test_a_minus_that_cancels_nothing_fails(run, published):
    published["changes"][0].insert(0, (-1, (7, 7)))
    published["changes"][-1].append((1, (7, 7)))  # right in the end
    with pytest.raises(ConformanceError, match="cancels no"):
        check(run, published, "changes")


def test_a_match_that_is_told_twice_fails(run, published):
    told = next(change for changes in published["matches"] for change in changes if change[0] > 0)
    published["matches"][0].append(told)
    published["matches"][-1].append((-1, told[1]))  # right in the end
    with pytest.raises(ConformanceError, match="right for no batch"):
        check(run, published, "matches")


def test_a_correction_that_comes_late_fails(run, published):
    late = published["changes"].pop(1)
    published["changes"].insert(3, late)
    with pytest.raises(ConformanceError):
        check(run, published, "changes")


def test_a_result_that_leaves_too_early_or_is_taken_back_under_final_fails(run, published):
    last = [change for changes in published["final"] for change in changes][-1]
    early = [[last], *([c for c in changes if c != last] for changes in published["final"])]
    with pytest.raises(ConformanceError, match="right for no batch"):
        check(run, {"final": early}, "final")
    published["final"][-1] += [(1, (7, 7)), (-1, (7, 7))]
    with pytest.raises(ConformanceError, match="forbids"):
        check(run, published, "final")


def test_what_never_comes_fails(run, published):
    with pytest.raises(ConformanceError):
        check(run, {"changes": [*published["changes"][:2]]}, "changes")
