"""A script whose task processors are a partition of the store, record by record, as a unit runs them; without Spark or a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.log.log import At
from headrace.oracle.admission import Batch
from headrace.oracle.rows import canonical_row
from headrace.plan.query import Script
from headrace.serve.store.store import Store
from headrace.testing.engine import Outputs
from headrace.testing.local import LocalEngine

AT = At("payments.card", 3)
CHUNK_ROWS = 3


def records_of(script: Script, batches: Iterable[Batch]) -> list[Batch]:
    """An event in each record; those of tables are all in the first, and where nothing came time passes."""
    tables = {s.name for s in script.streams if s.static}
    out: list[Batch] = []
    for batch in batches:
        static = {name: rows for name, rows in batch.rows.items() if name in tables}
        events = [Batch(batch.now, {name: [row]}) for name, rows in batch.rows.items() if name not in tables for row in rows]
        out += [Batch(batch.now, static)] if static or not events else []
        out += events
    return out


def shown(outputs: Outputs) -> dict[str, list[Any]]:
    """Something that can be compared."""
    return {name: [(c.sign, c.key, canonical_row(c.row)) for c in changes] for name, changes in outputs.items()}


def answers(script: Script, records: Sequence[Batch]) -> list[dict[str, list[Any]]]:
    """Those of a run without failures."""
    engine = LocalEngine(script, 1, chunk_rows=CHUNK_ROWS)
    return [shown(engine.push(record)) for record in records]


class Unit(LocalEngine):
    """Goes on where the newest commit stands."""

    def __init__(self, script: Script, store: Store, epoch: int, records: Sequence[Batch]) -> None:
        super().__init__(script, 1)
        self.partition = store.open(AT, epoch, self.lowered.stages, CHUNK_ROWS)
        self._processors = {at: self.partition.processors[at[0]] for at in self._processors}
        self.offset = self.partition.offset
        for record in records[: self.offset]:
            for stream in self.lowered.streams:
                for row in record.rows.get(stream.rows_of, ()):
                    self._next_position(stream.name, row.partition)

    def answer(self, record: Batch) -> dict[str, list[Any]]:
        out = shown(self.push(record))
        self.offset += 1
        return out
