"""Rows as one program lays them out, laid out as another does: columns of one name are one, whatever their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.evolution.held import floating, held_as
from headrace.evolution.names import Names
from headrace.kernels.codes import ABSENT, MINUS_INFINITY, NAN, NULL, PLUS_INFINITY, VALUE
from headrace.kernels.keys.order import to_ordered
from headrace.program.stage import Stage, VectorKind
from headrace.state.chunk import Chunk
from headrace.state.final_rows import FinalRows
from headrace.state.reservoir import Reservoir, RowRange
from headrace.state.rows import Layout

Columns = list[np.ndarray]


@dataclass(frozen=True, slots=True)
class Laid:
    """A stage, what its parts are called, and where they lie in its rows."""

    stage: Stage[Any]
    names: Names
    layout: Layout


class Relayout:
    """From the columns of old rows to those of new ones. What old rows do not have is absent."""

    def __init__(self, old: Laid, new: Laid) -> None:
        """Find every column."""
        self.old, self.new = old, new
        known = {name: i for i, name in enumerate(old.names.tables)}
        self.tables = tuple(known.get(name) for name in new.names.tables)
        self._vectors = [
            held_as(old.stage, old.names, v.kind, name, value)
            for v, name, value in zip(new.stage.vectors, new.names.vectors, new.names.values, strict=True)
        ]

    def __call__(self, columns: Columns) -> Columns:
        """These columns as the new stage has them. Columns behind those of the old layout stay behind."""
        n = len(columns[0]) if columns else 0
        out: Columns = [np.zeros(n, np.int32) if t is None else columns[t] for t in self.tables]
        for i, vector in enumerate(self.new.stage.vectors):
            source = self._vectors[i]
            values, code = (None, None) if source is None else self._values(source, i, columns, n)
            if vector.kind is not VectorKind.NUMBERED:
                types = [self.new.layout.types[c] for c in self.new.layout.values[i]]
                out += [np.zeros(n, t) for t in types] if values is None else values
            if self.new.layout.codes[i] is not None:
                unknown = VALUE if vector.kind is VectorKind.ROW and not vector.masks else ABSENT
                out.append(np.full(n, unknown, np.uint8) if code is None else code)
        return out + columns[len(self.old.layout.types) :]

    def _values(self, source: int, target: int, columns: Columns, n: int) -> tuple[Columns, np.ndarray | None]:
        layout, kinds = self.old.layout, (self.old.stage.vectors[source].kind, self.new.stage.vectors[target].kind)
        place = layout.codes[source]
        code = None if place is None else columns[place]
        values = [columns[c] for c in layout.values[source]]
        if kinds[0] is kinds[1] or not floating(self.old.stage, self.old.stage.vectors[source]):
            return values, code
        assert code is not None, "a value may be NULL"
        floats, code = _floats(kinds[0], values[0], code)
        return _FORMS[kinds[1]](floats, code)


def _floats(kind: VectorKind, values: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as they are, and whether they are NULL or absent."""
    if kind is VectorKind.BITS:
        return values.view(np.float64), code
    floats = values.copy()
    for what, number in ((NAN, np.nan), (PLUS_INFINITY, np.inf), (MINUS_INFINITY, -np.inf)):
        floats[code == what] = number
    return floats, np.where(code < NULL, VALUE, code).astype(np.uint8)


def _as_doubles(floats: np.ndarray, code: np.ndarray) -> tuple[Columns, np.ndarray]:
    code = code.copy()
    there = code < NULL
    code[there & np.isnan(floats)] = NAN
    code[there & (floats == np.inf)] = PLUS_INFINITY
    code[there & (floats == -np.inf)] = MINUS_INFINITY
    return [np.where(np.isfinite(floats), floats, 0.0)], code


_FORMS: dict[VectorKind, Callable[[np.ndarray, np.ndarray], tuple[Columns, np.ndarray]]] = {
    VectorKind.DOUBLE: _as_doubles,
    VectorKind.ORDERED: lambda floats, code: ([to_ordered(floats)], code),
    VectorKind.BITS: lambda floats, code: ([np.ascontiguousarray(floats).view(np.int64)], code),
}


def carry_rows(old: Reservoir, new: Reservoir, relayout: Relayout) -> None:
    """All rows of a reservoir into another, chunk by chunk, under the same numbers."""
    new.first, new.last_ts, new.first_chunk = old.first, old.last_ts, old.first_chunk
    for index in range(len(old.first)):
        chunk = old.chunk(index)
        new.store.put(old.first_chunk + index, Chunk(chunk.ts, relayout(chunk.columns)))
    new.reopen(RowRange(old.open.first, old.open.ts, relayout(old.open.columns)))


def carry_final(old: FinalRows, new: FinalRows, relayout: Relayout) -> None:
    """The same for rows with their keys."""
    new.oldest, new.compacted = old.oldest, old.compacted
    new.widen(old.words)
    carry_rows(old.reservoir, new.reservoir, relayout)
