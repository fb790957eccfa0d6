"""The experiments measure what they say: metrics by hand on a few calls, sequences counted by trying all."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from benchmarks import patterns_windows
from benchmarks.patterns_count import count_by_hand, ordered_times
from benchmarks.patterns_figures import figures
from benchmarks.patterns_flink import Question, count_matches, stream
from benchmarks.patterns_metrics import Trace, measured, standing_of
from benchmarks.patterns_page import fill, grid
from benchmarks.patterns_runs import UNIT, Run, Strategy, script_of
from benchmarks.payments import table

MS = 1_000_000  # of nanoseconds


def trace_of(changes: list[tuple[int, int, tuple[int, ...]]], busy=(1, 1, 4, 1, 1)) -> Trace:
    """Rows 10, 12, 14, .. arrive a unit apart; changes are (call, sign, ids)."""
    n = len(busy)
    call, sign, ids = zip(*changes, strict=True)
    return Trace(
        np.arange(10, 10 + 2 * n, 2), np.arange(n) * UNIT, np.array(busy) * MS, np.arange(n) + 1,
        np.array(call), np.array(sign, np.int8), np.array(ids),
    )  # fmt: skip


def test_latency_is_from_the_latest_arrival_to_the_call_that_gave_the_result():
    found, line = measured(trace_of([(2, 1, (10, 14)), (4, 1, (12, 10))]), 8, UNIT)
    assert found.wait_units == (0 + 3) / 2
    assert found.busy_ms == (4 + (1 + 4 + 1 + 1)) / 2
    assert found.execution_us == 1000.0
    assert found.stored == 3
    assert (found.results, found.late_results, found.calls) == (2, 1, 5)
    # a unit lasts 2 ms: the third call begins at 4 ms and is done at 8, the fourth waits for it, and so does the fifth
    assert line.queued_ms(2 * MS / UNIT) == pytest.approx(((8 - 4) + (10 - 2)) / 2)


def test_results_that_are_taken_back_and_those_of_the_end_are_in_no_latency():
    changes = [(1, 1, (10, 12)), (2, -1, (10, 12)), (3, 1, (10, 16)), (5, 1, (12, 18))]
    found, _ = measured(trace_of(changes), 5, UNIT)
    assert (found.results, found.compensations, found.unreleased, found.wait_units) == (2, 1, 1, 0.0)


def test_a_result_may_come_go_and_come_again():
    trace = trace_of([(1, 1, (10, 12)), (2, -1, (10, 12)), (3, 1, (10, 12))])
    assert standing_of(trace).tolist() == [False, False, True]


@pytest.mark.parametrize("signs", [(1, 1), (-1,), (1, -1, -1)])
def test_a_result_twice_or_a_minus_of_nothing_fails(signs):
    with pytest.raises(RuntimeError, match="twice"):
        standing_of(trace_of([(i, s, (10, 12)) for i, s in enumerate(signs)]))


@pytest.mark.parametrize("length", [3, 4])
def test_sequences_are_counted_right(length):
    run = Run(Strategy.AGGRESSIVE, length, 0.3, 0.3, rate=6.0, rows=300)
    times = ordered_times(run)
    positive = [t for t in run.types if t != "C"]
    wanted = 0
    for choice in product(*(times[t] for t in positive)):
        fits = all(a < b for a, b in pairwise(choice)) and (choice[-1] >> 4) - (choice[0] >> 4) <= 20 * UNIT
        wanted += fits and not any(choice[1] < c < choice[2] for c in times["C"])
    assert count_by_hand(run) == wanted > 100


def test_matches_of_payments_are_counted_right():
    spec, question = stream(3_000), Question(0.5, 20.0, 46.0)
    rows = table(spec).to_pylist()
    wanted = 0
    for first in (r for r in rows if r["amount"] <= question.begins):
        ends = [r for r in rows if r["card"] == first["card"] and r["at"] > first["at"] and r["amount"] > question.ends]
        wanted += bool(ends) and (min(r["at"] for r in ends) - first["at"]).total_seconds() <= 3600
    assert count_matches(spec, question) == wanted > 100


def test_windows_of_any_length_have_the_same_matches():
    cases = {case.name: case for case in patterns_windows.CASES}
    found = {}
    for name in ("a fifth late", "in vain"):
        case = cases[name]
        rows = table(case.stream(20_000)).slice(0, 5_000)
        found[name] = [patterns_windows.once(case, minutes, rows) for minutes in (60, 600)]
    assert [r.details["matches"] for r in found["a fifth late"]] == [found["a fifth late"][0].details["matches"]] * 2
    assert found["a fifth late"][0].details["matches"] > 1_000
    assert [r.details["matches"] for r in found["in vain"]] == [0, 0]
    assert patterns_windows.shown([r for some in found.values() for r in some]).row_count == 4


def test_every_figure_has_its_runs_and_every_run_a_plan():
    drawn = figures(1_000)
    assert [f.number for f in drawn] == list(range(4, 17))
    for run in {r for f in drawn for r in f.runs if r.strategy is not Strategy.CONSERVATIVE}:
        assert script_of(run).queries[0].name == "matches"


def test_figures_over_the_same_runs_share_them():
    by_number = {f.number: set(f.runs) for f in figures(1_000)}
    assert by_number[4] == by_number[7]
    assert by_number[5] == by_number[6] == by_number[8]
    assert by_number[13] == by_number[14]


def test_the_page_is_filled_between_its_marks():
    page = "a\n<!-- figure 4 -->\nold\n<!-- /figure 4 -->\nb\n"
    assert fill(page, "figure 4", "new") == "a\n<!-- figure 4 -->\n\nnew\n\n<!-- /figure 4 -->\nb\n"
    with pytest.raises(ValueError, match="no place for figure 5"):
        fill(page, "figure 5", "new")


def test_a_figure_as_a_table():
    lines = {"a": [{"x": 1, "stored": 2.5}, {"x": 2, "stored": None}], "b": [{"x": 2, "stored": 1234.0}]}
    headings, rows = grid({"x": "share", "metric": "stored", "lines": lines})
    assert headings == ["share", "a", "b"]
    assert rows == [["1", "2.5", ""], ["2", "", "1,234"]]
