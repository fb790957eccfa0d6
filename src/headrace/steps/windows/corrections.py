"""What is said of events for which windows are evaluated: which of it may have changed, and which did, bit for bit."""

from __future__ import annotations

import numpy as np

from headrace.aggregates.metrics import MetricColumn
from headrace.changes.algebra import diff
from headrace.program.outputs import Output
from headrace.program.windows import WindowStage
from headrace.state.rows import Rows
from headrace.steps.reached import Reached


def tables(stage: WindowStage, output: Output) -> set[int] | None:
    """The tables by whose keys a change spreads; None: it spreads to every row after it."""
    found: set[int] = set()
    for metric in output.metrics:
        tally = stage.program.tallies[metric.tally]
        program = stage.program.windows[tally.window]
        if program.window.counts_rows and program.partitions != tally.group:
            return None
        base = stage.tables[tally.group].base
        found.add(tally.group if base is None else base)  # a late row may give other lives to all rows of its key
    return found


def differences(
    old: Rows, new: Rows, rows: Reached, was: list[MetricColumn], now: list[MetricColumn], removed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places in `rows.old` to take back, and in `rows.new` to say. What was `removed` has changed if it came back."""

    def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        changed = removed[rows.old[a]]
        for one, other in zip(was, now, strict=True):
            changed |= one.take(a).differs(other.take(b))
        return changed

    return diff(*old.keys.take(rows.old).beside(new.keys.take(rows.new)), differs)
