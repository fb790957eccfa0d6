"""What reports look at in one pass over rows, by what lets them look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.aggregates.tally import CountTally
from headrace.kernels.codes import NULL
from headrace.kernels.windows import reports
from headrace.plan.triggers import EveryInstant, EveryTime, OnClose
from headrace.plan.windows import RangeWindow, UntilWindow
from headrace.steps.windows.deltas import Deltas
from headrace.steps.windows.looks import Ask, Looks, look
from headrace.steps.windows.triggers import Pass, came_then, fired, until
from headrace.steps.windows.windows import until_moves

if TYPE_CHECKING:
    from headrace.aggregates.tally import Moves
    from headrace.program.windows import Report
    from headrace.state.reservoir import RowRange
    from headrace.steps.windows.evaluate import Asks, Evaluator
    from headrace.steps.windows.triggers import Firings


def find_looks(
    ev: Evaluator,
    open_: RowRange,
    rows: RowRange,
    edges: dict[int, RowRange],
    asks: Asks,
    moves: list[Moves | None],
    end: int | None = None,
) -> tuple[list[Looks], list[dict[int, Looks]]]:
    """What reports look at, before any row moves; and the same looks as other windows see them that they read."""
    looks = [Looks.none() for _ in ev.stage.program.reports]
    moved: list[dict[int, Looks]] = [{} for _ in ev.stage.program.reports]
    sharing = {r for s in ev.stage.program.slices for r in s.reports}  # they look together, once rows have moved
    for i, (report, ask) in enumerate(zip(ev.stage.program.reports, asks, strict=False)):
        if i in sharing:
            continue
        window = ev.stage.program.tallies[report.presence].window
        presence, spec = ev.tallies[report.presence], ev.stage.program.windows[window].window
        assert isinstance(presence, CountTally), "a presence is counted"
        if isinstance(report.trigger, OnClose):
            for part in ask:
                looks[i] = looks[i].append(_closed(ev, report, rows, part, end))
            continue
        if isinstance(spec, RangeWindow) and isinstance(report.trigger, EveryTime):
            for part in ask if edges else ():
                looks[i] = looks[i].append(look(report.trigger, spec, presence, rows, edges, part))
            for other in _beside(ev, report) if edges else ():
                moved[i][other] = _seen_by(ev, looks[i], other, rows, edges)
            continue
        if isinstance(spec, UntilWindow) and isinstance(report.trigger, EveryTime):
            for part in ask:
                looks[i] = looks[i].append(_until_now(ev, open_, window, spec, report, presence, rows, moves, part))
            continue
        move = moves[window]
        for part in ask if move is not None else ():
            assert move is not None
            found = _fired(ev, i, report, presence, rows, move, part, end)
            looks[i] = looks[i].append(found)
    return looks, moved


def _beside(ev: Evaluator, report: Report) -> set[int]:
    """The other windows that a report reads at its looks."""
    tallies = {*report.moved, *(m.tally for m in report.metrics), *(m.count for m in report.metrics if m.count is not None)}
    return {ev.stage.program.tallies[t].window for t in tallies} - {ev.stage.program.tallies[report.presence].window}


def _seen_by(ev: Evaluator, looks: Looks, window: int, rows: RowRange, edges: dict[int, RowRange]) -> Looks:
    """The same looks at another window of time."""
    spec = ev.stage.program.windows[window].window
    assert isinstance(spec, RangeWindow)
    enter, leave = rows if spec.lag == 0 else edges[spec.lag], edges[spec.lag + spec.size]
    entered = enter.ts.searchsorted(looks.time - spec.lag, side="right")
    left = leave.ts.searchsorted(looks.time - (spec.lag + spec.size), side="right")
    return Looks(looks.time, looks.key, entered, left)


def _until_now(
    ev: Evaluator, open_: RowRange, window: int, spec: UntilWindow, report: Report, presence: CountTally, rows: RowRange,
    moves: list[Moves | None], ask: Ask,
) -> Looks:  # fmt: skip
    """The windows that end at one time. Their rows leave as the windows become shorter, and are all gone then."""
    assert isinstance(report.trigger, EveryTime)
    last = int(rows.ts.searchsorted(spec.stop, side="right"))
    gone = ev.until(ev.reservoir.oldest, spec.stop, open_)
    fires = until(spec, report.trigger.every, gone, ask, last)
    if fires is None:
        return Looks.none()
    move = moves[window] = until_moves(spec, rows, gone)
    at, key = _live(presence, move, np.zeros(len(presence.counts), np.int32), 1, fires)
    found = fires.looks(at, key)
    assert fires.mark is not None, "windows are numbered"
    found.begin = spec.stop - fires.mark[at] * report.trigger.every
    first = np.full(len(presence.counts), spec.stop, np.int64)
    counts = presence.at.code(gone.columns) < NULL
    np.minimum.at(first, presence.at.keys(gone.columns)[counts], gone.ts[counts])
    return found.take(np.flatnonzero(first[found.key] <= found.begin + report.trigger.every))


def _closed(ev: Evaluator, report: Report, rows: RowRange, ask: Ask, end: int | None) -> Looks:
    """Windows that end by what comes, and have ended."""
    lives = ev.lives[ev.stage.program.tallies[report.presence].group]
    if not isinstance(lives, Deltas):
        return lives.looks(rows, ask)
    return lives.closed(rows, ev.keys_of(rows), ask, end)


def _fired(
    ev: Evaluator, number: int, report: Report, presence: CountTally, rows: RowRange, moves: Moves, ask: Ask, end: int | None
) -> Looks:
    """The looks of a report that the clock alone does not let happen."""
    counter = None if report.counter is None else ev.tallies[report.counter]
    assert counter is None or isinstance(counter, CountTally), "rows are counted"
    positions = None if report.field is None else ev.fields[report.field].positions(rows)
    window = ev.stage.program.tallies[report.presence].window
    same = report.field is not None and ev.stage.program.windows[window].field == report.field
    leaving = ev.fields[report.field].leaving[window] if same and report.field is not None else None
    pass_ = Pass(ev.stage, rows, ev.keys_of(rows), moves, counter, positions, leaving, rows.first > 0, end)
    fires = fired(report, pass_, ask)
    if isinstance(report.trigger, EveryInstant) and report.trigger.rows is None:
        return came_then(report, pass_, fires, presence)
    group = ev.stage.program.tallies[report.presence].group
    if report.partition is None:
        part, parts = np.zeros(len(presence.counts), np.int32), 1
    else:
        part, parts = ev.owners[group, report.partition].of, ev.tables[report.partition].capacity
    return fires.looks(*_live(presence, moves, part, parts, fires))


def _live(presence: CountTally, moves: Moves, part: np.ndarray, parts: int, fires: Firings) -> tuple[np.ndarray, np.ndarray]:
    """The keys that are in the window at each look: which look, and the key."""
    at = presence.at
    return reports.live(
        at.keys(moves.enter), at.code(moves.enter), at.keys(moves.leave), at.code(moves.leave),
        presence.counts, part, parts, fires.entered, fires.left, fires.part,
    )  # fmt: skip
