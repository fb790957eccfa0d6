"""Patterns in the conformance suite: what follows the oracle conforms at every level, and what does not is caught."""

from __future__ import annotations

from itertools import pairwise

import pytest
from naive_engine import NaiveEngine

from headrace.oracle.rows import canonical_row
from headrace.plan.query import Emit
from headrace.sql import parse_script
from headrace.testing.conformance import ConformanceError, Run, check_outputs, check_query
from headrace.testing.engine import Change
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.tables import merge_batches, read_batches

STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, id STRING) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY {delay} SECONDS;\n"
    for name, delay in (("a", 2), ("b", 6), ("c", 2))
)
PATTERN = "EVENT SEQ(a, !(b), c) WHERE a.id = b.id AND b.id = c.id WITHIN 8 SECONDS RETURN a.id, a.at AS a_at, c.at AS c_at"
LEVELS = {
    "changes": "CHANGES", "final": "FINAL", "in_order": "FINAL IN ORDER", "slack": "FINAL IN ORDER USING KSLACK",
}  # fmt: skip
SCRIPT = parse_script(STREAMS + "".join(f"{PATTERN} EMIT {emit} INTO {name};\n" for name, emit in LEVELS.items()))
TABLES = {
    "a": "| now | at | id |\n|1|1|p|\n|1|2|q|\n|4|8|p|\n|6|20|p|\n|8|30|p|",
    "b": "| now | at | id |\n|2|1|q|\n|4|3|p|\n|5|9|q|\n|7|20|p|\n|8|30|p|",
    "c": "| now | at | id |\n|2|5|p|\n|3|6|q|\n|4|9|p|\n|8|30|q|",
}
BATCHES = merge_batches(*(read_batches(s.name, s.schema, TABLES[s.name]) for s in SCRIPT.streams))


RUN = Run.of(SCRIPT, BATCHES)


def told(run, may=False):
    """What an engine gives out that follows the oracle: what it must, or all that it may."""
    out = [{} for _ in (*run.batches, None)]
    for query in run.script.queries:
        before = {}
        for output, want in zip(out, run.expected[query.name], strict=True):
            final = want.may if may and want.may is not None else want.final
            rows = want.changes if query.emit is Emit.CHANGES else final
            now = {(key, canonical_row(row)): Change(1, key, row) for key, row in rows}
            gone = [Change(-1, c.key, c.row) for i, c in before.items() if i not in now]
            output[query.name] = gone + [c for i, c in now.items() if i not in before]
            before = now
    return out


def test_an_engine_that_follows_the_oracle_conforms():
    check_outputs(RUN, told(RUN))
    check_outputs(RUN, told(RUN, may=True))


def test_the_case_has_something_at_every_level():
    changes = RUN.expected["changes"]
    assert any(x not in two.changes for one, two in pairwise(changes) for x in one.changes)
    assert all(any(w.final for w in RUN.expected[name][:-1]) for name in ("final", "in_order", "slack"))
    assert [w.final for w in RUN.expected["slack"]] != [w.final for w in RUN.expected["in_order"]]


def reports_twice(output):
    """And takes one of them back in the same batch: what is out in the end is right."""
    more = [c for c in output["changes"] if c.sign > 0]
    output["changes"] += [*more, *(Change(-1, c.key, c.row) for c in more)]


def cancels_nothing(output):
    """And gives it again after that, once too often."""
    output["changes"] = [x for c in output["changes"] for x in (Change(-1, c.key, c.row), c, c) if c.sign > 0]


def keeps_what_is_forbidden(output):
    output["changes"] = [c for c in output["changes"] if c.sign > 0]


def takes_back_what_is_final(output):
    output["final"] += [Change(-1, c.key, c.row) for c in output["final"]]


def turns_the_order(output):
    output["slack"].reverse()


def slack_as_in_order(output):
    output["slack"] = list(output["in_order"])


def in_order_as_slack(output):
    output["in_order"] = list(output["slack"])


def final_as_in_order(output):
    """Waits for streams that no negation names."""
    output["final"] = list(output["in_order"])


def final_as_changes(output):
    """Releases what nothing has forbidden so far."""
    output["final"] = [c for c in output["changes"] if c.sign > 0]


WRONG = {
    reports_twice: "is out already", cancels_nothing: "cancels no", keeps_what_is_forbidden: "rows are out",
    takes_back_what_is_final: "taken back", turns_the_order: "goes back", slack_as_in_order: "rows are out",
    in_order_as_slack: "rows are out", final_as_in_order: "rows are out", final_as_changes: "rows are out",
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_caught_and_named(wrong):
    outputs = told(RUN)
    for output in outputs:
        wrong(output)
    with pytest.raises(ConformanceError, match=WRONG[wrong]):
        check_outputs(RUN, outputs)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_oracle_asks_for_can_be_done(seed):
    """No level asks for a row to be taken back, or for order keys to go back, that may not be."""
    case = seeded_pattern_case(seed)
    run = Run.of(case.script, case.batches)
    for may in (False, True):
        check_outputs(run, told(run, may=may))


def test_a_whole_engine_runs():
    check_query(SCRIPT, BATCHES[:4], NaiveEngine, buckets=(1,), restarts=(2,), recuts=0)
