"""What came out otherwise than in the paper, and an experiment about each: what would have to be true, and whether it is.

An experiment has a guess, runs that would tell, and a bound fixed before it is run; so its verdict, `explained` or `not
explained`, is computed and not written. All runs have the seeds of the figures.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import command, patterns_apart
from .patterns_figures import BUSIEST, LATE, PAGE_THRESHOLDS, QUICK_ROWS, effort
from .patterns_metrics import MILLI, Timeline
from .patterns_page import number
from .patterns_runs import NEGATED, UNIT, Disk, Run, Strategy
from .patterns_seeds import Found, all_of, spread
from .report import Result

Seen = dict[Run, list[Found]]
SAME = 0.1  # what differs by less is the same


@dataclass(frozen=True)
class Verdict:
    """What an experiment says."""

    explained: bool
    because: str
    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Departure:
    """A question, the runs that would tell, and how to read them."""

    name: str  # of its place in the page
    question: str
    experiment: str
    runs: tuple[Run, ...]
    read: Callable[[Seen], Verdict]


def run(log: command.Log, options: argparse.Namespace) -> list[Result]:
    """All experiments; runs that figures have are not run again."""
    asked = departures(QUICK_ROWS if options.quick else options.events, options.quick)
    seeds, workers, keep = effort(options)
    seen = all_of(log, (r for d in asked for r in d.runs), 1 if options.quick else seeds, workers, keep)
    out = []
    for departure in asked:
        found = departure.read(seen)
        verdict = "explained" if found.explained else "not explained"
        log.say(f"figure {departure.name}: {verdict}: {found.because}")
        details = {
            "departure": departure.name, "question": departure.question, "experiment": departure.experiment, "verdict": verdict,
            "because": found.because, "headings": found.headings, "rows": found.rows,
        }  # fmt: skip
        every = [f for r in departure.runs for f in seen[r]]
        busy = sum(float(line.busy.sum()) for _, line in every) / 1e9
        out.append(Result(f"departure {departure.name}", sum(m.calls for m, _ in every), busy, details))
    return out


def departures(rows: int, quick: bool = False) -> list[Departure]:
    """One for each thing that is not as in the paper; quickly, with the shortest queries and the ends of the axes only."""
    lengths, late, pages = ((3, 4), LATE[::4], PAGE_THRESHOLDS[::11]) if quick else ((3, 5, 7), LATE, PAGE_THRESHOLDS)
    aggressive, slack = (Run(s, lengths[-1], rows=rows) for s in (Strategy.AGGRESSIVE, Strategy.KSLACK))
    conservative = replace(aggressive, strategy=Strategy.CONSERVATIVE)
    compared = replace(aggressive, length=min(5, lengths[-1]), pog="delay", pog_share=0.2)
    disk = replace(aggressive, length=min(5, lengths[-1]), positive_share=0.8, negative_share=0.8)
    return [
        _positive([replace(aggressive, positive_share=s) for s in late]),
        _first([replace(aggressive, length=n, negative_share=s) for n in lengths[:-1] for s in (0.0, 0.5)]),
        _searched([replace(aggressive, negative_share=s) for s in late]),
        _longer([replace(aggressive, length=n, negative_share=0.5, max_delay=d) for d in (10.0, 20.0, 40.0) for n in lengths]),
        _gaps([
            replace(both_late(conservative, s), pog=kind, pog_share=share)
            for kind in ("delay", "sent") for share in (0.2, 1.0) for s in (late[0], late[-1])
        ]),
        _completed([both_late(replace(slack, length=3), s) for s in late]),
        _sorting([both_late(slack, s) for s in (late[0], late[-1])]),
        _disk([replace(disk, disk=Disk(48, n)) for n in pages]),
        _again([both_late(compared, s) for s in late],
               [both_late(replace(compared, strategy=Strategy.CONSERVATIVE), s) for s in late]),
    ]  # fmt: skip


def both_late(run: Run, share: float) -> Run:
    return replace(run, positive_share=share, negative_share=share)


def _positive(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        cost = [middle(m.execution_us for m, _ in seen[r]) for r in runs]
        results = [middle(m.results for m, _ in seen[r]) for r in runs]
        expected = [middle(_expected(seen[runs[0]][i][1], line) for i, (_, line) in enumerate(seen[r])) for r in runs]
        growth, foreseen = cost[-1] / cost[0], expected[-1] / expected[0]
        rows = [
            cells(r.positive_share * 100, c, n, e / expected[0] * cost[0])
            for r, c, n, e in zip(runs, cost, results, expected, strict=True)
        ]
        headings = ["late positive events, %", "µs an event", "results", "µs an event, from calls and results"]
        if abs(growth - 1.0) < SAME:
            return Verdict(True, f"There is nothing left to explain: from 10 to 50% it grows {growth:.2f} x.", headings, rows)
        why = f"From 10 to 50% it grows {growth:.2f} x; calls and the results they give would make it {foreseen:.2f} x."
        return Verdict(abs(growth / foreseen - 1.0) < SAME, why, headings, rows)

    return Departure(
        "4", "Why does length 7 take longer from 40% late positive events on?",
        "If it is results, not lateness, that cost: of the runs with 10%, so much a call and so much a "
        "result (least squares); what "
        "would that give for the calls and results of the others?", tuple(runs), read,
    )  # fmt: skip


def _expected(base: Timeline, line: Timeline) -> float:
    """Microseconds of all calls, if a call and a result cost what they cost in `base`."""
    given = np.bincount(base.call, minlength=len(base.busy))
    by = np.linalg.lstsq(np.column_stack([np.ones(len(given)), given]), base.busy.astype(float), rcond=None)[0]
    return float(by[0] * len(line.busy) + by[1] * len(line.call)) * 1e-3


def _first(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        rows, apart = [], []
        for none, half in zip(runs[::2], runs[1::2], strict=True):
            order = [m.execution_us for m in patterns_apart.in_a_row(none, 3)]
            shares = [middle(m.execution_us for m, _ in seen[r]) for r in (none, half)]
            apart.append((order[0] / order[-1], shares[0] / shares[1]))
            rows.append(cells(none.length, *order, *shares))
        headings = ["length", "0%, first in its process: µs", "second", "third", "0%, seeds: µs", "50%, seeds: µs"]
        said = "; ".join(
            f"length {r.length}: first by third {a:.2f} x, 0% by 50% {b:.2f} x"
            for r, (a, b) in zip(runs[::2], apart, strict=True)
        )
        gone = all(b < 1.0 + SAME for _, b in apart)
        first = all(a > 1.0 + SAME for a, _ in apart)
        why = "0% is no longer dearer" if gone else "0% is dearer, and so is whatever runs first" if first else "0% is dearer"
        return Verdict(gone or first, f"{why} ({said}).", headings, rows)

    return Departure(
        "5", "Why were lengths 3 and 5 slowest where nothing is late?",
        "It was the first run of its line, once. So: with seeds in turn, and the same run three times in a new process.",
        tuple(runs), read,
    )  # fmt: skip


def _searched(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        rows, last = [], 0.0
        for r in runs:
            parts = [_late_negated(with_seed(r, i), line) for i, (_, line) in enumerate(seen[r])]
            mean_late, mean_other, last = (middle(p[k] for p in parts) for k in range(3))
            rows.append(cells(r.negative_share * 100, mean_late, mean_other, last * 100))
        headings = ["late negated events, %", "a call with one: µs", "any other: µs", "of all time, %"]
        why = f"With 50% late, the calls that bring a late C take {last:.1%} of the time."
        return Verdict(last < SAME, why, headings, rows)

    return Departure(
        "8", "Why do late negated events cost no time, in figures 5 and 8?",
        "If they only search for what they lie in, and compute nothing again, their calls are a small part of the time.",
        tuple(runs), read,
    )  # fmt: skip


def _late_negated(run: Run, line: Timeline) -> tuple[float, float, float]:
    late = patterns_apart.late_of(run, line.row, NEGATED)
    busy = line.busy * 1e-3
    if not late.any():
        return 0.0, float(busy.mean()), 0.0
    return float(busy[late].mean()), float(busy[~late].mean()), float(busy[late].sum() / busy.sum())


def _longer(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        delays, lengths = (list(dict.fromkeys(getattr(r, name) for r in runs)) for name in ("max_delay", "length"))
        back = {(r.max_delay, r.length): middle(m.compensations for m, _ in seen[r]) for r in runs}
        rows = [cells(d, *(back[d, n] for n in lengths)) for d in delays]
        few, many = (back[d, lengths[-1]] / max(back[d, lengths[0]], 1.0) for d in (delays[0], delays[-1]))
        why = f"The longest by the shortest: {few:.2f} x with delays of {delays[0]:g} units, {many:.2f} x with {delays[-1]:g}."
        return Verdict(many > 1.0 and many > few, why, ["largest delay, units", *(f"length {n}" for n in lengths)], rows)

    return Departure(
        "6", "Why do longer queries not take back more?",
        "A result is taken back only if it was complete before the late event came, and longer ones are "
        "complete later. If that is "
        "it, longer delays turn the order round (50% late).", tuple(runs), read,
    )  # fmt: skip


def _by(late: float, early: float) -> float:
    """How many times as long; nothing is said of a few events of which none had to wait, as in the quick form."""
    return late / early if early else float("nan")


def _gaps(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        rows, growth = [], {}
        for low, high in zip(runs[::2], runs[1::2], strict=True):
            told = [_waits_of(r, seen[r]) for r in (low, high)]
            growth[low.pog, low.pog_share] = [_by(b, a) for a, b in zip(*told, strict=True)]
            kind = "after the largest delay" if low.pog == "delay" else "that know what is under way"
            values = [number(told[at][which]) for which in (0, 1) for at in (0, 1)]
            rows.append([f"{kind}, {low.pog_share:.0%}", *values])
        every, in_time = growth["sent", 1.0][:2]
        papers = growth["delay", 1.0][1]
        why = (
            f"With 100 promises per 100 events that know what is under way, results wait {every:.2f} x as long at 50% as at 10%; "
            f"those that an event in time completes {in_time:.2f} x, with the paper's promises {papers:.2f} x."
        )
        headings = ["promises", "10% late: waits, units", "50% late", "completed in time, 10% late", "50% late"]
        return Verdict(in_time > 1.0 + SAME and every < in_time and abs(papers - 1.0) < SAME, why, headings, rows)

    return Departure(
        "12", "Why does conservative latency not grow with disorder?",
        "Three guesses: promises lie far apart, so that chance decides; the paper's wait for the largest delay, whatever is "
        "late; and a result that a late event completes has waited before it was complete. If so, then with five times as many "
        "promises, of the kind that knows what is under way, results that an event in time completes wait longer with disorder, "
        "and with the paper's they do not.", tuple(runs), read,
    )  # fmt: skip


def _completed(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        rows, sides = [], []
        for r in runs:
            told = _waits_of(r, seen[r])
            sides.append(told)
            rows.append(cells(r.positive_share * 100, *told[1:3], told[3] * 100))
        flat = _by(sides[-1][1], sides[0][1])
        why = (
            f"Results that an event in time completes wait {flat:.2f} x at 50% of what they wait at 10%; those that a late one "
            f"completes {sides[-1][2]:.1f} units, and they go from {sides[0][3]:.0%} to {sides[-1][3]:.0%} of all."
        )
        headings = ["late events, %", "completed in time: waits, units", "completed late: waits, units", "completed late, %"]
        shorter = sides[-1][2] < sides[-1][1] * (1.0 - SAME) and sides[-1][3] > sides[0][3]
        return Verdict(abs(flat - 1.0) < SAME and shorter, why, headings, rows)

    return Departure(
        "13", "Why does the latency of K-slack fall with disorder?",
        "If results that a late event completes have waited before they were complete, the others wait as long as ever (length "
        "3).", tuple(runs), read,
    )  # fmt: skip


def _waits_of(run: Run, found: Sequence[Found]) -> list[float]:
    """The medians of the seeds."""
    parts = [_waits(with_seed(run, i), line) for i, (_, line) in enumerate(found)]
    return [middle(part) for part in zip(*parts, strict=True)]


def _waits(run: Run, line: Timeline) -> tuple[float, float, float, float]:
    """How long results wait: all, those that an event in time completed, those that a late one did, and the share of these."""
    waits, late = line.waits(UNIT), patterns_apart.late_of(run, line.row[line.latest])
    sides = [float(waits[side].mean()) if side.any() else 0.0 for side in (~late, late)]
    return float(waits.mean()), *sides, float(late.mean())


def _sorting(runs: Sequence[Run]) -> Departure:
    def read(seen: Seen) -> Verdict:
        shares = [patterns_apart.share_in(r, "zone.py", "order.py") for r in runs]
        cost = [middle(m.execution_us for m, _ in seen[r]) for r in runs]
        rows = [cells(r.positive_share * 100, c, s * 100) for r, c, s in zip(runs, cost, shares, strict=True)]
        why = (
            f"Sorting open rows takes {shares[0]:.0%} of the time at 10% late and {shares[1]:.0%} at 50%: it "
            f"does not depend on disorder."
        )
        same = abs(shares[1] - shares[0]) < SAME
        return Verdict(same, why, ["late events, %", "µs an event", "in sorting, % (profiled)"], rows)

    return Departure(
        "14", "Why does K-slack not take longer with disorder?",
        "If a row is put in its place among few open rows, and that costs the same in front as behind, "
        "a profile shows the same share "
        "of sorting for both ends (length 7).", tuple(runs), read,
    )  # fmt: skip


def _disk(runs: Sequence[Run]) -> Departure:
    milliseconds = (0.0, 1.0, 5.0, 20.0)
    pages = [r.disk.late_events for r in runs if r.disk is not None]

    def read(seen: Seen) -> Verdict:
        rows, best, fall = [], [], []
        for ms in milliseconds:
            slow = {r: [replace(line, busy=line.busy + line.loaded * round(ms / MILLI)) for _, line in seen[r]] for r in runs}
            speed = max(middle(line.load for line in lines) for lines in slow.values()) / BUSIEST
            waits = [spread((line.queued_ms(speed) for line in slow[r]), "latency")[0] for r in runs]
            best.append(pages[int(np.argmin(waits))])
            fall.append(waits[0] / min(waits))
            rows.append(cells(ms, *waits))
        why = "; ".join(
            f"{ms:g} ms a read: best at {b}, falls {f:.2f} x" for ms, b, f in zip(milliseconds, best, fall, strict=True)
        )
        return Verdict(fall[-1] > fall[0] and best[-1] > best[0], f"{why}.", ["ms a read", *map(str, pages)], rows)

    return Departure(
        "15", "Why is the fall small, and over so early?",
        "If it is because reading a frame is quick here, a slow disk makes it as in the paper: the same runs, with so many "
        "milliseconds added to a call for each frame it read, played at one speed.", tuple(runs), read,
    )  # fmt: skip


def _again(aggressive: Sequence[Run], conservative: Sequence[Run]) -> Departure:
    runs = (*aggressive, *conservative)

    def read(seen: Seen) -> Verdict:
        again = {r: [_computed_again(with_seed(r, i), line) for i, (_, line) in enumerate(seen[r])] for r in aggressive}
        plain = {r: [line for _, line in seen[r]] for r in runs}
        speed = max(middle(line.load for line in lines) for lines in (*again.values(), *plain.values())) / BUSIEST
        sets = [[plain[r] for r in aggressive], [again[r] for r in aggressive], [plain[r] for r in conservative]]
        waits = [[spread((line.queued_ms(speed) for line in lines), "latency")[0] for lines in some] for some in sets]
        late = [r.negative_share for r in aggressive]
        rows = [cells(x * 100, *(w[i] for w in waits)) for i, x in enumerate(late)]
        loses = [x for x, a, c in zip(late, waits[1], waits[2], strict=True) if a > c]
        why = (
            f"If every late C had all of its window computed again, aggressive would lose from {loses[0]:.0%} on."
            if loses
            else "Even if every late C had all of its window computed again, aggressive would win at every "
            "share: a promise is waited "
            "for longer than that takes."
        )
        headings = [
            "late events, %",
            "aggressive, ms",
            "aggressive, all computed again, ms",
            "conservative, the paper's promises, ms",
        ]
        return Verdict(bool(loses), why, headings, rows)

    return Departure(
        "16", "Why does aggressive not lose from 40% on?",
        "In the paper it computes results again for a late negated event. The same runs, with the time "
        "of all calls of the window and "
        "the largest delay before it added to the call of each late C, played at one speed.", tuple(runs), read,
    )  # fmt: skip


def _computed_again(run: Run, line: Timeline) -> Timeline:
    late = np.flatnonzero(patterns_apart.late_of(run, line.row, NEGATED))
    total = np.concatenate(([0], np.cumsum(line.busy)))
    since = np.searchsorted(line.arrival, line.arrival[late] - round((run.window + run.max_delay) * UNIT))
    busy = line.busy.copy()
    busy[late] += total[late] - total[since]
    return replace(line, busy=busy)


def with_seed(run: Run, i: int) -> Run:
    return replace(run, seed=run.seed + i)


def middle(values: Any) -> float:
    return float(statistics.median(values))


def cells(*values: float) -> list[str]:
    return [number(v) for v in values]
