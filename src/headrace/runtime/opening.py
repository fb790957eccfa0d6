"""The open rows of a bucket as batches come: what they are joined by, what is taken back, and which of them count."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headrace.changes.rows import batch_of, empty_batch
from headrace.kernels.keys.uniques import first_of_each
from headrace.plan.arrow import arrow_type
from headrace.plan.time import START_OF_TIME
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.intake import Intake, all_true
from headrace.state.open_rows import OpenRows
from headrace.state.parts import KeyArrays
from headrace.state.rows import Layout, Rows
from headrace.state.tables import KeyTable, Tables
from headrace.steps.shown import carried
from headrace.steps.step import Step, Times, Turn


class Uniques(KeyArrays):
    """Per number of the UNIQUE table, the time of the last final row that counted."""

    arrays: ClassVar[dict[str, str]] = {"last": "last"}
    fill = START_OF_TIME

    def __init__(self, within: int, index: int, table: KeyTable) -> None:
        self.within, self.index, self.table = within, index, table
        self.last = np.full(0, START_OF_TIME, np.int64)

    def kept(self, ts: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
        """Which of the open rows, in order, count. Nothing is remembered."""
        numbers = columns[self.index]
        before = self.last[numbers].copy()
        kept = np.zeros(len(ts), np.bool_)
        first_of_each(ts, numbers, self.within, self.last, kept)
        self.last[numbers] = before
        return kept

    def settle(self, ts: np.ndarray, columns: list[np.ndarray], frontier: int) -> np.ndarray:
        """These rows are final. Returns the numbers that were forgotten, because no later row can come within reach."""
        numbers = columns[self.index]
        first_of_each(ts, numbers, self.within, self.last, np.zeros(len(ts), np.bool_))
        np.subtract.at(self.table.references, numbers, 1)
        count = self.table.count
        idle = self.table.live[:count] & (self.table.references[:count] == 0) & (self.last[:count] < frontier - self.within)
        gone = np.flatnonzero(idle).astype(np.int32)
        self.table.forget(gone)
        self.last[gone] = START_OF_TIME
        return gone


class Opening:
    """Makes turns of batches. With UNIQUE BY it has all open rows, and turns have those that count."""

    def __init__(self, stage: Stage[Any], layout: Layout, tables: Tables) -> None:
        self.stage, self.tables, self.intake = stage, tables, Intake(stage, layout, tables)
        self._carried = list(carried(stage))
        self._names = [f"i{i}" for i in self._carried]
        self._masks = [o.masks for o in stage.program.outputs]
        self.uniques: Uniques | None = None
        if stage.unique is not None:
            self.uniques = Uniques(stage.unique.within, stage.unique.table, tables[stage.unique.table])
            self._masks.append(stage.unique.members)
        empty = [pa.array([], arrow_type(stage.inputs[i].type)) for i in self._carried]
        self.rows = self._none = OpenRows(Rows.empty(layout), batch_of(empty, self._names, 0), [None for _ in self._masks])
        self.counts = np.zeros(0, np.bool_)  # with UNIQUE BY: which of them count

    def turn(self, fresh: Arrivals | None, step: Step, times: Times) -> Turn:
        if not step.keeps_open:
            gone, new = self._apart(fresh)
            return Turn(gone, new, np.ones(len(gone), np.bool_), np.ones(len(new), np.bool_), 0, times)
        parts = self._merge(fresh) if self.uniques is None else self._merge_unique(fresh, self.uniques)
        return Turn(*parts, int(parts[1].rows.ts.searchsorted(step.final_before(times), side="left")), times)

    def _apart(self, fresh: Arrivals | None) -> tuple[OpenRows, OpenRows]:
        """What is taken back, and what comes, where nothing is kept."""
        if fresh is None or fresh.sign is None:
            return self.rows, self.rows if fresh is None else self._sorted(fresh)
        minus, plus = (self._sorted(fresh.take(np.flatnonzero(fresh.sign == sign))) for sign in (-1, 1))
        return minus, plus

    def _sorted(self, arrivals: Arrivals) -> OpenRows:
        """Arrivals as open rows, in the total order."""
        inputs = arrivals.inputs
        carry = inputs.select(self._carried).rename_columns(self._names) if self._carried else empty_batch(len(arrivals))
        wanted = [all_true(inputs, masks) for masks in self._masks]
        return OpenRows(Rows(arrivals.keys, self.intake.columns(inputs)), carry, wanted).sorted()

    def _merge(self, fresh: Arrivals | None) -> tuple[OpenRows, OpenRows, np.ndarray, np.ndarray]:
        """The rows as they were and as they are, and which of either are not in the other."""
        old = stays = self.rows
        removed = np.zeros(len(old), np.bool_)
        if fresh is None:
            return old, old, removed, np.zeros(len(old), np.bool_)
        if fresh.sign is not None and (fresh.sign < 0).any():
            places = old.rows.keys.locate(fresh.keys.take(np.flatnonzero(fresh.sign < 0)))
            removed[places[places >= 0]] = True
            fresh, stays = fresh.take(np.flatnonzero(fresh.sign > 0)), old.take(np.flatnonzero(~removed))
        incoming = self._sorted(fresh)
        self.tables.hold(incoming.rows.columns)
        new, added = stays.merge(incoming)
        return old, new, removed, added

    def _merge_unique(self, fresh: Arrivals | None, uniques: Uniques) -> tuple[OpenRows, OpenRows, np.ndarray, np.ndarray]:
        """The same among the rows that count. A row that comes late may count in the place of one that was there."""
        before, after, _, is_fresh = self._merge(fresh)
        uniques.grow(uniques.table.capacity)
        counts = uniques.kept(after.rows.ts, after.rows.columns)
        member = after.wanted[-1]
        counts = counts if member is None else counts & member
        counted = np.zeros(len(after), np.bool_)
        counted[~is_fresh] = self.counts
        old, new = before.take(np.flatnonzero(self.counts)), after.take(np.flatnonzero(counts))
        removed = ~counts[~is_fresh][self.counts]
        self.rows, self.counts = after, counts
        return old, new, removed, ~counted[counts]

    def settle(self, turn: Turn, step: Step) -> None:
        """The first rows are open no longer. Those that were taken back, or never counted, hold nothing any more."""
        if not step.keeps_open:
            return
        if self.uniques is not None:
            self._settle_unique(self.uniques, turn, step.final_before(turn.times))
            return
        if self.stage.signed and turn.removed.any():
            self.let_go(turn.old.rows.take(np.flatnonzero(turn.removed)).columns)
        if turn.final == len(turn.new):
            self.rows = self._none
        else:
            self.rows = turn.new.slice(turn.final, len(turn.new)) if turn.final else turn.new

    def let_go(self, columns: list[np.ndarray]) -> None:
        """These rows hold their keys no longer."""
        self.tables.touch(columns)
        self.tables.release(columns)

    def _settle_unique(self, uniques: Uniques, turn: Turn, bound: int) -> None:
        derived = [i for i, table in enumerate(self.stage.tables) if table.derived]
        for table in derived:  # the rows that count may have other numbers now
            column = self.rows.rows.columns[table].copy()
            column[self.counts] = turn.new.rows.columns[table]
            self.rows.rows.columns[table] = column
        final = int(self.rows.rows.ts.searchsorted(bound, side="left"))
        rows = self.rows.rows.slice(0, final)
        self.tables.touch(rows.columns)
        self.tables.release(rows.take(np.flatnonzero(~self.counts[:final])).columns)
        gone = uniques.settle(rows.ts, rows.columns, turn.times.next_frontier)
        self.tables.touch_one(uniques.index, gone)
        self.rows, self.counts = self.rows.slice(final, len(self.rows)), self.counts[final:]
