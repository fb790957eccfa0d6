"""How fast are exact sliding windows, and beside what? SUM and COUNT per card over 60 minutes, for every event.

One engine after another in one run: Headrace, Flink's OVER, Spark's groupBy without a window (the floor), Spark's
hopping window, and the pattern that recomputes a window for every event. Headrace also on disordered input.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import command, engine, report
from .payments import Payments, ensure, partitioned
from .report import Result, Target
from .rivals import flink_env, spark_native
from .rounds import Run, in_turn, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATE = "headrace, 10% late"
FLINK, FLINK_TOTAL, FLOOR = "flink OVER", "flink OVER, with start-up", "spark groupBy"
WARM_UP_SHARE = 0.4  # of the rows of a slow rival: the JVM compiles what is hot only after some seconds of it


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    spec = Payments(rows=command.rows_of(options), files=command.files_of(options), cards=options.cards)
    spark = engine.session()
    fast: list[tuple[Payments, Run]] = [(spec, engine.sliding), (spec, spark_native.group_by), (late(spec), sliding_late)]
    results = [
        *in_turn(log, spark, fast, options.rounds, options.quick),
        once(log, spark, spec.shrink(spec.rows // options.hop_shrink), spark_native.hopping, options.quick),
        once(log, spark, spec.shrink(spec.rows // options.recompute_shrink), spark_native.recompute, options.quick),
    ]
    spark.stop()
    results[1:1] = [] if options.no_flink else flink(log, spec)
    title = f"SUM and COUNT over 60 minutes per event; {spec.rows:,} payments, {spec.cards:,} cards"
    plot = command.file_for(options, "png")
    report.save_bars(results, title, plot)
    table = report.ratio_table(results, engine.SUBJECT, title)
    table.caption = f"median of {options.rounds} runs. steady: without the first micro-batch. fewer rows: fewer cards, as busy"
    flink_version = None if options.no_flink else flink_env.FLINK_VERSION
    command.finish(log, options, results, targets(results), table, flink=flink_version, plot=plot)


def late(spec: Payments) -> Payments:
    return replace(spec, late_share=0.1, late_max_seconds=10.0)


def sliding_late(spark: SparkSession, data: Path) -> Result:
    return engine.sliding(spark, data, delay_seconds=10.0, name=LATE)


def once(log: command.Log, spark: SparkSession, spec: Payments, run: Run, quick: bool) -> Result:
    """A slow rival: a shorter run of the same kind first, untimed."""
    short = replace(spec.shrink(max(int(spec.rows * WARM_UP_SHARE), 10)), files=4)
    if not quick:
        run(spark, ensure(short, command.DATA))
    return said(log, run(spark, ensure(spec, command.DATA)))


def flink(log: command.Log, spec: Payments) -> list[Result]:
    """Twice the same run: from the submitted job on, and with the JVM, the cluster and the planning before it."""
    try:
        printed = flink_env.run(
            flink_env.ensure(), "flink_over.py", {"data": partitioned(ensure(spec, command.DATA)), "minutes": 60}
        )
    except flink_env.FlinkUnavailable as why:
        log.say(f"[yellow]without Flink:[/] {why}")
        return []
    result = report.from_flink(FLINK, printed)
    log.say(f"{result.name}: {result.events_per_second:,.0f} events/s")
    return [result, Result(FLINK_TOTAL, result.rows, float(printed["total_seconds"]))]


def targets(results: list[Result]) -> list[Target]:
    by_name = {r.name: r for r in results}
    ours, floor, disordered = by_name[engine.SUBJECT], by_name[FLOOR], by_name[LATE]
    out = [
        Target("Spark's groupBy", ours.events_per_second / floor.events_per_second, 0.7),
        Target("Spark's groupBy, steady", ours.steady / floor.steady, 0.7),
        Target("10% up to 10 s late, of in-order", disordered.events_per_second / ours.events_per_second, 0.5),
        Target("10% up to 10 s late, of in-order, steady", disordered.steady / ours.steady, 0.5),
    ]
    if FLINK in by_name:
        out.insert(0, Target("Flink's OVER, without its start-up", ours.events_per_second / by_name[FLINK].events_per_second, 4))
    return out


def arguments() -> argparse.ArgumentParser:
    options = command.parser("sliding", __doc__.splitlines()[0], rows=5_000_000)
    options.add_argument("--cards", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3, help="Headrace and groupBy so often, in turn")
    options.add_argument("--no-flink", action="store_true", help="leave Flink out")
    options.add_argument("--hop-shrink", type=int, default=10, help="Spark's hopping window gets one in so many rows")
    options.add_argument("--recompute-shrink", type=int, default=50, help="and recompute-per-event one in so many")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
