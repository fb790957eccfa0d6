"""Sequence patterns: the experiments of Liu et al. (ICDE 2009, figures 4 to 16), on Spark, and beside Flink's MATCH_RECOGNIZE.

Parts: `figures` event by event without Spark, `departures` why some are not as in the paper, `windows` what an event costs
against WITHIN, `spark` the three strategies on Spark, `flink` both engines on the same payments.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from . import (
    command,
    patterns_departures,
    patterns_figures,
    patterns_flink,
    patterns_page,
    patterns_plots,
    patterns_spark,
    patterns_windows,
)
from .patterns_seeds import SEEDS
from .report import Result, Target
from .rivals import flink_env

PARTS = ("figures", "departures", "windows", "spark", "flink")
NUMBERS = tuple(range(4, 17))


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    results: list[Result] = []
    targets: list[Target] = []
    tables: list[Table] = []
    if {"figures", "departures"} & set(options.parts):
        patterns_figures.effort(options)[2].begin(options.resume)
    if "figures" in options.parts:
        drawn = patterns_figures.run(log, options)
        tables += [patterns_page.shown(r.details) for r in drawn]
        folder = command.file_for(options, "png").parent
        for r in drawn:
            patterns_plots.save_figure(r.details, folder / patterns_plots.picture_name(r.details))
        results += drawn
    if "departures" in options.parts:
        results += patterns_departures.run(log, options)
    if "windows" in options.parts:
        by_window, promised, table = patterns_windows.run(log, options)
        results, targets, tables = [*results, *by_window], [*targets, *promised], [*tables, table]
    if "spark" in options.parts:
        on_spark, table = patterns_spark.run(log, options)
        patterns_plots.save_figure(on_spark[-1].details, command.file_for(options, "png").parent / "patterns-spark.png")
        results, tables = [*results, *on_spark], [*tables, table]
    if "flink" in options.parts:
        beside, promised, more = patterns_flink.run(log, options)
        results, targets, tables = [*results, *beside], [*targets, *promised], [*tables, *more]
    with_flink = "flink" in options.parts and not options.no_flink
    command.finish(log, options, results, targets, *tables, flink=flink_env.FLINK_VERSION if with_flink else None)
    if options.page is not None:
        patterns_page.write(command.file_for(options, "json"), options.page)
        log.say(f"written: {options.page}")


def numbers(text: str) -> tuple[int, ...]:
    """`4-9,16`"""
    out: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    if wrong := [n for n in out if n not in NUMBERS]:
        raise argparse.ArgumentTypeError(f"there is no figure {wrong[0]}: they are 4 to 16")
    return tuple(out)


def shares(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def arguments() -> argparse.ArgumentParser:
    options = command.parser("patterns", __doc__.splitlines()[0])
    command.add_parts(options, PARTS)
    options.add_argument("--figures", type=numbers, default=NUMBERS, help="for example 4-9,16 (default: all)")
    options.add_argument("--events", type=int, default=4_000, help="rows of each run of a figure, with each seed")
    options.add_argument("--seeds", type=int, default=SEEDS, help="of each run of a figure; its points show their spread")
    options.add_argument("--workers", type=int, default=1, help="processes that run figures; at most as many as idle cores")
    options.add_argument("--resume", action="store_true", help="keep what figures and departures measured before")
    options.add_argument("--window-rows", type=int, default=200_000, help="payments of each run with one window")
    options.add_argument("--spark-rows", type=int, default=200_000, help="rows of the runs on Spark")
    options.add_argument("--flink-rows", type=int, default=5_000_000, help="payments beside Flink")
    options.add_argument(
        "--rounds", type=int, default=3, help="timed runs of each question to Headrace beside Flink; the median counts"
    )
    options.add_argument(
        "--matches",
        type=shares,
        default=patterns_flink.MATCHES_PER_EVENT,
        help="a payment, beside Flink (default: 0.01,0.1,0.3,1)",
    )
    options.add_argument("--no-flink", action="store_true", help="leave Flink out")
    options.add_argument("--page", type=Path, help="write the page of the documentation from what was measured")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
