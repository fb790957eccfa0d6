"""Engines in one session, run in turn, so that none has a JVM that only others have warmed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import command
from .payments import Payments, ensure
from .report import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[["SparkSession", Path], Result]


def in_turn(
    log: command.Log, spark: SparkSession, engines: list[tuple[Payments, Run]], rounds: int, quick: bool = False
) -> list[Result]:  # fmt: skip
    """Every engine once untimed, then all in turn. The median of each; quickly, each once."""
    rounds = 1 if quick else rounds
    for spec, run in [] if quick else engines:
        run(spark, ensure(spec, command.DATA))
    seen: list[list[Result]] = [[] for _ in engines]
    for _ in range(rounds):
        for runs, (spec, run) in zip(seen, engines, strict=True):
            runs.append(run(spark, ensure(spec, command.DATA)))
            said(log, runs[-1])
    return [median(runs) for runs in seen]


def median(runs: list[Result]) -> Result:
    """The run in the middle, with the figures of all of them beside it."""
    middle = sorted(runs, key=lambda r: r.seconds)[len(runs) // 2]
    every = {"events_per_second_of_all": [r.events_per_second for r in runs], "steady_of_all": [r.steady for r in runs]}
    return replace(middle, details={**middle.details, **every})


def said(log: command.Log, result: Result) -> Result:
    log.say(f"{result.name}: {result.events_per_second:,.0f} events/s, steady {result.steady:,.0f}")
    return result
