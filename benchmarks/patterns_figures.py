"""Figures 4 to 16 of 001, section IX: what is on which axis, and the runs behind every point."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from . import command
from .patterns_count import count_by_hand
from .patterns_driver import trace_of
from .patterns_metrics import Measures, Timeline, measured
from .patterns_runs import UNIT, Disk, Run, Strategy
from .report import Result

LENGTHS = (3, 4, 5, 6, 7)
LATE = (0.1, 0.2, 0.3, 0.4, 0.5)
LATE_NEGATED = (0.0, *LATE)
POGS = (0.1, 0.2, 0.3, 0.4)
WINDOWS = (20.0, 30.0, 40.0, 50.0, 60.0)
PAGE_THRESHOLDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15)
BUSIEST = 0.8  # the share of the time that the engine works in the busiest run of a figure, when the stream is played
LATENCY, TUPLES, EXECUTION, STATE = "latency", "compensations", "execution_us", "stored"

Line = tuple[tuple[float, Run], ...]


@dataclass(frozen=True)
class Figure:
    """One picture: lines of (x, run), and which metric is y."""

    number: int
    title: str
    x: str
    metric: str
    lines: dict[str, Line]

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
        Figure(12, "Conservative: latency against disorder", late, LATENCY, _conservative(conservative)),
        Figure(13, "K-slack: latency against disorder", late, LATENCY, slack_lines),
        Figure(14, "K-slack: execution time against disorder", late, EXECUTION, slack_lines),
        Figure(15, "Disk: latency against the page threshold", "late events of a page", LATENCY, _disk(aggressive)),
        Figure(16, "The three strategies: latency against disorder", late, LATENCY, _compared(rows)),
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
    asked = [("sent", 0.1), ("sent", 0.2), ("sent", 0.4), ("delay", 0.2)]
    kinds = {f"{_pog_name(kind)}, {share:.0%}": replace(run, pog=kind, pog_share=share) for kind, share in asked}
    return {name: tuple((s * 100, replace(r, positive_share=s, negative_share=s)) for s in LATE) for name, r in kinds.items()}


def _pog_name(kind: str) -> str:
    return {"sent": "promises when all was sent", "delay": "promises after the largest delay"}[kind]


def _disk(run: Run) -> dict[str, Line]:
    late = replace(run, length=5, positive_share=0.8, negative_share=0.8)
    return {"length 5, 80% late": tuple((float(n), replace(late, disk=Disk(48, n))) for n in PAGE_THRESHOLDS)}


def _compared(rows: int) -> dict[str, Line]:
    strategies = (Strategy.KSLACK, Strategy.CONSERVATIVE, Strategy.AGGRESSIVE)
    # The same rows for all three: the others see the promises go by.
    runs = {s.value: Run(s, 5, pog_share=0.2, rows=rows) for s in strategies}
    return {name: tuple((x * 100, replace(r, positive_share=x, negative_share=x)) for x in LATE) for name, r in runs.items()}


def run(log: command.Log, options: argparse.Namespace) -> list[Result]:
    """Every run once, whatever figures it is in; its results counted by hand where that is affordable."""
    wanted = [f for f in figures(options.events // (20 if options.quick else 1)) if f.number in options.figures]
    seen: dict[Run, tuple[Measures, Timeline]] = {}
    out = []
    for figure in wanted:
        for point in figure.runs:
            if point not in seen:
                seen[point] = one(log, point)
        out.append(as_result(figure, seen))
        log.say(f"figure {figure.number} done: {figure.title}")
    return out


def one(log: command.Log, run: Run) -> tuple[Measures, Timeline]:
    trace = trace_of(run)
    found, line = measured(trace, run.events, UNIT)
    wanted = count_by_hand(run)
    if found.results != wanted:
        raise RuntimeError(f"{found.results:,} results, counted by hand {wanted:,}: {run}")
    wait = "-" if found.wait_units is None else f"{found.wait_units:.2f}"
    log.say(f"{run.strategy.value}, length {run.length}: {found.execution_us:.0f} µs an event, waits {wait} units")
    return found, line


def as_result(figure: Figure, seen: dict[Run, tuple[Measures, Timeline]]) -> Result:
    """A figure with everything measured at each point."""
    speed = max(line.load for _, line in (seen[r] for r in figure.runs)) / BUSIEST
    lines: dict[str, list[dict[str, Any]]] = {}
    for name, points in figure.lines.items():
        for x, point in points:
            found, line = seen[point]
            queued = line.queued_ms(speed) if figure.metric == LATENCY else None
            lines.setdefault(name, []).append({"x": x, **asdict(found), "queued_ms": queued})
    measured_rows = sum(point["calls"] for line in lines.values() for point in line)
    seconds = sum(float(seen[r][1].busy.sum()) for r in figure.runs) / 1e9
    details = {"figure": figure.number, "title": figure.title, "x": figure.x, "metric": figure.metric, "lines": lines}
    return Result(f"figure {figure.number}", measured_rows, seconds, details)
