"""Sequences as rows of the queries: the columns of their events, and the aggregates over their groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.aggregates.make import make_tally
from headrace.aggregates.metrics import MetricColumn, kept_to_arrow, metric_column, to_arrow
from headrace.aggregates.tally import NOTHING, DistinctTally, Moves
from headrace.changes.changes import Changes
from headrace.changes.keys import joined
from headrace.changes.rows import batch_of
from headrace.kernels.codes import NULL, VALUE
from headrace.kernels.patterns import stacks
from headrace.plan.aggregates import TallyKind
from headrace.program.aggregates import parts_read, vectors_of
from headrace.steps.patterns.spilled import as_id

if TYPE_CHECKING:
    from headrace.aggregates.tally import Reading
    from headrace.program.aggregates import Tally
    from headrace.program.patterns import GroupProgram, PatternOutput, PatternStage
    from headrace.state.rows import Layout, Rows
    from headrace.state.tables import Tables
    from headrace.steps.patterns.step import PatternStep
    from headrace.steps.step import Results

Members = dict[int, tuple[np.ndarray, np.ndarray]]  # by place: where the events of every group end in the list, and the list


class Grouping:
    """Aggregates over the groups of a repeated place: every result is a key of tallies that live as long as reading takes."""

    def __init__(self, stage: PatternStage, program: GroupProgram, layout: Layout, tables: Tables) -> None:
        self.stage, self.program, self.layout, self.tables = stage, program, layout, tables
        vectors = {v for t in program.tallies for v in vectors_of(t)}
        self.wanted = sorted({c for v in vectors for c in (*layout.values[v], layout.codes[v]) if c is not None})
        self._parts = parts_read(program.metrics)

    def read(self, ends: np.ndarray, columns: list[np.ndarray]) -> list[MetricColumn]:
        """The aggregates of every result. `columns` are those wanted, of the events of all groups; `ends` are those of groups."""
        count = int(ends[-1]) if len(ends) else 0
        owner = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
        enter: list[np.ndarray] = [np.empty(0, kind) for kind in self.layout.types]
        for c, values in zip(self.wanted, columns, strict=True):
            enter[c] = values
        readings: list[Reading] = []
        for i, tally in enumerate(self.program.tallies):
            beside = [owner, self._pairs(tally, owner, enter)] if tally.kind is TallyKind.DISTINCT else [owner]
            every = [*enter, *beside]
            none, leave = np.empty(0, np.int64), [c[:0] for c in every]
            moves = Moves(every, np.arange(count), ends, leave, none, np.zeros(len(ends), np.int64))
            own = replace(tally, group=len(enter), pairs=len(enter) + 1)
            state = make_tally(self.stage, own, self.layout, self.tables, self._parts.get(i, ()))
            state.grow(len(ends))
            if isinstance(state, DistinctTally):
                state.grow_pairs(count)
            n = NOTHING if tally.count is None else readings[tally.count]["value"]
            readings.append(state.run(moves, np.arange(len(ends), dtype=np.int32), n))
        return [metric_column(m, readings) for m in self.program.metrics]

    def _pairs(self, tally: Tally, owner: np.ndarray, enter: list[np.ndarray]) -> np.ndarray:
        """A number for every result and value, as = tells them apart: what is not a plain value is what its code says."""
        code = self.layout.codes[tally.vector]
        assert code is not None, "a value may be NULL"
        kinds = enter[code]
        parts = [owner.astype(np.int64), kinds.astype(np.int64)]
        for c in self.layout.values[tally.vector]:
            values = enter[c] + 0.0 if enter[c].dtype == np.float64 else enter[c]  # -0.0 equals 0.0
            words = values.view(np.int64) if values.dtype.itemsize == 8 else values.astype(np.int64)
            parts.append(np.where(kinds == VALUE, words, 0))
        return np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)

    def to_arrow(self, columns: list[MetricColumn]) -> list[pa.Array]:
        tallies, vectors = self.program.tallies, self.stage.vectors
        return [to_arrow(tallies, vectors, m, c, self.tables) for m, c in zip(self.program.metrics, columns, strict=True)]


@dataclass(slots=True)
class ResultRows:
    """Where the values of events are in a batch: in the reservoir, in the open rows, or in what was taken out of it."""

    owner: PatternStep
    new: Rows
    events: np.ndarray  # of the open rows
    old: Rows
    removed: np.ndarray
    come: np.ndarray  # events
    gone: np.ndarray

    def results(self, programs: list[PatternOutput], sequences: np.ndarray) -> Results:
        """Sequences as rows of every query, with their groups as they are now."""
        return self._all(programs, sequences, self._members(programs, sequences), 1)

    def taken_back(self, programs: list[PatternOutput], sequences: np.ndarray) -> Results:
        """The same with a minus, and with their groups as they were before the batch."""
        return self._all(programs, sequences, self._former_members(programs, sequences), -1)

    def corrected(self, programs: list[PatternOutput], sequences: np.ndarray) -> Results:
        """Of sequences that were there and still are, those that a group makes different: taken back, and said anew."""
        former, now = self._former_members(programs, sequences), self._members(programs, sequences)
        out: Results = []
        for program in programs if len(sequences) else ():
            was, metrics = self._metrics(program, former), self._metrics(program, now)
            differs = np.zeros(len(sequences), np.bool_)
            for one, other in zip(was, metrics, strict=True):
                differs |= one.differs(other)
            chosen = np.flatnonzero(differs)
            for sign, columns in ((-1, was), (1, metrics)):
                if len(chosen):
                    out.append(self._of(program, sequences[chosen], [c.take(chosen) for c in columns], sign))
        return out

    def _all(self, programs: list[PatternOutput], sequences: np.ndarray, members: Members, sign: int) -> Results:
        if not len(sequences):
            return []
        return [self._of(p, sequences, self._metrics(p, members), sign) for p in programs]

    def _of(self, program: PatternOutput, sequences: np.ndarray, metrics: list[MetricColumn], sign: int) -> tuple[str, Changes]:
        *others, last = (self.owner.keys(sequences[:, q]) for q in range(sequences.shape[1]))
        keys = last.under(joined([key.whole() for key in others])) if others else last
        return program.query, Changes.of(sign, keys, self._values(program, sequences, metrics))

    # ---- groups ---------------------------------------------------------------------------------------------------

    def _members(self, programs: list[PatternOutput], sequences: np.ndarray) -> Members:
        places = {g.place for p in programs for g in p.groups} if len(sequences) else set()
        owner = self.owner
        return {place: owner.search.members(owner.events.state, owner.search.groups[place], sequences) for place in places}

    def _former_members(self, programs: list[PatternOutput], sequences: np.ndarray) -> Members:
        """The groups as they were before the batch: what it did to the links is undone, and done again."""
        if not len(sequences) or not any(p.groups for p in programs):
            return {}
        state = self.owner.events.state
        stacks.unlink_all(state, self.come)
        stacks.link_all(state, self.gone)
        out = self._members(programs, sequences)
        stacks.unlink_all(state, self.gone)
        stacks.link_all(state, self.come)
        return out

    def _metrics(self, program: PatternOutput, members: Members) -> list[MetricColumn]:
        out: list[MetricColumn] = []
        for group in self.owner.groups[program.query]:
            ends, events = members[group.program.place]
            out += group.read(ends, self._gather(self._numbers(events), group.wanted))
        return out

    # ---- values ---------------------------------------------------------------------------------------------------

    def _numbers(self, events: np.ndarray) -> np.ndarray:
        """The numbers by which `kept` finds rows: those of the open rows follow its own, then come those that were taken out."""
        owner = self.owner
        if len(owner.at) < len(owner.number):
            owner.at = np.full(len(owner.number), -1, np.int64)
        count, at = owner.kept.reservoir.count, owner.at
        there = np.flatnonzero(self.events >= 0)
        at[self.events[there]] = count + there
        gone = owner.open[self.removed]
        there = np.flatnonzero(gone >= 0)
        at[gone[there]] = count + len(self.new) + there
        here = np.maximum(events, 0)
        number = np.where(events < 0, as_id(events), owner.number[here])
        return np.where(number >= 0, number, at[here])

    def _gather(self, numbers: np.ndarray, wanted: list[int]) -> list[np.ndarray]:
        rows = self.new
        if self.removed.any():
            rows = self.new.append(self.old.take(np.flatnonzero(self.removed)))
        return self.owner.kept.gather(numbers, wanted, rows, np.arange(len(rows)))

    def _values(self, program: PatternOutput, sequences: np.ndarray, metrics: list[MetricColumn]) -> pa.RecordBatch:
        owner, numbers = self.owner, self._numbers(sequences)
        arrays, names = [], [c.name for c in program.columns]
        for column in program.columns:
            code = owner.layout.codes[column.vector]
            assert code is not None, "a value may be NULL"
            wanted = [owner.layout.values[column.vector][0], code]
            words, codes = self._gather(numbers[:, owner.spec.positive.index(column.place)], wanted)
            vector = owner.stage.vectors[column.vector]
            values = MetricColumn(words.astype(np.int64, copy=False), codes < NULL)
            arrays.append(kept_to_arrow(vector, column.type, values, owner.tables))
        for group in owner.groups[program.query]:
            count = len(group.program.metrics)
            arrays += group.to_arrow(metrics[:count])
            names += [m.name for m in group.program.metrics]
            metrics = metrics[count:]
        return batch_of(arrays, names, len(sequences))
