"""Windows of many lengths that are looked at together share slices: the rows between two looks, per key, are added up once.

Such a piece is a cell. Cells have tallies like keys have, so that rows enter them, and are taken back, by the same kernels. No
row ever leaves one: a window of any length is a run of the cells of its key, and what the tallies say of it is the difference of
two running totals. Everything that is summed is an integer, so the difference is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.aggregates.tally import NO_EVENTS, Columns, Moves, Reading, TallyState
from headrace.kernels.codes import ABSENT, NULL
from headrace.kernels.windows import slices as kernel
from headrace.plan.aggregates import Laws, TallyKind
from headrace.plan.time import START_OF_TIME
from headrace.plan.triggers import EveryTime
from headrace.plan.windows import RangeWindow
from headrace.program.aggregates import Tally
from headrace.program.windows import SharedSlices, WindowStage
from headrace.state.codec import decode, encode
from headrace.state.parts import PageStore, Which, grown
from headrace.state.reservoir import RowRange
from headrace.state.rows import Layout
from headrace.steps.windows.looks import Ask, Looks


class Sliced(TallyState):
    """The place of a tally that slices keep and read together: it has no state of its own."""


class Slices:
    """The cells of one set of windows, and the group keys that their reports show."""

    page = 512  # cells that are saved together

    def __init__(self, stage: WindowStage, spec: SharedSlices, layout: Layout, make: Callable[[Tally], TallyState]) -> None:
        self.spec, self.layout, self._make = spec, layout, make
        reports = [stage.program.reports[r] for r in spec.reports]
        trigger, presence = reports[0].trigger, stage.program.tallies[reports[0].presence]
        assert isinstance(trigger, EveryTime)
        self.trigger, self.group = trigger, presence.group
        windows = [stage.program.windows[stage.program.tallies[r.presence].window].window for r in reports]
        self.sizes = np.array([w.size for w in windows if isinstance(w, RangeWindow)], np.int64)
        self._presence = Columns(presence, layout)
        # Tallies of different windows over the same values are one here; -1 is the window that all of them have.
        kept: dict[tuple[TallyKind, int], int] = {}
        shown: dict[int, int] = {}
        self._counts: list[int | None] = []  # per tally of cells: the count beside it
        self._specs: list[Tally] = []
        self._reads: list[dict[int, tuple[bool, int]]] = []  # per report: tally -> (whether it is a key, which of ours)
        for report in reports:
            reads: dict[int, tuple[bool, int]] = {}
            tallies = [report.presence, *(t for m in report.metrics for t in (m.count, m.tally) if t is not None)]
            for t in dict.fromkeys(tallies):
                tally = stage.program.tallies[t]
                if tally.kind.laws is not Laws.ADDITIVE:
                    reads[t] = (True, shown.setdefault(tally.vector, len(shown)))
                    continue
                what = (tally.kind, tally.vector)
                if what not in kept:
                    kept[what] = len(kept)
                    self._specs.append(tally)
                    beside = None if tally.count is None else kept[TallyKind.COUNT, tally.vector]
                    self._counts.append(beside)
                reads[t] = (False, kept[what])
            self._reads.append(reads)
        self._shown = [next(Columns(t, layout) for t in stage.program.tallies if t.vector == v) for v in shown]
        self._keys = [(np.zeros(0, np.int64), np.zeros(0, np.uint8)) for _ in shown]  # per key: value and code
        self.tallies = [make(t) for t in self._specs]
        self.end, self.key = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self.base = 0  # cells that have gone for good: the number of the first one here
        self.gone, self.count = 0, 0  # the cells here are gone..count of the arrays
        self.settled = 0  # the number of the first cell that may have changed since it was saved
        self.pages = range(0)  # where they are saved
        self._needed = {self.group, *(c for t in self._specs for c in _columns(t, layout))}

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        self._keys = [(grown(words, capacity), grown(codes, capacity)) for words, codes in self._keys]

    # ---- rows come --------------------------------------------------------------------------------------------------

    def enter(self, rows: RowRange) -> Moves:
        """Rows enter their cells, in the order of time. Gives what takes them back."""
        self._know(rows)
        code = self._presence.code(rows.columns)
        columns, ts, numbers = rows.columns, rows.ts, rows.numbers
        if len(ts) and code.max() >= NULL:
            there = np.flatnonzero(code < NULL)
            columns = [c[there] if i in self._needed else c for i, c in enumerate(columns)]
            ts, numbers = ts[there], numbers[there]
        every, origin = self.trigger.every, self.trigger.origin
        ends = origin - (origin - ts) // every * every
        cell = np.empty(len(ts), np.int32)
        end, key = np.empty(len(ts), np.int64), np.empty(len(ts), np.int32)
        last = int(self.end[: self.count].searchsorted(self.end[self.count - 1])) if self.count > self.gone else self.count
        keys = columns[self.group]
        new = kernel.number(ends, keys, self.end, self.key, self.count, last, self.capacity, cell, end, key)
        self.settled = min(self.settled, self.base + last)
        self._reserve(self.count + new)
        self.end[self.count : self.count + new], self.key[self.count : self.count + new] = end[:new], key[:new]
        self.count += new
        entered = list(columns)
        entered[self.group] = cell
        moves = Moves.entering(entered, numbers)
        for tally in self.tallies:
            tally.run(moves, NO_EVENTS)
        return moves

    def _know(self, rows: RowRange) -> None:
        """All rows of a group have its keys, so any of them can say them."""
        keys = rows.columns[self.group]
        for at, (words, codes) in zip(self._shown, self._keys, strict=True):
            code = at.code(rows.columns)
            there = slice(None) if not len(code) or code.max() < ABSENT else np.flatnonzero(code < ABSENT)
            words[keys[there]] = at.value(rows.columns)[there]
            codes[keys[there]] = code[there]

    def _reserve(self, count: int) -> None:
        if count <= len(self.end):
            return
        size = max(count, 2 * len(self.end), 64)
        self.end, self.key = grown(self.end, size), grown(self.key, size)
        for tally in self.tallies:
            tally.grow(size)

    def take_back(self, moves: Moves, count: int) -> None:
        """Rows leave the cells that they have just entered; there were `count` cells before."""
        for tally in self.tallies:
            tally.run(moves.reversed(), NO_EVENTS)
        self.count = count

    def forget(self, frontier: int) -> None:
        """Cells that no look from the frontier on can reach are gone."""
        before = max(self.trigger.first_at(frontier) - int(self.sizes.max()), START_OF_TIME)
        self.gone = max(self.gone, int(self.end[: self.count].searchsorted(before, side="right")))
        if not self.gone or self.gone < max(self.page // 8, self.count // 2):
            return
        states = [t.dump(self.gone, self.count) for t in self.tallies]
        self.base, left = self.base + self.gone, self.count - self.gone
        self.end, self.key = self.end[self.gone : self.count].copy(), self.key[self.gone : self.count].copy()
        self.gone, self.count = 0, left
        self.tallies = [self._loaded(spec, state, left) for spec, state in zip(self._specs, states, strict=True)]

    def _loaded(self, spec: Tally, state: dict[str, Any], size: int) -> TallyState:
        tally = self._make(spec)
        tally.grow(size)
        tally.load(0, size, state)
        return tally

    # ---- windows are looked at --------------------------------------------------------------------------------------

    def read(self, asks: Sequence[Ask]) -> list[tuple[Looks, dict[int, Reading]]]:
        """What every report sees at the looks that are asked for."""
        found = [self._read(ask) for ask in asks]
        out = []
        for r in range(len(self.sizes)):
            looks, readings = found[0][r] if found else (Looks.none(), {})
            for more, said in (part[r] for part in found[1:]):
                looks = looks.append(more)
                readings = {t: _joined(a, said[t]) for t, a in readings.items()}
            out.append((looks, readings))
        return out

    def _read(self, ask: Ask) -> list[tuple[Looks, dict[int, Reading]]]:
        only = np.ones(self.capacity, np.bool_) if ask.only is None else ask.only
        here = slice(self.gone, self.count)
        times = self._times(ask)
        order, first = kernel.by_key(self.key[here], only)
        began, at, key, start, stop = kernel.look(first, self.end[here][order], times, self.sizes)
        time = times[at]
        readings: list[Reading] = []
        for spec, tally, beside in zip(self._specs, self.tallies, self._counts, strict=True):
            runs = {k: _runs(v, order, start, stop) for k, v in tally.dump(self.gone, self.count).items()}
            n = np.empty(0, np.int64) if beside is None else readings[beside]["value"]
            readings.append(self._loaded(spec, runs, len(at)).run(self._nothing(len(at)), np.arange(len(at), dtype=np.int32), n))
        shown = [{"value": words[key], "code": codes[key]} for words, codes in self._keys]
        out = []
        for r, reads in enumerate(self._reads):
            a, b = began[r], began[r + 1]
            said = {t: _part(shown[i] if is_key else readings[i], a, b) for t, (is_key, i) in reads.items()}
            out.append((Looks(time[a:b], key[a:b], time[a:b], time[a:b]), said))
        return out

    def _times(self, ask: Ask) -> np.ndarray:
        """The looks that are asked for at which there is any cell in the longest window, however long it is silent between."""
        every, longest = self.trigger.every, int(self.sizes.max())
        ends = np.unique(self.end[self.gone : self.count])
        if not len(ends):
            return ends
        until = np.minimum(np.append(ends[1:], ends[-1] + longest), ends + longest)
        since = np.maximum(ends, min(self.trigger.first_at(ask.start), int(ends[-1]) + longest))
        looks = np.maximum((np.minimum(until, ask.stop) - since + every - 1) // every, 0)
        before = np.repeat(np.cumsum(looks) - looks, looks)
        return np.asarray(np.repeat(since, looks) + every * (np.arange(len(before)) - before))

    def _nothing(self, reads: int) -> Moves:
        none, stand = np.empty(0, np.int64), np.zeros(reads, np.int64)
        return Moves(self.layout.empty(), none, stand, self.layout.empty(), none, stand)

    # ---- state ------------------------------------------------------------------------------------------------------

    def dump_keys(self, which: Which) -> dict[str, Any]:
        """What is shown of some keys."""
        out = {f"word{i}": words[which] for i, (words, _) in enumerate(self._keys)}
        return out | {f"code{i}": codes[which] for i, (_, codes) in enumerate(self._keys)}

    def load_keys(self, which: Which, state: dict[str, Any]) -> None:
        for i, (words, codes) in enumerate(self._keys):
            words[which], codes[which] = state[f"word{i}"], state[f"code{i}"]

    @property
    def cells(self) -> tuple[int, int]:
        """The numbers of the cells that are here, from .. to."""
        return self.base + self.gone, self.base + self.count

    def dump(self, page: int) -> dict[str, Any]:
        start = max(page * self.page - self.base, self.gone)
        stop = min((page + 1) * self.page - self.base, self.count)
        out: dict[str, Any] = {"first": self.base + start, "end": self.end[start:stop], "key": self.key[start:stop]}
        for i, tally in enumerate(self.tallies):
            out |= {f"{i}.{k}": v for k, v in tally.dump(start, stop).items()}
        return out

    def load(self, cells: tuple[int, int], pages: list[dict[str, Any]]) -> None:
        self.settled = cells[1]
        if not pages:
            self.base = cells[0]
            return
        self.base = pages[0]["first"]
        self.gone = cells[0] - self.base
        self._reserve(cells[1] - self.base)
        for page in pages:
            start, stop = self.count, self.count + len(page["end"])
            self.end[start:stop], self.key[start:stop] = page["end"], page["key"]
            for i, tally in enumerate(self.tallies):
                tally.load(start, stop, {k.split(".", 1)[1]: v for k, v in page.items() if k.startswith(f"{i}.")})
            self.count = stop


def _columns(tally: Tally, layout: Layout) -> list[int]:
    code = layout.codes[tally.vector]
    return [*layout.values[tally.vector], *([] if code is None else [code])]


def _runs(values: Any, order: np.ndarray, start: np.ndarray, stop: np.ndarray) -> Any:
    """Sums over runs of cells, as differences of running totals. Those may overflow, their differences do not."""
    if not isinstance(values, np.ndarray):
        return values
    total = np.zeros((len(order) + 1, *values.shape[1:]), np.int64)
    np.cumsum(values[order], axis=0, out=total[1:])
    return total[stop] - total[start]


def _part(reading: Reading, start: int, stop: int) -> Reading:
    return {name: values[start:stop] for name, values in reading.items()}


def _joined(a: Reading, b: Reading) -> Reading:
    return {name: np.concatenate((values, b[name])) for name, values in a.items()}


def _cell_pages(slices: Slices, start: int, stop: int) -> range:
    return range(start // slices.page, (stop - 1) // slices.page + 1) if start < stop else range(0)


def save_cells(slices: Slices, index: int, pages: PageStore) -> None:
    """Cells never change once their slice is over, so each is written about once."""
    start, stop = slices.cells
    for page in _cell_pages(slices, max(start, slices.settled), stop):
        pages.put_page(f"cells {index}.{page}", encode(slices.dump(page)))
    now = _cell_pages(slices, start, stop)
    for page in slices.pages:
        if page not in now:
            pages.drop_page(f"cells {index}.{page}")
    slices.pages, slices.settled = now, stop


def load_cells(slices: Slices, index: int, cells: tuple[int, int], pages: PageStore) -> None:
    slices.pages = _cell_pages(slices, *cells)
    names = [f"cells {index}.{page}" for page in slices.pages]
    slices.load(cells, [decode(pages.get_page(name), name) for name in names])
