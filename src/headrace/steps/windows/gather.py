"""Windows of another number of buckets: final rows in the order of time, and what lies in no stored rows, key by key.

Rows of one time that come from several buckets have no key in common, so their order means nothing. What is held of stored
rows is left out: it is added up anew (`adopt.py`). Numbers of rows are at least as high as they were in any bucket, since rings
go on with those that they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.tally import DistinctTally
from headrace.changes.keys import Keys
from headrace.program.aggregates import vectors_of
from headrace.state.reservoir import RowRange
from headrace.state.rows import Rows
from headrace.state.share import chosen
from headrace.steps.windows.adopt import of_stored_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.program.aggregates import Tally
    from headrace.state.share import Share
    from headrace.steps.windows.step import WindowsStep


def gather_windows(new: WindowsStep, shares: Sequence[Share]) -> list[list[np.ndarray]]:
    """All that the buckets have for this one. Gives the columns of the rows that some window may still hold."""
    to, before = new.evaluator, [share.step.evaluator for share in shares]
    to.numbered, to.moved_to = max(of.next_row for of in before), max(of.moved_to for of in before)
    to.ended = set().union(*(of.ended for of in before))
    if to.stores_rows:
        _rows(new, shares)
    for share in shares:
        _rings(new, share)
        _lives(new, share)
        _tallies(new, share)
        for (group, partition), owner in to.owners.items():
            kept, first, stop = share.run(group)
            owner.of[first:stop] = share.mapped(partition, share.step.evaluator.owners[group, partition].of[kept])
    first = to.edges[to.offsets[-1]] if to.offsets else new.reservoir.oldest
    return [run.columns for run in new.reservoir.between(first, new.reservoir.count)]


def _rows(new: WindowsStep, shares: Sequence[Share]) -> None:
    to, reservoir = new.evaluator, new.reservoir
    rows = Rows.empty(to.layout)
    for share in shares:
        old = share.step.reservoir
        for run in old.between(old.oldest, old.count):
            rows = rows.append(share.rows(Rows(Keys(run.ts, run.ts, run.ts), run.columns)))
    rows = rows.take(np.argsort(rows.ts, kind="stable"))
    first = max(0, to.numbered - len(rows))
    reservoir.reopen(RowRange(first, rows.ts[:0], to.layout.empty()))
    reservoir.append(rows)
    to.edges = {offset: first + int(rows.ts.searchsorted(to.moved_to - offset, side="right")) for offset in to.offsets}


def _rings(new: WindowsStep, share: Share) -> None:
    for i, ring in new.evaluator.rings.items():
        kept, first, stop = share.run(ring.partitions)
        old = share.step.evaluator.rings[i]
        state = old.dump(0, len(old.total))
        slots = (kept[:, None] * ring.size + np.arange(ring.size)).reshape(-1)
        columns = share.columns([state[f"r{c}"][slots] for c in range(len(ring.columns))])
        page = {"total": state["total"][kept], "rows": state["rows"][slots], **{f"r{c}": v for c, v in enumerate(columns)}}
        ring.load(first, stop, page)


def _lives(new: WindowsStep, share: Share) -> None:
    for lives, old in zip(new.lives, share.step.lives, strict=True):
        for table in (lives.base, lives.index, *lives.pairs):
            kept, first, stop = share.run(table)
            count = len(share.numbers[table])
            page = chosen(old.dump(table, 0, count), kept, count)
            for name, of in lives.referring(table).items():
                page[name] = np.where(page[name] < 0, page[name], share.mapped(of, page[name]))
            lives.load(table, first, stop, page)


def _tallies(new: WindowsStep, share: Share) -> None:
    """What no stored rows tell."""
    for i, (spec, tally) in enumerate(zip(new.program.tallies, new.evaluator.tallies, strict=True)):
        if of_stored_rows(new, spec.window):
            continue
        old, count = share.step.evaluator.tallies[i], len(share.numbers[spec.group])
        kept, first, stop = share.run(spec.group)
        tally.load(first, stop, _renumbered(new, spec, share, chosen(old.dump(0, count), kept, count)))
        if isinstance(tally, DistinctTally):
            count = len(share.numbers[tally.pairs])
            kept, first, stop = share.run(tally.pairs)
            tally.load_pairs(first, stop, chosen(old.dump_pairs(0, count), kept, count))


def _renumbered(new: WindowsStep, spec: Tally, share: Share, state: dict[str, Any]) -> dict[str, Any]:
    """What is held of values that are numbers of a table."""
    tables = [new.stage.vectors[v].table for v in vectors_of(spec)]
    if "held" in state and any(t is not None for t in tables):
        held = state["held"].reshape(-1, len(tables)).copy()
        for column, table in enumerate(tables):
            if table is not None:
                held[:, column] = share.mapped(table, held[:, column])
        state["held"] = held.reshape(-1)
    return state
