"""What an experiment looks at beside the runs of the figures: what a call brought, runs in a row, where the time goes."""

from __future__ import annotations

import cProfile
import pstats
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.generate import events

from .patterns_driver import trace_of
from .patterns_metrics import Measures, measured
from .patterns_runs import UNIT, Run


def late_of(run: Run, rows: np.ndarray, kind: str | None = None) -> np.ndarray:
    """Which of these rows are events, of a type if one is given, that arrived after their time."""
    every = events("sequence", run.options, 0, run.rows)
    at, arrival = (every.column(c).cast(pa.int64()).fill_null(0).to_numpy() for c in ("at", "arrival"))
    late = np.array(pc.is_valid(every.column("at"))) & (at < arrival)
    if kind is not None:
        late &= np.array(pc.equal(every.column("type"), kind))
    return np.asarray(late[rows])


def in_a_row(run: Run, times: int) -> list[Measures]:
    """The same run again and again, in a process that has done nothing before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return list(pool.map(_measures, [run] * times))


def _measures(run: Run) -> Measures:
    return measured(trace_of(run), run.events, UNIT)[0]


def share_in(run: Run, *files: str) -> float:
    """The share of a run's time, profiled, that is spent in functions of these files and what they call."""
    trace_of(run)
    profile = cProfile.Profile()
    profile.runcall(trace_of, run)
    stats = pstats.Stats(profile)
    process = sum(found[3] for (path, _, name), found in stats.stats.items() if name == "process" and _is(path, "processor.py"))
    inside = 0.0
    for (path, _, _), (_, _, own, total, callers) in stats.stats.items():
        if _is(path, *files):
            # What one such function spends in another is counted once: as that of the outer one.
            nested = sum(times[3] for caller, times in callers.items() if _is(caller[0], *files))
            inside += total - nested if callers else own
    return inside / process


def _is(path: str, *files: str) -> bool:
    return Path(path).name in files and "headrace" in path
