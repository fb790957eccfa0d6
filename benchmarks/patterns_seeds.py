"""Runs of the experiments, each with several seeds; what was measured is kept, so that a run that was stopped can go on.

What depends on the machine differs from seed to seed, and so does what depends on chance. A figure shows the median of the
seeds, and beside it the least and the most.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from . import command
from .patterns_count import count_by_hand
from .patterns_driver import trace_of
from .patterns_metrics import Measures, Timeline, measured
from .patterns_runs import UNIT, Run
from .report import NotMeasured

SEEDS = 5
Found = tuple[Measures, Timeline]


@dataclass(frozen=True)
class Keep:
    """Where what was measured lies, a file for each run."""

    folder: Path

    def begin(self, resume: bool) -> None:
        if not resume:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)

    def find(self, run: Run) -> Found | None:
        path = self._path(run)
        return pickle.loads(path.read_bytes()) if path.exists() else None

    def keep(self, run: Run, found: Found) -> None:
        """Whole or not at all."""
        hidden = self._path(run).with_suffix(".part")
        hidden.write_bytes(pickle.dumps(found))
        hidden.rename(self._path(run))

    def _path(self, run: Run) -> Path:
        return self.folder / f"{hashlib.sha256(repr(run).encode()).hexdigest()[:20]}.run"


def with_seeds(run: Run, seeds: int) -> list[Run]:
    return [replace(run, seed=run.seed + i) for i in range(seeds)]


def all_of(log: command.Log, asked: Iterable[Run], seeds: int, workers: int, keep: Keep) -> dict[Run, list[Found]]:
    """Every run with every seed, seed by seed: what else the machine does in a minute then falls on many runs, not on one."""
    runs = list(dict.fromkeys(asked))
    every = [replace(run, seed=run.seed + i) for i in range(seeds) for run in runs]
    found = {run: known for run in every if (known := keep.find(run)) is not None}
    left = [run for run in every if run not in found]
    log.say(f"{len(runs)} runs with {seeds} seeds: {len(found)} were measured before, {len(left)} to go")
    for number, (run, new) in enumerate(zip(left, measure_each(left, workers), strict=True), 1):
        keep.keep(run, new)
        found[run] = new
        wait = "-" if new[0].wait_units is None else f"{new[0].wait_units:.2f}"
        what = f"{run.strategy.value}, length {run.length}, seed {run.seed}"
        log.say(f"{number} of {len(left)}: {what}: {new[0].execution_us:.0f} µs an event, waits {wait} units")
    return {run: [found[one] for one in with_seeds(run, seeds)] for run in runs}


def measure_each(runs: Sequence[Run], workers: int) -> Iterator[Found]:
    """In this process, or in as many as there are cores: what is timed is processor time."""
    if workers <= 1:
        yield from map(one, runs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(one, runs)


def one(run: Run) -> Found:
    """A run, its results counted by hand."""
    found, line = measured(trace_of(run), run.events, UNIT)
    wanted = count_by_hand(run)
    if found.results != wanted:
        raise RuntimeError(f"{found.results:,} results, counted by hand {wanted:,}: {run}")
    return found, line


def spread(values: Iterable[float | None], what: str) -> tuple[float, float, float]:
    """The median, the least and the most."""
    known = list(values)
    if not known or any(v is None for v in known):
        raise NotMeasured(f"{what}: there is no result to take a mean of; more rows are needed")
    sure = [float(v) for v in known if v is not None]
    return statistics.median(sure), min(sure), max(sure)


def point(x: float, found: Sequence[Found], metrics: dict[str, Callable[[Found], float | None]], what: str) -> dict[str, Any]:
    """A place of a figure: the median of every metric, and under `spread` what it lies between."""
    seen = {name: spread(map(read, found), f"{what}, {name}") for name, read in metrics.items()}
    middle = {name: middle for name, (middle, _, _) in seen.items()}
    return {"x": x, **middle, "spread": {name: [low, high] for name, (_, low, high) in seen.items()}, "seeds": len(found)}
