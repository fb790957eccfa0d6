"""How long does a new user wait for the first result? The README's example, beside a bare Spark session that counts its rows.

Every run is a process of its own with a JVM of its own, as a user would start it; the two take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from . import command
from .report import Result, Target

README = command.HERE.parent / "README.md"
BARE = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.read.csv("payments.csv", header=True).count())
spark.stop()
"""
ROWS = 5
HEADRACE, SPARK, CHECK = "headrace run", "bare Spark", "headrace check"


@dataclass(frozen=True)
class Taken:
    """Seconds of one process: until its first line, and until its end."""

    first_line: float
    end: float


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    runs = 1 if options.quick else options.runs
    with tempfile.TemporaryDirectory() as folder:
        example(Path(folder))
        asked: dict[str, Callable[[], Taken]] = {
            HEADRACE: lambda: timed(folder, ["-m", "headrace.cli", "run", "profile.cql"], ROWS),
            SPARK: lambda: timed(folder, ["-c", BARE], 1),
            CHECK: lambda: timed(folder, ["-m", "headrace.cli", "check", "profile.cql"], None),
        }
        taken: dict[str, list[Taken]] = {name: [] for name in asked}
        for number in range(runs):
            for name, ask in asked.items():
                taken[name].append(ask())
                log.say(f"{name}, {number + 1} of {runs}: {taken[name][-1].end:.1f} s")
    results = [as_result(name, times) for name, times in taken.items()]
    targets = [
        Target("the README's example", median(taken[HEADRACE]), 10, at_least=False, unit="s"),
        Target("headrace check", median(taken[CHECK]), 1, at_least=False, unit="s"),
    ]
    command.finish(log, options, results, targets, times_table(taken))


def example(folder: Path) -> None:
    """The files of the README's example, as they stand there."""
    for name, text in re.findall(r"```\w+ file=(\S+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")


def timed(folder: str, arguments: list[str], lines: int | None) -> Taken:
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    first_line = time.perf_counter() - begin
    said = [first, *process.stdout]
    code = process.wait()
    end = time.perf_counter() - begin
    if code != 0 or not first or (lines is not None and len(said) != lines):
        raise RuntimeError(f"{arguments[:3]} ended with {code} and {len(said)} lines")
    return Taken(first_line, end)


def median(times: list[Taken]) -> float:
    return statistics.median(t.end for t in times)


def as_result(name: str, times: list[Taken]) -> Result:
    details = {
        "first_line_seconds": [t.first_line for t in times],
        "seconds": [t.end for t in times],
    }
    return Result(name, ROWS, median(times), details)


def times_table(taken: dict[str, list[Taken]]) -> Table:
    table = Table(title=f"from nothing to the end, {len(taken[HEADRACE])} runs each, in turn")
    table.add_column("")
    for heading in ("first line s", "end s", "fastest s", "slowest s"):
        table.add_column(heading, justify="right")
    for name, times in taken.items():
        ends = [t.end for t in times]
        values = (statistics.median(t.first_line for t in times), median(times), min(ends), max(ends))
        table.add_row(name, *(f"{v:.1f}" for v in values))
    return table


def arguments() -> argparse.ArgumentParser:
    options = command.parser("first_result", __doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=5, help="of each")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
