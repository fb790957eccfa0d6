"""Figures 4 to 16 of 001, section IX: what is on which axis, and the runs behind every point."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import command
from .patterns_plots import LATENCIES
from .patterns_runs import Disk, Run, Strategy
from .patterns_seeds import Found, Keep, all_of, point
from .report import Result

LENGTHS = (3, 4, 5, 6, 7)
LATE = (0.1, 0.2, 0.3, 0.4, 0.5)
LATE_NEGATED = (0.0, *LATE)
POGS = (0.1, 0.2, 0.3, 0.4)
WINDOWS = (20.0, 30.0, 40.0, 50.0, 60.0)
PAGE_THRESHOLDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15)
QUICK_ROWS = 300
BUSIEST = 0.8  # the share of the time that the engine works in the busiest run of a figure, when the stream is played
LATENCY, TUPLES, EXECUTION, STATE = "latency", "compensations", "execution_us", "stored"

# Both kinds of promise, in the words that stand at the lines of a figure.
PAPERS, KNOWING = "promises after the largest delay", "promises that know what is under way"
PROMISES = (
    f"Two kinds of promise: *{PAPERS}* are the paper's: a source that knows nothing of what it has sent promises what "
    f"is older than any delay. *{KNOWING}* are those of a source that knows which of its events have not arrived yet."
)

Line = tuple[tuple[float, Run], ...]


@dataclass(frozen=True)
class Figure:
    """One picture: lines of (x, run), and which metric is y."""

    number: int
    title: str
    x: str
    metric: str
    lines: dict[str, Line]
    note: str = ""  # what must be said beside the picture

    @property
    def runs(self) -> list[Run]:
        return [run for line in self.lines.values() for _, run in line]


def figures(rows: int) -> list[Figure]:
    """All of them. Figures over the same runs share them."""
    aggressive = Run(Strategy.AGGRESSIVE, 7, rows=rows)
    conservative = Run(Strategy.CONSERVATIVE, 7, 0.3, 0.3, pog_share=0.2, rows=rows)
    slack = Run(Strategy.KSLACK, 7, rows=rows)
    positive = _lengths(aggressive, LATE, positive=True, negative=False)
    negative = _lengths(aggressive, LATE_NEGATED, positive=False, negative=True)
    slack_lines = _lengths(slack, LATE, positive=True, negative=True)
    late_positive, late_negated, late = "late positive events, %", "late negated events, %", "late events, %"
    return [
        Figure(4, "Aggressive: latency against positive disorder", late_positive, LATENCY, positive),
        Figure(5, "Aggressive: latency against negative disorder", late_negated, LATENCY, negative),
        Figure(6, "Aggressive: compensation tuples", late_negated, TUPLES, negative),
        Figure(7, "Aggressive: execution time against positive disorder", late_positive, EXECUTION, positive),
        Figure(8, "Aggressive: execution time against negative disorder", late_negated, EXECUTION, negative),
        Figure(9, "Aggressive: state against the window", "window, time units", STATE, _windows(aggressive)),
        Figure(10, "Conservative: state against promises", "promises per 100 events", STATE, _pogs(conservative)),
        Figure(11, "Conservative: what promises cost in order", "promises per 100 events", EXECUTION, _overhead(conservative)),
        Figure(12, "Conservative: latency against disorder", late, LATENCY, _conservative(conservative), PROMISES),
        Figure(13, "K-slack: latency against disorder", late, LATENCY, slack_lines),
        Figure(14, "K-slack: execution time against disorder", late, EXECUTION, slack_lines),
        Figure(15, "Disk: latency against the page threshold", "late events of a page", LATENCY, _disk(aggressive)),
        Figure(16, "The three strategies: latency against disorder", late, LATENCY, _compared(rows), PROMISES),
    ]


def _lengths(run: Run, shares: Iterable[float], *, positive: bool, negative: bool) -> dict[str, Line]:
    points = [(s * 100, {"positive_share": s * positive, "negative_share": s * negative}) for s in shares]
    return {f"length {n}": tuple((x, replace(run, length=n, **p)) for x, p in points) for n in LENGTHS}


def _windows(run: Run) -> dict[str, Line]:
    late = replace(run, length=3, positive_share=0.3, negative_share=0.3)
    return {"length 3": tuple((w, replace(late, window=w)) for w in WINDOWS)}


def _pogs(run: Run) -> dict[str, Line]:
    return {_pog_name(kind): tuple((p * 100, replace(run, pog=kind, pog_share=p)) for p in POGS) for kind in ("sent", "delay")}


def _overhead(run: Run) -> dict[str, Line]:
    in_order = replace(run, positive_share=0.0, negative_share=0.0)
    basic = replace(in_order, strategy=Strategy.BASIC)
    both = {"conservative": in_order, "in-order engine, promises not read": basic}
    return {name: tuple((p * 100, replace(r, pog_share=p)) for p in POGS) for name, r in both.items()}


def _conservative(run: Run) -> dict[str, Line]:
    asked = [(kind, share) for kind in ("delay", "sent") for share in (0.1, 0.2, 0.4)]
    kinds = {f"{_pog_name(kind)}, {share:.0%}": replace(run, pog=kind, pog_share=share) for kind, share in asked}
    return {name: tuple((s * 100, replace(r, positive_share=s, negative_share=s)) for s in LATE) for name, r in kinds.items()}


def _pog_name(kind: str) -> str:
    return {"delay": PAPERS, "sent": KNOWING}[kind]


def _disk(run: Run) -> dict[str, Line]:
    late = replace(run, length=5, positive_share=0.8, negative_share=0.8)
    return {"length 5, 80% late": tuple((float(n), replace(late, disk=Disk(48, n))) for n in PAGE_THRESHOLDS)}


def _compared(rows: int) -> dict[str, Line]:
    # The same rows for all: the others see the promises go by.
    runs = {s.value: Run(s, 5, pog="delay", pog_share=0.2, rows=rows) for s in (Strategy.KSLACK, Strategy.AGGRESSIVE)}
    both = {
        f"conservative, {_pog_name(k)}": Run(Strategy.CONSERVATIVE, 5, pog=k, pog_share=0.2, rows=rows) for k in ("delay", "sent")
    }
    every = {"K-slack": runs["K-slack"], **both, "aggressive": runs["aggressive"]}
    return {name: tuple((x * 100, replace(r, positive_share=x, negative_share=x)) for x in LATE) for name, r in every.items()}


def run(log: command.Log, options: argparse.Namespace) -> list[Result]:
    """Every run with every seed, whatever figures it is in; its results counted by hand."""
    drawn = figures(QUICK_ROWS if options.quick else options.events)
    wanted = [quickly(f) if options.quick else f for f in drawn if f.number in options.figures]
    seen = all_of(log, (r for f in wanted for r in f.runs), *effort(options))
    return [as_result(figure, seen) for figure in wanted]


def effort(options: argparse.Namespace) -> tuple[int, int, Keep]:
    """Seeds, processes, and where runs are kept."""
    return 2 if options.quick else options.seeds, 1 if options.quick else options.workers, Keep(command.DATA / "patterns-runs")


def quickly(figure: Figure) -> Figure:
    """The first line and the last, at their last place, for the shortest query."""
    names = list(figure.lines)
    ends = {name: figure.lines[name][-1] for name in dict.fromkeys((names[0], names[-1]))}
    return replace(figure, lines={name: ((x, replace(r, length=3)),) for name, (x, r) in ends.items()})


def as_result(figure: Figure, seen: dict[Run, list[Found]]) -> Result:
    """A figure with everything measured at each point: the median of the seeds, and their spread."""
    speed = max(statistics.median(line.load for _, line in seen[r]) for r in figure.runs) / BUSIEST
    metrics = {name: _reader(name, speed) for name in (LATENCIES if figure.metric == LATENCY else (figure.metric,))}
    lines = {
        name: [point(x, seen[r], metrics, f"figure {figure.number}, {name}, {x:g}") for x, r in points]
        for name, points in figure.lines.items()
    }
    every = [found for r in dict.fromkeys(figure.runs) for found in seen[r]]
    details = {
        "figure": figure.number, "title": figure.title, "x": figure.x, "metric": figure.metric, "note": figure.note,
        "lines": lines, "events": figure.runs[0].rows, "seeds": len(seen[figure.runs[0]]),
    }  # fmt: skip
    calls, seconds = sum(m.calls for m, _ in every), sum(float(line.busy.sum()) for _, line in every) / 1e9
    return Result(f"figure {figure.number}", calls, seconds, details)


def _reader(name: str, speed: float) -> Callable[[Found], float | None]:
    if name == "queued_ms":
        return lambda found: found[1].queued_ms(speed)
    return lambda found: getattr(found[0], name)
