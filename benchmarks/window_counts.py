"""Figure 6 (b) of Railgun: 10 to 120 windows that share neither end, SUM, AVG and COUNT over each.

Every window has two edges of its own, so there are 20 to 240 iterators in each bucket. The edges lie evenly over half of the
stream. Decoded chunks sit in a cache per worker; a small one makes iterators outnumber the chunks that it holds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import command, engine
from .command import Log
from .payments import Payments, ensure
from .report import NotMeasured, Result, Target
from .workers import Watch

COUNTS = (10, 20, 40, 80, 120)
CACHES = (256, 32)  # chunks per worker; 256 is the default
FILES = 20
# Quickly: one bucket, so that few rows already fill chunks.
QUICK_COUNTS, QUICK_FILES, QUICK_ROWS = (2, 4), 4, 16_000
MICROS = 1_000_000
CALLS = {"total": "SUM(amount)", "mean": "AVG(amount)", "n": "COUNT(*)"}


def edges(windows: int, span_seconds: float) -> list[tuple[int, int]]:
    """(begin, end) of every window in microseconds back from the event: no two alike, long and short ones mixed."""
    step = int(span_seconds * MICROS) // (2 * windows)
    return [((2 * windows - i) * step, i * step) for i in range(windows)]


def select(windows: int, span_seconds: float) -> str:
    """One row per event with the metrics of all windows: each is a stream that adds its own to those of the one before it."""
    steps, names, before = [], ["id", "card"], "payments"
    for i, (begin, end) in enumerate(edges(windows, span_seconds)):
        metrics = ", ".join(f"{call} AS {name}{i}" for name, call in CALLS.items())
        lag = f" LAG {end} MICROSECONDS" if end else ""
        window = f"[RANGE {begin - end} MICROSECONDS{lag}]"
        steps.append(f"CREATE STREAM w{i} AS SELECT *, {metrics} FROM {before} {window} GROUP BY card;")
        names += [f"{name}{i}" for name in CALLS]
        before = f"w{i}"
    return f"{' '.join(steps)} SELECT {', '.join(names)} FROM {before} EMIT CHANGES"


def measure(log: Log, rows: int, cards: int, caches: Sequence[int], quick: bool = False) -> list[Result]:
    spec = Payments(rows, QUICK_FILES if quick else FILES, cards)
    data = ensure(spec, command.DATA)
    out = []
    for cache in caches[:1] if quick else caches:
        for windows in QUICK_COUNTS if quick else COUNTS:
            out.append(measure_one(data, spec, windows, cache, 1 if quick else None))
            d = out[-1].details
            log.say(f"{out[-1].name}: {out[-1].events_per_second:,.0f} events/s, {d['hits']:,} hits, {d['misses']:,} misses")
    return out


def measure_one(data: Path, spec: Payments, windows: int, cache: int, buckets: int | None) -> Result:
    """The second half of the micro-batches: by then all edges move."""
    span = spec.rows / spec.events_per_second / 2.0
    spark = engine.session(**{"spark.executorEnv.HEADRACE_CACHE_CHUNKS": str(cache)})
    try:
        frame = engine.results(spark, engine.script(data, select(windows, span)), buckets, observe=True)
        with Watch() as watch:
            batches = run_batches(frame)
    finally:
        spark.stop()
    counted = batches[len(batches) // 2 :]
    seen = [b["observedMetrics"][engine.SUBJECT] for b in counted]
    details = {
        "windows": windows,
        "iterators": 2 * windows,
        "cache_chunks": cache,
        "hits": sum(s["cache_hits"] or 0 for s in seen),
        "misses": sum(s["cache_misses"] or 0 for s in seen),
        "largest_worker_mib": watch.memory.largest,
        "batch_ms": [b["durationMs"]["triggerExecution"] for b in batches],
    }
    if not details["hits"] + details["misses"]:
        raise NotMeasured(f"{windows} windows: no chunk was asked for, or progress did not say so")
    rows = sum(b["numInputRows"] for b in counted)
    seconds = sum(b["durationMs"]["triggerExecution"] for b in counted) / 1000.0
    return Result(f"{windows} windows, cache {cache}", rows, seconds, details)


def run_batches(frame: Any) -> list[dict[str, Any]]:
    """All reports of a run: observed metrics are in them."""
    with tempfile.TemporaryDirectory(prefix="headrace-windows-") as checkpoint:
        writer = frame.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        query = writer.option("checkpointLocation", checkpoint).start()
        query.awaitTermination()
        time.sleep(0.2)
        return [p for p in query.recentProgress if p["numInputRows"] > 0]


def of_cache(results: Sequence[Result], cache: int) -> list[Result]:
    return [r for r in results if r.details.get("cache_chunks") == cache]


def targets(results: Sequence[Result]) -> list[Target]:
    """Sub-linear: n times as many windows take less than n times as long."""
    out = []
    for cache in dict.fromkeys(r.details["cache_chunks"] for r in results):
        found = of_cache(results, cache)
        few, many = found[0], found[-1]
        growth = many.details["windows"] / few.details["windows"]
        longer = few.events_per_second / many.events_per_second
        name = f"{few.details['windows']} to {many.details['windows']} windows, cache {cache}: time grows"
        out.append(Target(name, longer, growth, at_least=False))
    return out
