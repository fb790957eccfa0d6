"""Sequences as rows of the queries: the columns of their events, and the aggregates over their groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.aggregates.metrics import MetricColumn, kept_to_arrow
from headrace.changes.changes import Changes
from headrace.changes.keys import joined
from headrace.changes.rows import batch_of
from headrace.kernels.codes import NULL
from headrace.kernels.patterns import linking
from headrace.steps.patterns.spilled import as_id

if TYPE_CHECKING:
    from headrace.program.patterns import PatternOutput
    from headrace.state.rows import Rows
    from headrace.steps.patterns.step import PatternStep
    from headrace.steps.step import Results

Members = dict[int, tuple[np.ndarray, np.ndarray]]  # by place: where the events of every group end in the list, and the list


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
        return {place: owner.search.members(owner.events.state, place, sequences) for place in places}

    def _former_members(self, programs: list[PatternOutput], sequences: np.ndarray) -> Members:
        """The groups as they were before the batch: what it did to the links is undone, and done again."""
        if not len(sequences) or not any(p.groups for p in programs):
            return {}
        state = self.owner.events.state
        linking.unlink_all(state, self.come)
        linking.link_all(state, self.gone)
        out = self._members(programs, sequences)
        linking.unlink_all(state, self.gone)
        linking.link_all(state, self.come)
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
