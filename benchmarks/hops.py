"""What does a finer hop cost? Flink's and Spark's hopping windows of 60 minutes against one exact window.

Figure 5 of Railgun as throughput. A hopping window copies an event into 3,600 s / hop windows, so the finer the hop, the
fewer rows a rival gets: every run makes about as many copies, and has about as much to do.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from . import command, engine, report
from .payments import Payments, ensure, partitioned
from .report import Result
from .rivals import flink_env, spark_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOPS = (300, 60, 30, 10, 5, 1)
QUICK_HOPS = (300, 60)
WINDOW_SECONDS = 3_600
COPIES, QUICK_COPIES = 12_000_000, 12_000
FLINK, SPARK = "flink hop", "spark hop"


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    whole = replace(Payments(), files=command.files_of(options))
    exact = whole.shrink(command.rows_of(options))
    hops, copies = (QUICK_HOPS, QUICK_COPIES) if options.quick else (HOPS, options.copies)
    inputs = {hop: ensure(whole.shrink(rows_for(hop, copies)), command.DATA) for hop in hops}
    spark = engine.session()
    ours = exact_window(log, spark, exact, options.quick)
    results = [ours, *spark_hops(log, spark, inputs, options.limit, options.quick)]
    spark.stop()
    results += [] if options.no_flink else flink_hops(log, inputs, options.limit)
    title = "60 minutes, SUM and COUNT per card: hopping windows against one exact window"
    plot = command.file_for(options, "png")
    report.save_lines(series(results), ("hop (s)", "events/s"), title, plot)
    flink_version = None if options.no_flink else flink_env.FLINK_VERSION
    command.finish(log, options, results, [], hop_table(results, title), flink=flink_version, plot=plot)


def rows_for(hop: int, copies: int) -> int:
    return max(100, copies * hop // WINDOW_SECONDS)


def exact_window(log: command.Log, spark: SparkSession, spec: Payments, quick: bool) -> Result:
    """The second of two runs, as Spark's hopping windows have one before them."""
    data = ensure(spec, command.DATA)
    if not quick:
        engine.sliding(spark, data)
    return said(log, engine.sliding(spark, data))


def spark_hops(log: command.Log, spark: SparkSession, inputs: dict[int, Path], limit: float, quick: bool) -> list[Result]:
    if not quick:
        spark_native.hopping(spark, inputs[300], 300, limit=limit)
    return [said(log, spark_native.hopping(spark, data, hop, limit=limit)) for hop, data in inputs.items()]


def flink_hops(log: command.Log, inputs: dict[int, Path], limit: float) -> list[Result]:
    try:
        env = flink_env.ensure()
        return [said(log, flink_hop(env, data, hop, limit)) for hop, data in inputs.items()]
    except flink_env.FlinkUnavailable as why:
        log.say(f"[yellow]without Flink:[/] {why}")
        return []


def flink_hop(env: flink_env.FlinkEnv, data: Path, hop: int, limit: float) -> Result:
    name = f"{FLINK} {hop} s"
    try:
        printed = flink_env.run(env, "flink_hop.py", {"data": partitioned(data), "hop_seconds": hop}, timeout=limit)
    except flink_env.FlinkTimeout:
        return Result(name, 0, limit, {"hop_seconds": hop, "unfinished_after": limit})
    return report.from_flink(name, printed)


def said(log: command.Log, result: Result) -> Result:
    log.say(f"{result.name}: {report.unfinished(result) or f'{result.events_per_second:,.0f} events/s'}")
    return result


def series(results: list[Result]) -> dict[str, list[tuple[float, float]]]:
    ours = results[0].events_per_second
    lines = {"headrace, exact": [(float(hop), ours) for hop in HOPS]}
    for result in results[1:]:
        if report.unfinished(result) is None:
            point = (float(result.details["hop_seconds"]), result.events_per_second)
            lines.setdefault(result.name.rsplit(" ", 2)[0], []).append(point)
    return lines


def hop_table(results: list[Result], title: str) -> Table:
    by_name = {r.name: r for r in results}
    ours = results[0].events_per_second
    table = Table(title=title, caption=f"headrace, exact: {ours:,.0f} events/s on {results[0].rows:,} rows")
    for heading in ("hop", "copies", SPARK, "headrace is", FLINK, "headrace is"):
        table.add_column(heading, justify="right")
    for hop in HOPS:
        cells = [c for engine_name in (SPARK, FLINK) for c in cells_of(by_name.get(f"{engine_name} {hop} s"), ours)]
        table.add_row(f"{hop} s", f"{WINDOW_SECONDS // hop:,}", *cells)
    return table


def cells_of(result: Result | None, ours: float) -> tuple[str, str]:
    if result is None:
        return "", ""
    stopped = report.unfinished(result)
    if stopped:
        return stopped, ""
    return f"{result.events_per_second:,.0f}", f"{ours / result.events_per_second:,.0f} x"


def arguments() -> argparse.ArgumentParser:
    options = command.parser("hops", __doc__.splitlines()[0], rows=2_000_000)
    options.add_argument("--copies", type=int, default=COPIES, help="copies of events that a rival makes in a run")
    options.add_argument("--limit", type=float, default=120.0, help="seconds after which a rival is stopped")
    options.add_argument("--no-flink", action="store_true", help="leave Flink out")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
