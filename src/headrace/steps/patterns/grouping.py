"""Aggregates over the groups of repeated places: every result is a key of tallies that live as long as it takes to read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.aggregates.make import make_tally
from headrace.aggregates.metrics import metric_column, to_arrow
from headrace.aggregates.tally import NOTHING, DistinctTally, Moves
from headrace.kernels.codes import VALUE
from headrace.plan.aggregates import TallyKind
from headrace.program.aggregates import parts_read, vectors_of

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.aggregates.metrics import MetricColumn
    from headrace.aggregates.tally import Reading
    from headrace.program.aggregates import Tally
    from headrace.program.patterns import GroupProgram
    from headrace.program.stage import Stage
    from headrace.state.rows import Layout
    from headrace.state.tables import Tables


class Grouping:
    """The aggregates of one query over the groups of one repeated place."""

    def __init__(self, stage: Stage, program: GroupProgram, layout: Layout, tables: Tables) -> None:
        """Find the columns that they read."""
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
        return [metric_column(self.program.tallies, self.stage.vectors, m, readings) for m in self.program.metrics]

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
        """The aggregates in their Arrow types."""
        tallies, vectors = self.program.tallies, self.stage.vectors
        return [to_arrow(tallies, vectors, m, c, self.tables) for m, c in zip(self.program.metrics, columns, strict=True)]
