"""`[DELTA limit ON expr]`: a window of a key ends with the row that is too far from its first one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.changes.keys import Keys
from headrace.kernels.codes import NULL
from headrace.kernels.windows.lives import delta_ends
from headrace.plan.time import START_OF_TIME
from headrace.plan.windows import DeltaWindow, SessionWindow
from headrace.program.stage import TableRole
from headrace.program.windows import WindowStage
from headrace.scalars.compiled import Compiled, Slot, compile_expression
from headrace.state.parts import Which, grown
from headrace.state.reservoir import RowRange
from headrace.state.rows import Layout, Rows
from headrace.state.tables import Tables
from headrace.steps.windows.lifetimes import Lifetimes
from headrace.steps.windows.looks import Ask, Looks

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class Deltas(Lifetimes):
    """Lifetimes that end by a distance. Per key, the first row of the life that goes on, and its number."""

    layout: Layout | None = None
    compiled: Compiled | None = None
    limit: float = 0.0
    columns: tuple[int, ...] = ()  # vectors
    first: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # per key: the values of its first row
    nulls: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    life: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # per key: the name of its life
    current: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # per key: the number of it, -1 for none

    def grow(self) -> None:
        Lifetimes.grow(self)
        more = self.tables[self.base].capacity
        self.first, self.nulls, self.life = grown(self.first, more), grown(self.nulls, more), grown(self.life, more)
        self.current = grown(self.current, more, -1)

    def _words(self, columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        assert self.layout is not None
        n, layout = len(columns[self.base]), self.layout
        values, nulls = np.zeros((n, len(self.columns)), np.int64), np.zeros((n, len(self.columns)), np.bool_)
        for i, vector in enumerate(self.columns):
            values[:, i] = columns[layout.values[vector][0]]
            code = layout.codes[vector]
            nulls[:, i] = columns[code] >= NULL if code is not None else False
        return values, nulls

    def _run(self, rows: Rows, *, commit: bool) -> tuple[np.ndarray, np.ndarray]:
        """For every row the name of its life and when that began, going on from the state, which moves on with `commit`."""
        assert self.compiled is not None
        keys = rows.columns[self.base]
        name = np.zeros(len(rows), np.uint64)  # of a life that begins with this row
        for i, part in enumerate(rows.keys.columns):
            mixed = (name ^ (name >> np.uint64(29))) * _MIX + part.view(np.uint64)
            name = mixed if i < 3 else np.where(part == 0, name, mixed)  # how far words are filled up means nothing
        touched = np.unique(keys)
        state = (self.first, self.nulls, self.life, self.start, self.last)
        saved = [a[touched].copy() for a in state]
        values, nulls = self._words(rows.columns)
        begun, began = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        delta_ends(
            self.compiled.number, max(self.compiled.width, 2 * len(self.columns)), self.limit, rows.ts, name.view(np.int64),
            keys, values, nulls, *state, begun, began,
        )  # fmt: skip
        if not commit:
            for array, old in zip(state, saved, strict=True):
                array[touched] = old
        return begun, began

    def _begun(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        return self._run(rows, commit=False)

    def settle(self, rows: Rows) -> None:
        """These rows are final."""
        self._run(rows, commit=True)
        self.current[rows.columns[self.base]] = rows.columns[self.index]
        np.maximum.at(self.seen, rows.columns[self.index], rows.ts)

    def ended(self, frontier: int) -> np.ndarray:
        """A life is over when its key has another."""
        n = self.tables[self.index].count
        key = self.key[:n]
        return np.asarray((self.seen[:n] > START_OF_TIME) & (key >= 0) & (self.current[key] != np.arange(n)))

    def silent(self, frontier: int) -> np.ndarray:
        """Keys are kept: their windows do not end by time."""
        return np.zeros(self.tables[self.base].count, np.bool_)

    def closed(self, rows: RowRange, places: Keys, ask: Ask, end: int | None) -> Looks:
        """The lives that rows end, each told at the place of that row; at the end of the input, those that go on."""
        keys, lives = rows.columns[self.base], rows.columns[self.index].astype(np.int64)
        before = self.current.copy()
        order = np.argsort(keys, kind="stable")
        prev = np.full(len(keys), -1, np.int64)
        same = keys[order[1:]] == keys[order[:-1]]
        prev[order[1:][same]] = lives[order[:-1][same]]
        heads = order[np.append(True, ~same)] if len(order) else order
        prev[heads] = before[keys[heads]]
        index = np.arange(len(keys)) + rows.first
        asked = (index >= ask.start) & (index < ask.stop)
        if ask.only is not None:
            asked &= ask.only[keys]
        at = np.flatnonzero((prev >= 0) & (prev != lives) & asked)
        found = self._looks(prev[at], rows.ts[at], at.astype(np.int64), places.take(at))
        return found if end is None else found.append(self._open(keys, lives, end))

    def _open(self, keys: np.ndarray, lives: np.ndarray, end: int) -> Looks:
        now = self.current.copy()
        now[keys] = lives
        left = np.sort(now[now >= 0])
        n = len(left)
        return self._looks(left, np.full(n, end, np.int64), np.full(n, len(keys), np.int64))

    def referring(self, table: int) -> dict[str, int]:
        """The life that goes on, besides."""
        return {"current": self.index} if table == self.base else Lifetimes.referring(self, table)

    def dump_at(self, table: int, which: Which) -> dict[str, Any]:
        """What belongs to some numbers of one of the tables."""
        out = Lifetimes.dump_at(self, table, which)
        if table == self.base:
            out |= {f"first{i}": self.first[which, i].copy() for i in range(len(self.columns))}
            out |= {f"null{i}": self.nulls[which, i].astype(np.uint8) for i in range(len(self.columns))}
            out |= {"name": self.life[which], "current": self.current[which]}
        return out

    def load_at(self, table: int, which: Which, page: dict[str, Any]) -> None:
        Lifetimes.load_at(self, table, which, page)
        if table == self.base:
            for i in range(len(self.columns)):
                self.first[which, i], self.nulls[which, i] = page[f"first{i}"], page[f"null{i}"] != 0
            self.life[which], self.current[which] = page["name"], page["current"]


def lives_of(stage: WindowStage, tables: Tables, layout: Layout) -> list[Lifetimes]:
    """What numbers the lives of every table that has them."""
    out: list[Lifetimes] = []
    for i, table in enumerate(stage.tables):
        if table.role is not TableRole.LIFE:
            continue
        assert table.base is not None
        pairs = tuple(j for j, p in enumerate(stage.tables) if p.role is TableRole.LIFE_PAIR and p.life == i)
        none = np.full(0, START_OF_TIME, np.int64)
        owners = {p: np.full(0, -1, np.int32) for p in pairs}
        parts: Any = (stage, i, table.base, pairs, tables)
        arrays: Any = (none, none, none, none, np.full(0, -1, np.int64), owners)
        match table.window:
            case DeltaWindow(limit=limit, expr=expr):
                count = len(table.vectors)
                types = [stage.inputs[stage.vectors[v].input or 0].type for _, v in table.vectors]
                slots = {("", name): Slot(types[j], j) for j, (name, _) in enumerate(table.vectors)}
                slots |= {("first", name): Slot(types[j], count + j) for j, (name, _) in enumerate(table.vectors)}
                compiled = compile_expression(expr, slots)
                first = np.zeros((0, count), np.int64), np.zeros((0, count), np.bool_)
                vectors = tuple(v for _, v in table.vectors)
                out.append(Deltas(*parts, 0, *arrays, layout, compiled, limit, vectors, *first))  # type: ignore[call-arg]
            case None:
                assert stage.keeps_for is not None
                out.append(Lifetimes(*parts, stage.keeps_for, *arrays))  # type: ignore[call-arg]
            case SessionWindow(gap=gap):
                out.append(Lifetimes(*parts, gap, *arrays))  # type: ignore[call-arg]
    return out
