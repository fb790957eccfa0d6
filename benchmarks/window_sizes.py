"""Figure 6 (a) of Railgun: windows of 5 minutes to 1 year, throughput and memory of the workers.

A year-long window that has not seen a year yet has nothing to remove and looks cheap, so there are three kinds of stream:

one stream    2 years of payments for every window: all of them lose as many events as they gain in the measured half,
              while they hold from a handful of events up to half of all
same share    as long as two of the windows: each holds half of the stream, however long it is
same pace     1,000 events/s for every window, as in `sliding`: the long ones never lose an event

Every run has a session, so workers, of its own. Only the second half of its micro-batches counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import command, engine
from .command import Log
from .payments import Payments, ensure
from .report import Result, Target
from .rivals.spark_native import run_to_end
from .workers import Watch

DAY = 86_400
SIZES = {"5 minutes": 300, "1 hour": 3_600, "1 day": DAY, "7 days": 7 * DAY, "1 year": 365 * DAY}
YEARS_2 = 2.0 * 365 * DAY
STREAMS = ("one stream", "same share", "same pace")
FAIR = STREAMS[:2]  # in the third, only the short windows lose events
FILES = 10
WARM_UPS = 4


@dataclass(frozen=True)
class Point:
    stream: str
    window: str
    seconds: int
    spec: Payments


def points(rows: int, cards: int, streams: Sequence[str] = STREAMS, files: int = FILES) -> Iterator[Point]:
    for stream in streams:
        for window, seconds in SIZES.items():
            span = {"one stream": YEARS_2, "same share": 2.0 * seconds, "same pace": rows / 1_000.0}[stream]
            yield Point(stream, window, seconds, Payments(rows, files, cards, events_per_second=rows / span))


def measure(log: Log, all_points: Sequence[Point], repeat: int, quick: bool = False) -> list[Result]:
    """Repeats lie as far apart as they can, so that a slow minute of the machine does not hit one window alone.

    The first runs do not count: the JVM, which all runs share, compiles in them.
    """
    for point in [] if quick else all_points[:WARM_UPS]:
        measure_one(point)
    runs: dict[Point, list[Result]] = {p: [] for p in all_points}
    for _ in range(repeat):
        for point in all_points:
            runs[point].append(measure_one(point))
            last = runs[point][-1]
            memory = last.details["largest_worker_mib"]
            log.say(f"{last.name}: {last.events_per_second:,.0f} events/s, largest worker {memory:,.0f} MiB")
    return [fastest(point, results) for point, results in runs.items()]


def measure_one(point: Point) -> Result:
    data = ensure(point.spec, command.DATA)
    spark = engine.session()
    try:
        frame = engine.results(spark, engine.script(data, engine.sum_and_count(f"{point.seconds} SECONDS")))
        with Watch() as watch:
            run = run_to_end(point.window, frame, "append")
    finally:
        spark.stop()
    files = point.spec.files
    rows = point.spec.rows // files * (files // 2)
    seconds = sum(run.details["batch_ms"][files // 2 :]) / 1000.0
    memory = {"largest_worker_mib": watch.memory.largest, "all_workers_mib": watch.memory.total}
    return Result(f"{point.stream}, {point.window}", rows, seconds, {**memory, "batch_ms": run.details["batch_ms"]})


def fastest(point: Point, runs: list[Result]) -> Result:
    """The fastest run: what else the machine does can only make one slower. The memory of the median run."""
    details = {
        "stream": point.stream,
        "window_seconds": point.seconds,
        "events_per_second_of_event_time": point.spec.events_per_second,
        "all_seconds": [r.seconds for r in runs],
    }
    for key in ("largest_worker_mib", "all_workers_mib"):
        details[key] = statistics.median(r.details[key] for r in runs)
    return Result(runs[0].name, runs[0].rows, min(r.seconds for r in runs), details)


def of_stream(results: Sequence[Result], stream: str) -> list[Result]:
    return [r for r in results if r.details.get("stream") == stream]


def targets(results: Sequence[Result]) -> list[Target]:
    """Slowest against fastest, largest against smallest: within 15% of each other, where all windows have the same work."""
    out = []
    for stream in FAIR:
        found = of_stream(results, stream)
        if found:
            rates = [r.events_per_second for r in found]
            sizes = [r.details["largest_worker_mib"] for r in found]
            out.append(Target(f"{stream}: slowest window / fastest", min(rates) / max(rates), 0.85))
            out.append(Target(f"{stream}: memory, largest / smallest", max(sizes) / min(sizes), 1.15, at_least=False))
    return out
