"""Windows measured on a field: the position of a stream is the largest value of the field so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.tally import Moves

if TYPE_CHECKING:
    from headrace.state.reservoir import RowRange
    from headrace.state.rows import Layout

NOWHERE = -(2**61)  # before any position
STEP = 4096  # rows to read at once when looking for those that leave

Read = Callable[[int, int], "RowRange"]


@dataclass(slots=True)
class Positions:
    """The positions of the stream in one pass: before it, and after each of its rows."""

    before: Any
    at: np.ndarray

    def passed(self, every: float, reach: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Multiples of `every` that rows pass: for each the row, and which multiple.

        With `reach`, those no further on than that: beyond, a window of that size would be empty. Without it, the window is
        measured otherwise, all that one row passes would say the same, and the first is enough.
        """
        prev = np.concatenate((np.array([self.before], self.at.dtype), self.at[:-1]))
        known = prev > NOWHERE
        first = np.where(known, -(-prev // every), 0).astype(np.int64)
        upto = self.at if reach is None else np.minimum(self.at, prev + reach)
        count = np.maximum(np.where(known, -(-upto // every), 0).astype(np.int64) - first, 0)
        if reach is None:
            count = np.minimum(count, 1)
        row = np.repeat(np.arange(len(count)), count)
        return row, first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)

    def next_mark(self, every: float) -> int | None:
        """The multiple that the position has not passed yet; None before any position."""
        now = self.at[-1] if len(self.at) else self.before
        return int(-(-now // every)) if now > NOWHERE else None


@dataclass(slots=True)
class FieldState:
    """The position of a stream on one field, and the tails of the windows that are measured on it."""

    value: int  # the column of the layout that has the field
    code: int | None
    kind: type
    position: Any = NOWHERE  # at the frontier
    tails: dict[int, tuple[int, Any]] = field(default_factory=dict)  # per window: the next row to leave, the position before it
    leaving: dict[int, np.ndarray] = field(default_factory=dict)  # of the last pass, per window: positions of rows that leave

    @staticmethod
    def of(layout: Layout, vector: int) -> FieldState:
        value = layout.values[vector][0]
        return FieldState(value, layout.codes[vector], layout.types[value])

    def _running(self, run: RowRange, before: Any) -> np.ndarray:
        values = run.columns[self.value]
        lowest: np.ndarray = np.array([before], self.kind)
        there = np.abs(values) <= (2**53 if self.kind is np.float64 else 2**60)
        if self.code is not None:
            there &= run.columns[self.code] == 0
        known = np.where(there, values, lowest[0])
        return np.maximum.accumulate(np.concatenate((lowest, known)))[1:]

    def positions(self, rows: RowRange) -> Positions:
        """Of the rows of a pass, which begins at the frontier."""
        return Positions(self.position, self._running(rows, self.position))

    def moves(self, window: int, size: float, rows: RowRange, read: Read, on_to: float | None) -> Moves:
        """Rows enter as they come, and leave when the position has moved on by `size`; at the end it moves on to `on_to`."""
        at = self.positions(rows).at
        now = at[-1] if len(at) else self.position
        bound = (now if on_to is None else max(now, on_to)) - size if now > NOWHERE else NOWHERE
        tail, before = self.tails.get(window, (0, NOWHERE))
        stop, row = rows.stop, tail
        runs, where = [], [at[:0]]
        while row < stop:
            run = read(row, min(stop, row + STEP))
            where.append(self._running(run, before))
            runs.append(run)
            row, before = row + len(run.ts), where[-1][-1]
            if before > bound:
                break
        leaving = np.concatenate(where)
        leaving = leaving[: int(leaving.searchsorted(bound, side="right"))]
        self.leaving[window] = leaving
        columns = [c[:0] for c in rows.columns]
        if runs:
            columns = [np.concatenate([r.columns[i] for r in runs])[: len(leaving)] for i in range(len(rows.columns))]
        numbers = tail + np.arange(len(leaving), dtype=np.int64)
        counted = np.arange(1, len(at) + 1, dtype=np.int64)
        left = leaving.searchsorted(np.where(at > NOWHERE, at - size, at), side="right")
        left = np.minimum(left, counted + rows.first - tail)  # before any position a row leaves as it enters, and none before
        return Moves(rows.columns, rows.numbers, counted, columns, numbers, left)

    def settle(self, rows: RowRange) -> None:
        """The rows of the last pass are final."""
        at = self.positions(rows).at
        for window, leaving in self.leaving.items():
            tail, before = self.tails.get(window, (0, NOWHERE))
            self.tails[window] = (tail + len(leaving), leaving[-1] if len(leaving) else before)
        self.position = at[-1] if len(at) else self.position

    def dump(self) -> dict[str, Any]:
        number = float if self.kind is np.float64 else int
        return {"position": number(self.position), "tails": [[w, t, number(p)] for w, (t, p) in self.tails.items()]}

    def load(self, state: dict[str, Any]) -> None:
        self.position, self.tails = state["position"], {w: (t, p) for w, t, p in state["tails"]}
