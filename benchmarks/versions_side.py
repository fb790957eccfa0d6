"""Headrace's own side of some benchmarks, in one version of it: what `versions` runs in a process of its own.

The engine and the helpers that are imported here are those of the checkout that is measured; this file is the same for all of
them, so it asks only for what every version has. All values are rates: more is better.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

Values = dict[str, float]


def main(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    began = cpu_seconds()
    values = PARTS[options.part](options)
    print(json.dumps({"values": values, "cpu_seconds": cpu_seconds() - began, "headrace": where()}), flush=True)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser()
    options.add_argument("part", choices=tuple(PARTS))
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--rows", type=int, required=True)
    options.add_argument("--rounds", type=int, required=True)
    options.add_argument("--warm-up", type=float, required=True, help="seconds that do not count")
    options.add_argument("--measured", type=float, required=True, help="seconds of small batches that do")
    return options


def sliding(options: argparse.Namespace) -> Values:
    """In order and with late rows."""
    from benchmarks import engine
    from benchmarks.payments import Payments, ensure

    spec = Payments().shrink(options.rows)
    late = replace(spec, late_share=0.1, late_max_seconds=10.0)
    spark = engine.session()
    asked = {
        "in order": lambda: engine.sliding(spark, ensure(spec, options.data)),
        "10% late": lambda: engine.sliding(spark, ensure(late, options.data), delay_seconds=10.0),
    }
    out = rates(asked, options)
    spark.stop()
    return out


def small_batches(options: argparse.Namespace) -> Values:
    """Micro-batches a second at 500 events/s, from the median of their times."""
    from benchmarks import engine
    from benchmarks.feeder import Trickle, measure_batches
    from benchmarks.small_batches import start_headrace

    spark = engine.session()
    trickle = Trickle(500.0, 0.5, options.warm_up, options.measured)
    times = measure_batches(spark, start_headrace, trickle)
    spark.stop()
    return {"micro-batch": 1000.0 / times.median}


def patterns(options: argparse.Namespace) -> Values:
    """Two payments of a card on Spark, with few matches and with many; and a sequence event by event, by its processor time."""
    import numpy as np

    from benchmarks import engine
    from benchmarks.patterns_driver import trace_of
    from benchmarks.patterns_runs import Run, Strategy
    from benchmarks.payments import Payments, ensure, table
    from benchmarks.rivals.spark_native import run_to_end

    rows = options.rows
    spec = Payments(rows=rows, files=10, cards=max(1, rows // 100), events_per_second=rows / 10_000.0)
    amounts = table(spec)["amount"].to_numpy()
    data, ends = ensure(spec, options.data), float(np.quantile(amounts, 0.8))

    def ask(spark: Any, matches: float) -> Any:
        select = f"""EVENT SEQ(payments a, payments d) NEXT MATCH WHERE a.card = d.card
            AND a.amount <= {float(np.quantile(amounts, matches))!r} AND d.amount > {ends!r} WITHIN 60 MINUTES
            RETURN a.card AS card, a.id AS first_id, d.id AS last_id EMIT CHANGES"""
        return run_to_end("headrace", engine.results(spark, engine.script(data, select)), "append")

    spark = engine.session()
    out = rates({f"{m:g} matches": lambda m=m: ask(spark, m) for m in (0.01, 0.3)}, options)
    spark.stop()
    run = Run(Strategy.AGGRESSIVE, 5, 0.3, 0.3, rows=max(500, rows // 200))
    busy = [float(trace_of(run).busy.sum()) for _ in range(options.rounds)]
    return {**out, "event by event": run.events / statistics.median(busy) * 1e9}


def rates(asked: dict[str, Callable[[], Any]], options: argparse.Namespace) -> Values:
    """All in turn, untimed until the warm-up is over; then the median of each.

    The warm-up is a time and no number of runs: the JVM compiles while it runs, so a version whose first run takes longer would
    have more of it compiled when the clock starts.
    """
    began = time.monotonic()
    while True:
        for run in asked.values():
            run()
        if time.monotonic() - began >= options.warm_up:
            break
    seen: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(options.rounds):
        for name, run in asked.items():
            seen[name].append(run().events_per_second)
    return {name: statistics.median(found) for name, found in seen.items()}


def cpu_seconds() -> float:
    """Processor time of this process and all below it, also of those that have ended."""
    below, ticks = {os.getpid()}, 0
    stats = sorted((stat_of(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()), key=lambda s: s[0])
    growing = True
    while growing:  # numbers of processes may start again, so a child may stand before its parent
        more = {pid for pid, parent, _ in stats if parent in below} - below
        below |= more
        growing = bool(more)
    ticks = sum(used for pid, _, used in stats if pid in below)
    return ticks / os.sysconf("SC_CLK_TCK")


def stat_of(pid: int) -> tuple[int, int, int]:
    """A process, its parent, and its ticks."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return pid, 0, 0
    return pid, int(words[1]), sum(map(int, words[11:15]))


def where() -> str:
    """Which headrace this was: a mistake in the path would compare a version with itself."""
    import headrace

    return str(Path(headrace.__file__).resolve().parent)


PARTS: dict[str, Callable[[argparse.Namespace], Values]] = {
    "sliding": sliding, "small_batches": small_batches, "patterns": patterns,
}  # fmt: skip
