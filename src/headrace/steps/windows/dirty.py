"""Which results may have changed, and which did.

A row that comes late can change only results of events after it in the total order whose window it shares: those with its key,
or, for windows that count rows of all keys, all of them. This finds a set that surely holds them all; comparing bit for bit
what was said with what is to be said finds those that did change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.aggregates.metrics import MetricColumn
from headrace.changes.algebra import diff
from headrace.plan.windows import RowsWindow
from headrace.program.stage import Output, Stage
from headrace.state.rows import Rows


@dataclass(slots=True)
class Plan:
    """Indexes, ascending: rows of the old zone to be read as it was, and of the new zone as it is."""

    old: np.ndarray
    new: np.ndarray


def nothing() -> Plan:
    """No rows."""
    none = np.empty(0, np.int64)
    return Plan(none, none)


def plan(
    stage: Stage, output: Output, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray, capacities: list[int]
) -> Plan:
    """The rows to read for one output."""
    return spread(_tables(stage, output), old, new, removed, is_new, capacities, stage.has_peers)


def spread(
    tables: set[int] | None, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray, capacities: list[int],
    peers: bool = False,
) -> Plan:  # fmt: skip
    """The rows that a change reaches: those with its keys in these tables; None: every row after it, with `peers` of its time."""
    fresh, gone = is_new.nonzero()[0], removed.nonzero()[0]
    if len(fresh) == 0 and len(gone) == 0:
        return nothing()
    first_old = min(_before(fresh, is_new), int(gone[0]) if len(gone) else len(old))
    if peers:
        first = min(int(rows.ts[at[0]]) for rows, at in ((new, fresh), (old, gone)) if len(at))
        first_old = min(first_old, int(old.ts.searchsorted(first)))
    if first_old >= len(old):  # everything came after what was there: nothing said before can change
        return Plan(np.empty(0, np.int64), fresh)
    maybe_old = np.zeros(len(old) - first_old, np.bool_)
    maybe_new = np.zeros(len(new) - first_old, np.bool_)
    if tables is None:
        maybe_old[:], maybe_new[:] = True, True
    for table in tables or ():
        marked = np.zeros(capacities[table], np.bool_)
        marked[new.columns[table][fresh]] = True
        marked[old.columns[table][gone]] = True
        maybe_old |= marked[old.columns[table][first_old:]]
        maybe_new |= marked[new.columns[table][first_old:]]
    maybe_old |= removed[first_old:]
    maybe_new |= is_new[first_old:]
    return Plan(maybe_old.nonzero()[0] + first_old, maybe_new.nonzero()[0] + first_old)


def _before(fresh: np.ndarray, is_new: np.ndarray) -> int:
    """How many old rows stand before the first fresh one; rows before it are all old, so its index says it."""
    return int(fresh[0]) if len(fresh) else len(is_new)


def _tables(stage: Stage, output: Output) -> set[int] | None:
    """The tables by whose keys a change spreads; None: it spreads to every row after it."""
    tables: set[int] = set()
    for metric in output.metrics:
        tally = stage.tallies[metric.tally]
        program = stage.windows[tally.window]
        if isinstance(program.window, RowsWindow) and program.partitions != tally.group:
            return None
        base = stage.tables[tally.group].base
        tables.add(tally.group if base is None else base)  # a late row may give other lives to all rows of its key
    return tables


def differences(
    old: Rows, new: Rows, rows: Plan, was: list[MetricColumn], now: list[MetricColumn], removed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places in `rows.old` to take back, and in `rows.new` to say. What was `removed` has changed if it came back."""

    def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        changed = removed[rows.old[a]]
        for one, other in zip(was, now, strict=True):
            changed |= one.take(a).differs(other.take(b))
        return changed

    if len(rows.old) == 0 or len(rows.new) == 0:  # most often: nothing that was said can have changed
        return np.arange(len(rows.old)), np.arange(len(rows.new))
    return diff(old.keys.take(rows.old).columns, new.keys.take(rows.new).columns, differs)
