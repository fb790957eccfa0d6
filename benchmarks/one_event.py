"""How long does the task processor take for one event? In one process, without Spark: one event a call, in batches and singly.

Three metrics over two windows and 100,000 keys. A batch of one is timed without making its Arrow row; a single event from Python
values to Python values. With saves, the call that is due saves what has changed, on the same thread, and its time has that in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table

from headrace.changes.keys import Keys
from headrace.changes.values import rows_of
from headrace.plan.arrow import arrow_type
from headrace.plan.time import START_OF_TIME
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Header, Segment
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.save import save
from headrace.runtime.single import Single
from headrace.sql import parse_script
from headrace.stages.lower import lower
from headrace.testing.local import MemoryStore

from . import command, report
from .payments import Payments, table
from .report import Result, Target

SCRIPT = """CREATE STREAM payments (id BIGINT, card STRING, amount DOUBLE, at TIMESTAMP)
    SOURCE FILE('payments', 'parquet') TIMESTAMP BY at DELAY {} SECONDS;
    SELECT id, card, total, n, AVG(amount) AS mean
    FROM (SELECT *, SUM(amount) AS total, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card) [RANGE 60 MINUTES]
    GROUP BY card EMIT CHANGES;"""
HISTORY_BATCH = 50_000
BOUNDS = {0: 100, 10: 150}  # microseconds, by the delay in seconds
Call = Callable[[], Any]


@dataclass
class Feed:
    """Payments as a bucket is given them. `highest` is what the header says of the rows so far."""

    processor: TaskProcessor
    rows: pa.Table

    def __post_init__(self) -> None:
        stage = self.processor.stage
        self.at = self.rows["at"].cast(pa.int64()).to_numpy()
        self.highest = np.maximum.accumulate(self.at)
        card = pa.array([f"card{c}" for c in self.rows["card"].to_pylist()])
        columns = {"id": self.rows["id"], "card": card, "amount": self.rows["amount"], "at": self.rows["at"]}
        names = [f"x{i}" for i in range(len(stage.inputs))]
        values = [columns[c.expr.sql].cast(arrow_type(c.type)) for c in stage.inputs]
        self.inputs = pa.table(values, names=names).combine_chunks().to_batches()[0]

    def cut(self, start: int, stop: int) -> tuple[Header, Arrivals]:
        """A copy, as it would be if it had just come in."""
        n = stop - start
        header = Header(0, (Segment(0, (0, start), int(self.highest[stop - 1]), n),))
        inputs = self.inputs.take(pa.array(np.arange(start, stop)))
        low = np.arange(start, stop, dtype=np.int64)
        none = np.zeros(n, np.bool_)
        return header, Arrivals(Keys(self.at[start:stop].copy(), np.zeros(n, np.int64), low), np.zeros(n, np.int32), none, inputs)

    def batches(self, start: int, stop: int) -> list[Call]:
        """Calls with a batch of one event each."""
        cuts = [self.cut(i, i + 1) for i in range(start, stop)]
        return [lambda cut=cut: self.processor.process(*cut).changes for cut in cuts]  # type: ignore[misc]

    def singles(self, start: int, stop: int) -> list[Call]:
        """Calls with the values of one event each."""
        call, values = Single(self.processor).call, rows_of(self.inputs.slice(start, stop - start))
        told = [
            (int(self.at[i]), 0, i, 0, (0, i), int(self.highest[i]), START_OF_TIME, False, 0, values[i - start])
            for i in range(start, stop)
        ]
        return [lambda one=one: call(*one) for one in told]  # type: ignore[misc]


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    results = [
        calls(log, options, delay, singly=singly, saves=saves)
        for delay in BOUNDS
        for singly in (False, True)
        for saves in (False, True)
    ]
    title = f"one event a call: 3 metrics, 2 windows, {options.cards:,} keys"
    targets = [
        Target(f"median call, {r.name}", r.details["median_us"], BOUNDS[r.details["delay_seconds"]], at_least=False, unit="µs")
        for r in results
        if r.details["singly"]
    ]
    plot = command.file_for(options, "png")
    report.save_tails({r.name: r.details["percentiles_us"] for r in results}, "µs", title, plot)
    command.finish(log, options, results, targets, calls_table(results, title), plot=plot)


def calls(log: command.Log, options: argparse.Namespace, delay: int, *, singly: bool, saves: bool) -> Result:
    """Enough history that events leave both windows, some calls that do not count, then those that do."""
    rows, (warm_up, measured) = command.rows_of(options), (50, 200) if options.quick else (options.warm_up, options.calls)
    history = rows - rows % min(rows, HISTORY_BATCH)
    spec = Payments(
        rows=history + warm_up + measured, cards=options.cards, events_per_second=history / 5_000.0,
        late_share=0.1 if delay else 0.0, late_max_seconds=float(delay),
    )  # fmt: skip
    store = MemoryStore()
    processor = TaskProcessor(lower(parse_script(SCRIPT.format(delay))).stages[0], store)
    feed = Feed(processor, table(spec))
    for start in range(0, history, HISTORY_BATCH):
        processor.process(*feed.cut(start, min(start + HISTORY_BATCH, history)))
    save(processor, store)
    events = (feed.singles if singly else feed.batches)(history, spec.rows)
    taken = timed(events, (lambda: save(processor, store)) if saves else None, options.save_every)[warm_up:]
    result = as_result(taken, delay, len(processor.open.rows), singly=singly, saves=saves)
    log.say(f"{result.name}: median {result.details['median_us']:.0f} µs")
    return result


def timed(events: list[Call], save_now: Call | None, every: int) -> np.ndarray:
    """Microseconds of every call."""
    out = np.empty(len(events))
    for i, event in enumerate(events):
        begin = time.perf_counter_ns()
        changes = event()
        if save_now is not None and i % every == every - 1:
            save_now()
        out[i] = time.perf_counter_ns() - begin
        if not changes:
            raise RuntimeError("an event had no result")
    return out / 1000.0


def as_result(microseconds: np.ndarray, delay: int, open_rows: int, *, singly: bool, saves: bool) -> Result:
    percentiles = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99]
    values = [float(v) for v in np.percentile(microseconds, percentiles)]
    details = {
        "delay_seconds": delay,
        "singly": singly,
        "saves": saves,
        "open_rows": open_rows,
        "median_us": values[0],
        "p99_us": values[4],
        "p999_us": values[6],
        "worst_us": float(microseconds.max()),
        "percentiles_us": list(zip(percentiles, values, strict=True)),
    }
    how = ("singly" if singly else "a batch of one") + (", saves" if saves else "")
    name = f"DELAY {delay} s" + (", 10% late" if delay else "") + f": {how}"
    return Result(name, len(microseconds), float(microseconds.sum()) / 1e6, details)


def calls_table(results: list[Result], title: str) -> Table:
    table_ = Table(title=title)
    table_.add_column("")
    for heading in ("calls", "median µs", "99% µs", "99.9% µs", "worst µs", "calls/s"):
        table_.add_column(heading, justify="right")
    for r in results:
        values = (f"{r.details[k]:,.0f}" for k in ("median_us", "p99_us", "p999_us", "worst_us"))
        table_.add_row(r.name, f"{r.rows:,}", *values, f"{r.events_per_second:,.0f}")
    return table_


def arguments() -> argparse.ArgumentParser:
    options = command.parser("one_event", __doc__.splitlines()[0], rows=1_000_000)
    options.add_argument("--cards", type=int, default=100_000)
    options.add_argument("--calls", type=int, default=20_000, help="calls that are timed")
    options.add_argument("--warm-up", type=int, default=2_000, help="calls before them")
    options.add_argument("--save-every", type=int, default=2_500, help="calls between two saves: 5 s at 500 events a second")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
