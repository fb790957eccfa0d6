"""The experiments measure what they say: metrics by hand on a few calls, sequences counted by trying all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from benchmarks import patterns_departures, patterns_windows
from benchmarks.patterns_count import count_by_hand, ordered_times
from benchmarks.patterns_figures import KNOWING, PAPERS, figures
from benchmarks.patterns_metrics import Trace, measured, standing_of
from benchmarks.patterns_page import block, departure_block, fill, grid
from benchmarks.patterns_questions import Place, Question, difference, questions, stream
from benchmarks.patterns_runs import UNIT, Disk, Run, Strategy, script_of
from benchmarks.patterns_seeds import Keep, point, spread
from benchmarks.payments import table
from benchmarks.report import NotMeasured

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


def brute_force(rows: list[dict], question: Question) -> set[tuple[int, ...]]:
    """From the definition alone: after every payment that begins, the first of its card that fits each following place."""
    by_card: dict[int, list[dict]] = {}
    for row in sorted(rows, key=lambda r: r["at"]):
        by_card.setdefault(row["card"], []).append(row)

    def is_at(row: dict, place: Place) -> bool:
        return (place.above is None or row["amount"] > place.above) and (place.upto is None or row["amount"] <= place.upto)

    out = set()
    for card, own in by_card.items():
        for start, first in enumerate(own):
            if not is_at(first, question.places[0]):
                continue
            chosen, at, forbidden = [first], start, []
            for place in question.places[1:]:
                if place.negated:
                    forbidden.append(place)
                    continue
                nxt = next((i for i in range(at + 1, len(own)) if is_at(own[i], place)), None)
                if nxt is None or any(is_at(row, p) for row in own[at + 1 : nxt] for p in forbidden):
                    chosen = []
                    break
                chosen, at, forbidden = [*chosen, own[nxt]], nxt, []
            if chosen and (chosen[-1]["at"] - first["at"]).total_seconds() <= 3600:
                out.add((card, *(row["id"] for row in chosen)))
    return out


@pytest.mark.parametrize("number", range(5), ids=["0.05", "0.5", "three", "negation", "late"])
def test_matches_by_hand_are_right(number):
    question = questions(stream(3_000, 1), (0.05, 0.5))[number]
    spec = stream(3_000, 1, question.late)
    found = question.by_hand(spec)
    assert {tuple(row) for row in found.tolist()} == brute_force(table(spec).to_pylist(), question)
    assert len(found) > 80


def test_a_negation_forbids_some_matches():
    *_, negated, _ = questions(stream(3_000, 1), (0.1,))
    free = Question("free", tuple(p for p in negated.places if not p.negated))
    assert 0 < len(negated.by_hand(stream(3_000, 1))) < len(free.by_hand(stream(3_000, 1)))


def test_flink_is_asked_the_same():
    two, three, negated, late = questions(stream(3_000, 1), (0.1,))
    assert two.flink()["pattern"] == "A X0*? D"
    assert three.flink()["pattern"] == "A X0*? B X1*? D"
    assert negated.flink()["pattern"] == "A X0*? D"
    forbids = negated.places[1]
    assert f"X0 AS NOT (X0.amount > {forbids.above!r} AND X0.amount <= {forbids.upto!r})" in negated.flink()["define"]
    assert late.flink()["delay_seconds"] == 10.0
    assert [q.flink()["columns"] for q in (two, three)] == ["card,a_id,d_id", "card,a_id,b_id,d_id"]


def test_a_difference_between_matches_names_them():
    some, other = np.array([[1, 2, 3], [1, 4, 5]]), np.array([[1, 2, 3], [1, 4, 6]])
    assert difference(some, some) is None
    assert "missing [(1, 4, 6)], too many [(1, 4, 5)]" in str(difference(some, other))
    assert difference(np.concatenate((some, some)), some) is not None  # twice the same is a difference too


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
    row = "| a cell |" * 20
    filled = fill(page, "figure 4", f"many words {'of prose ' * 20}\n\n{row}").split("\n")
    assert row in filled
    assert max(len(line) for line in filled if line != row) <= 120
    with pytest.raises(ValueError, match="no place for figure 5"):
        fill(page, "figure 5", "new")


def test_a_figure_as_a_table():
    lines = {
        "a": [{"x": 1, "stored": 2.5, "spread": {"stored": [2.25, 3.0]}}, {"x": 2, "stored": None}],
        "b": [{"x": 2, "stored": 1234.0}],
    }
    headings, rows = grid({"x": "share", "metric": "stored", "lines": lines}, "stored")
    assert headings == ["share", "a", "b"]
    assert rows == [["1", "2.5 (2.25 to 3)", ""], ["2", "", "1,234"]]


def test_a_figure_says_how_many_seeds_it_has_and_what_must_be_said_beside_it():
    details = {
        "x": "share", "metric": "stored", "title": "State", "note": "Two kinds.", "seeds": 5, "events": 4000,
        "lines": {"a": [{"x": 1, "stored": 2.5}]},
    }  # fmt: skip
    text = block(details, "pictures/a.png")
    assert "![State](pictures/a.png)\n\nTwo kinds.\n" in text
    assert "the median of 5 seeds and what they lie between, 4,000 rows in each run" in text


def test_an_experiment_says_what_it_found():
    details = {
        "question": "Why?", "experiment": "This.", "verdict": "not explained", "because": "It was not.", "headings": ["x"],
        "rows": [["1"]],
    }  # fmt: skip
    assert (
        departure_block(details) == "**Asked.** Why? **Tried.** This.\n\n| x |\n| ---: |\n| 1 |\n\n**Not explained.** It was not."
    )


def test_a_point_is_the_median_of_its_seeds_and_has_their_spread():
    found = [measured(trace_of([(2, 1, (10, 14))], busy=(1, 1, ms, 1, 1)), 5, UNIT) for ms in (4, 9, 2)]
    at = point(7.0, found, {"busy_ms": lambda f: f[0].busy_ms}, "a figure")
    assert at == {"x": 7.0, "busy_ms": 4.0, "spread": {"busy_ms": [2.0, 9.0]}, "seeds": 3}


def test_a_point_without_results_is_an_error():
    with pytest.raises(NotMeasured, match="figure 4"):
        spread([1.0, None], "figure 4")


def test_figures_with_promises_say_which():
    by_number = {f.number: f for f in figures(1_000)}
    for number in (12, 16):
        kinds = {r.pog for r in by_number[number].runs if r.strategy is Strategy.CONSERVATIVE}
        assert kinds == {"delay", "sent"}
        assert PAPERS in by_number[number].note
        assert KNOWING in by_number[number].note


def test_runs_that_were_measured_are_found_again(tmp_path):
    keep, run = Keep(tmp_path / "runs"), Run(Strategy.AGGRESSIVE, 3, rows=100)
    keep.begin(resume=True)
    assert keep.find(run) is None
    keep.keep(run, measured(trace_of([(2, 1, (10, 14))]), 5, UNIT))
    keep.begin(resume=True)
    assert keep.find(run)[0].results == 1
    assert keep.find(replace(run, seed=2)) is None
    keep.begin(resume=False)
    assert keep.find(run) is None


def test_a_frame_that_is_read_delays_those_behind_it_on_a_slow_disk():
    runs = [Run(Strategy.AGGRESSIVE, 3, rows=100, disk=Disk(48, n)) for n in (1, 15)]
    seen = {}
    for run, loads in zip(runs, ((3, 0, 3, 0, 3), (0, 0, 1, 0, 0)), strict=True):
        trace = replace(trace_of([(2, 1, (10, 14)), (3, 1, (10, 16)), (4, 1, (12, 18))]), loaded=np.array(loads))
        seen[run] = [measured(trace, 5, UNIT)]
    verdict = patterns_departures._disk(runs).read(seen)
    assert verdict.headings == ["ms a read", "1", "15"]
    slow = [float(cell.replace(",", "")) for cell in verdict.rows[-1][1:]]
    assert slow[0] > slow[1]
