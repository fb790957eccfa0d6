"""The three strategies once more, on Spark: the same stream in files, a slice of arrivals in each, one file of each type a batch.

Throughput is that of a run whose results are dropped. How long results wait is counted in slices: from the batch that brought the
last of their events to the batch that gave them out.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.table import Table

from headrace.generate import events
from headrace.runs.events import RowsEvent
from headrace.spark.run import start_run
from headrace.sql import parse_script

from . import command, engine
from .patterns_count import count_by_hand
from .patterns_runs import NEGATED, UNIT, Run, Strategy
from .report import Result
from .rivals.spark_native import run_to_end

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

# How a stream is cut: rows for each of `--spark-rows`, and micro-batches. Where these are short, results must be taken back.
CUTS = ((1.0, 20), (1 / 80, 40))
QUICK_ROWS, QUICK_SLICES = 300, 2
STRATEGIES = (Strategy.AGGRESSIVE, Strategy.CONSERVATIVE, Strategy.KSLACK)
EMIT = {
    Strategy.AGGRESSIVE: "CHANGES",
    Strategy.CONSERVATIVE: "FINAL",
    Strategy.KSLACK: "FINAL IN ORDER USING KSLACK",
}


def run(log: command.Log, options: argparse.Namespace) -> tuple[list[Result], Table]:
    """Length 7, window 20 units, 30% disorder, one promise for five events: nothing to partition by."""
    spark = engine.session()
    out = []
    cuts = [(QUICK_ROWS, QUICK_SLICES)] if options.quick else [(int(options.spark_rows * share), n) for share, n in CUTS]
    for rows, slices in cuts:
        for strategy in STRATEGIES:
            asked = Run(strategy, 3 if options.quick else 7, 0.3, 0.3, pog_share=0.2, rows=rows)
            with tempfile.TemporaryDirectory(prefix="headrace-patterns-") as folder:
                number = write_slices(asked, Path(folder), slices)
                out.append(one(log, spark, asked, Path(folder), number, options.quick))
    spark.stop()
    return [*out, as_figure(out)], shown(out)


def as_figure(results: list[Result]) -> Result:
    """The comparison as a figure of the page."""
    lines: dict[str, list[dict[str, float | None]]] = {}
    for r in results:
        point = {name: r.details[name] for name in ("wait_units", "compensations")}
        lines.setdefault(r.name, []).append({"x": r.details["slice_units"], "rows_per_second": r.events_per_second, **point})
    details = {
        "figure": "spark", "title": "the three strategies on Spark", "x": "time units in a micro-batch", "scale": "log",
        "metric": ["rows_per_second", "wait_units", "compensations"], "lines": lines,
    }  # fmt: skip
    return Result("figure spark", sum(r.rows for r in results), sum(r.seconds for r in results), details)


def write_slices(run: Run, folder: Path, slices: int) -> np.ndarray:
    """A folder for each type; the slice of every row of the stream."""
    rows = events("sequence", run.options, 0, run.rows)
    number = np.arange(run.rows) * slices // run.rows
    read = np.array(pc.is_valid(rows.column("at"))) | (run.strategy is Strategy.CONSERVATIVE)  # the others know no promises
    for name in run.types:
        (folder / name).mkdir()
        for i in range(slices):
            part = rows.filter(pa.array(read & (number == i) & np.array(pc.equal(rows.column("type"), name))))
            path = folder / name / f"part-{i:03d}.parquet"
            pq.write_table(pa.Table.from_batches([part]), path)
            os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))  # sources take files in order of age
    return number


def script(run: Run, folder: Path) -> str:
    """The query of a run as one would write it."""
    known = "PUNCTUATED BY pog" if run.strategy is Strategy.CONSERVATIVE else f"DELAY {run.max_delay:g} SECONDS"
    columns = "type STRING, at TIMESTAMP, arrival TIMESTAMP, id BIGINT, value INT, pog TIMESTAMP"
    streams = [
        f"CREATE STREAM {t} ({columns}) SOURCE FILE('{folder / t}', 'parquet') TIMESTAMP BY at {known};" for t in run.types
    ]
    places = ", ".join(f"!({t} {t.lower()}1)" if t == NEGATED else f"{t} {t.lower()}1" for t in run.types)
    ids = ", ".join(f"{t.lower()}1.id AS {t.lower()}" for t in run.types if t != NEGATED)
    query = f"EVENT SEQ({places}) WITHIN {run.window * UNIT / 1e6:g} SECONDS RETURN {ids} EMIT {EMIT[run.strategy]};"
    return "\n".join([*streams, query])


def one(log: command.Log, spark: SparkSession, run: Run, folder: Path, slices: np.ndarray, quick: bool) -> Result:
    """Once with the results kept, to hold them against a count by hand, and then timed; quickly, both at once."""
    sql, count = script(run, folder), int(slices[-1]) + 1
    begin = time.perf_counter()
    sign, emitted, ids = collect(spark, sql, count)
    kept = Result(run.strategy.value, run.rows, time.perf_counter() - begin)
    latest = slices[ids.max(axis=1)] if len(ids) else emitted
    wanted, found = count_by_hand(run), int(sign.sum())
    if found != wanted:
        raise RuntimeError(f"{found:,} results on Spark, counted by hand {wanted:,}: {run}")
    taken_back = {tuple(row) for row in ids[sign < 0].tolist()}
    stands = np.array([s > 0 and tuple(row) not in taken_back for s, row in zip(sign, ids.tolist(), strict=True)], np.bool_)
    stands &= emitted < count
    units = run.rows / (run.rate * (1.0 + run.pog_share)) / count
    wait = float((emitted[stands] - latest[stands]).mean() * units) if stands.any() else None
    result = kept if quick else run_to_end(run.strategy.value, engine.results(spark, sql), "append")
    details = {"wait_units": wait, "results": found, "compensations": int((sign < 0).sum()), "slice_units": units}
    log.say(f"{result.name} on Spark, {units:,.0f} units a batch: {result.events_per_second:,.0f} rows/s, {found:,} results")
    return Result(result.name, result.rows, result.seconds, {**result.details, **details})


def collect(spark: SparkSession, sql: str, slices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every change: its sign, the batch that gave it (the number of slices: the end of input), the ids."""
    found = all_rows(spark, sql)
    sign = [signs(event) for event in found]
    batch = [np.full(e.rows.num_rows, min(e.batch_id or 0, slices)) for e in found]
    ids = [np.column_stack([e.rows.column(c).to_numpy() for c in e.columns if c != "_op"]) for e in found]
    return np.concatenate(sign), np.concatenate(batch), np.concatenate(ids)


