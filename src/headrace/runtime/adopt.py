"""A bucket of a changed script takes over what a bucket of the old one kept: part by part, by name.

The old bucket is loaded by the program that wrote it; what means the same is carried over, what is gone is left behind, and what
is new is made from the rows that are kept. What cannot be made was refused before (`evolution/compare.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.changes.rows import batch_of
from headrace.evolution.names import Names
from headrace.plan.arrow import arrow_type
from headrace.runtime.clock import Clock, Follower
from headrace.runtime.processor import TaskProcessor
from headrace.state.open_rows import OpenRows
from headrace.state.relayout import Laid, Relayout
from headrace.state.rows import Rows
from headrace.steps.shown import carried
from headrace.steps.step import Given


def adopt(new: TaskProcessor, old: TaskProcessor, names: tuple[Names, Names], continued: Mapping[str, str]) -> None:
    """Take all over. `names` are those of the new stage and the old; `continued` has the old name of every query that goes on."""
    relayout = Relayout(Laid(old.stage, names[1], old.layout), Laid(new.stage, names[0], new.layout))
    given = Given(relayout, names[0], names[1], dict(continued))
    adopt_clocks(new, old, names)
    for index, table in enumerate(relayout.tables):
        if table is not None:
            new.tables[index].load(old.tables[table].dump())
    new.open.rows = _open_rows(new, old, given)
    new.open.counts = old.open.counts
    new.since, new.fresh = old.since, old.fresh
    uniques, before = new.open.uniques, old.open.uniques
    if uniques is not None and before is not None:
        uniques.grow(uniques.table.capacity)
        uniques.load(0, before.table.count, before.dump(0, before.table.count))
    new.step.grow()
    new.step.adopt(old.step, new.open.rows, given)
    _begin(new, old, given)
    new.tables.touch_all()


def adopt_clocks(new: TaskProcessor, old: TaskProcessor, names: tuple[Names, Names]) -> None:
    """How far the sources are that both have. A stage that is new begins where its sources are."""
    before = dict(zip(names[1].sources, old.clock.sources, strict=True))
    for i, name in enumerate(names[0].sources):
        clock, known = new.clock.sources[i], before.get(name)
        if isinstance(clock, Clock) and isinstance(known, Clock):
            new.clock.sources[i] = Clock.load(clock.disorder, known.dump())
        elif isinstance(clock, Follower) and isinstance(known, Follower):
            new.clock.sources[i] = clock.load(known.dump())


def _open_rows(new: TaskProcessor, old: TaskProcessor, given: Given) -> OpenRows:
    """Open rows, laid out anew. Of rows that came before it a new query says nothing."""
    rows = old.open.rows
    known = {given.old.inputs[i]: rows.carry.column(at) for at, i in enumerate(carried(old.stage))}
    columns = []
    for i in carried(new.stage):
        kind = arrow_type(new.stage.inputs[i].type)
        column = known.get(given.new.inputs[i])
        columns.append(pa.nulls(len(rows), kind) if column is None else column.cast(kind))
    carry = batch_of(columns, [f"i{i}" for i in carried(new.stage)], len(rows))
    flags = {o.query: f for o, f in zip(old.stage.program.outputs, rows.wanted, strict=False)}
    wanted: list[np.ndarray | None] = []
    for output in new.stage.program.outputs:
        before = given.continued.get(output.query)
        wanted.append(flags[before] if before in flags else np.zeros(len(rows), np.bool_))
    if new.stage.unique is not None:
        wanted.append(rows.wanted[-1])
    return OpenRows(Rows(rows.rows.keys, given.relayout(rows.rows.columns)), carry, wanted)


def _begin(new: TaskProcessor, old: TaskProcessor, given: Given) -> None:
    """Queries whose results are not rows as they come begin with what lies behind all that has been seen."""
    shown = {o.query for o in new.stage.program.outputs}
    for query in new.stage.program.queries:
        before = given.continued.get(query)
        if before is not None and before in old.begun:
            new.begun[query] = old.begun[before]
        elif before is None and query not in shown:
            new.begun[query] = new.clock.last
