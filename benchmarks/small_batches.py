"""How long is a micro-batch at 500 events/s, beside that of Spark's own aggregate in the same session?"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING

from rich.table import Table

import headrace as hr

from . import command, engine, report
from .feeder import BatchTimes, Trickle, measure_batches
from .report import Result, Target
from .rivals.spark_native import start_aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

SPARK = "spark groupBy"


def start_headrace(payments: DataFrame, checkpoint: str) -> StreamingQuery:
    """SUM and COUNT per card over 60 minutes, for every event, as an existing PySpark job would have it."""
    stream = hr.stream(payments, timestamp="at", delay="0 seconds")
    profile = stream.window(hr.range("60 minutes")).group_by("card").agg(total=hr.sum("amount"), n=hr.count())
    writer = profile.emit("changes").to_df().writeStream.format("noop").outputMode("append")
    return writer.option("checkpointLocation", checkpoint).start()


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    trickle = trickle_of(options)
    spark = engine.session()
    seen: dict[str, list[BatchTimes]] = {engine.SUBJECT: [], SPARK: []}
    for number in range(1 if options.quick else options.rounds + 1):
        for name, build in ((engine.SUBJECT, start_headrace), (SPARK, start_aggregate)):
            times = measure_batches(spark, build, trickle)
            counts = number > 0 or options.quick  # in the first round the JVM still compiles, most of all for who comes first
            log.say(
                f"{name}: median {times.median:.0f} ms of {len(times.milliseconds)} batches{'' if counts else ', not counted'}"
            )
            seen[name] += [times] if counts else []
    spark.stop()
    results = [result(name, times) for name, times in seen.items()]
    ours, floor = (r.details["median_ms"] for r in results)
    plot = command.file_for(options, "png")
    title = f"micro-batch time at {trickle.events_per_second:,.0f} events/s"
    report.save_spread({n: every_time(t) for n, t in seen.items()}, "ms", title, plot)
    targets = [Target("median micro-batch, of Spark's groupBy", ours / floor, 1.8, at_least=False)]
    command.finish(log, options, results, targets, times_table(results, title), plot=plot)


def trickle_of(options: argparse.Namespace) -> Trickle:
    seconds = (0.0, 1.0) if options.quick else (options.warm_up, options.measured)
    return Trickle(options.rate, options.interval, *seconds)


def every_time(times: list[BatchTimes]) -> list[float]:
    return [ms for part in times for ms in part.milliseconds]


def result(name: str, times: list[BatchTimes]) -> Result:
    all_times = every_time(times)
    details = {
        "median_ms": statistics.median(all_times),
        "median_ms_per_round": [t.median for t in times],
        "p90_ms": statistics.quantiles(all_times, n=10)[-1] if len(all_times) > 1 else all_times[0],
        "worst_ms": max(all_times),
        "batches": len(all_times),
    }
    return Result(name, sum(t.rows for t in times), sum(all_times) / 1000.0, details)


def times_table(results: list[Result], title: str) -> Table:
    table = Table(title=title)
    table.add_column("")
    for heading in ("batches", "median ms", "90% ms", "worst ms", "rows/batch"):
        table.add_column(heading, justify="right")
    for r in results:
        d = r.details
        times = (f"{d[k]:.0f}" for k in ("median_ms", "p90_ms", "worst_ms"))
        table.add_row(r.name, str(d["batches"]), *times, f"{r.rows / d['batches']:.0f}")
    return table


def arguments() -> argparse.ArgumentParser:
    options = command.parser("small_batches", __doc__.splitlines()[0])
    options.add_argument("--rate", type=float, default=500.0, help="events per second")
    options.add_argument("--interval", type=float, default=0.5, help="seconds between files")
    options.add_argument("--warm-up", type=float, default=20.0, help="seconds before it counts")
    options.add_argument("--measured", type=float, default=40.0, help="seconds that count")
    options.add_argument(
        "--rounds", type=int, default=2, help="each engine so often, in turn, after one round that does not count"
    )
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