def all_rows(spark: SparkSession, sql: str) -> list[RowsEvent]:
    """What a script gives to its end, a file of each stream a batch."""
    running = start_run(spark, parse_script(sql), {}, options={"maxFilesPerTrigger": "1"})
    found: list[RowsEvent] = []
    done = False
    while not done:
        done = running.done  # asked first: what is polled after this is all there is
        found += (event for event in running.poll(0.2) if isinstance(event, RowsEvent))
    running.wait(0)
    return found


def signs(event: RowsEvent) -> np.ndarray:
    if "_op" not in event.columns:
        return np.ones(event.rows.num_rows, np.int64)
    return np.where(np.array(event.rows.column("_op").to_pylist()) == "-", -1, 1)


def shown(results: list[Result]) -> Table:
    out = Table(title="SEQ(A, B, !C, D, E, F, G, H) within 20 units, 30% late, on Spark")
    out.add_column("")
    for heading in ("units a batch", "rows/s", "steady", "results", "taken back", "waits, units"):
        out.add_column(heading, justify="right")
    for r in results:
        wait = r.details["wait_units"]
        cells = (r.details["slice_units"], r.events_per_second, r.steady, r.details["results"], r.details["compensations"])
        out.add_row(r.name, *(f"{c:,.0f}" for c in cells), "" if wait is None else f"{wait:.2f}")
    return out
