"""How many sequences there are in a stream of the generator, counted from the definition and not by the engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.generate import events

from .patterns_runs import NEGATED, UNIT, Run


def count_by_hand(run: Run) -> int:
    """For every first event: ways to go on from place to place within the window, with no C between B and D."""
    times = ordered_times(run)
    positive = [t for t in run.types if t != NEGATED]
    span = round(run.window * UNIT) << 4
    total = 0.0
    for first in times[positive[0]]:
        end = ((first >> 4 << 4) + span) | 15  # any type at the last time
        ways, places = np.ones(1), np.array([first])
        for name in positive[1:]:
            low, high = np.searchsorted(times[name], (first, end), side="right")
            following = times[name][low:high]
            fits = places[:, None] < following[None, :]
            if name == "D":
                before = np.searchsorted(times[NEGATED], places)
                fits &= before[:, None] == np.searchsorted(times[NEGATED], following)[None, :]
            ways, places = ways @ fits, following
        total += ways.sum()
    return round(total)


def ordered_times(run: Run) -> dict[str, np.ndarray]:
    """The events of each type in the total order, as numbers: the time, and at one time the place of the type."""
    rows = events("sequence", run.options, 0, run.rows)
    rows = rows.filter(pc.is_valid(rows.column("at")))
    at, kind = rows.column("at").cast(pa.int64()).to_numpy(), np.array(rows.column("type").to_pylist())
    return {name: np.sort((at[kind == name] << 4) + i) for i, name in enumerate(run.types)}
