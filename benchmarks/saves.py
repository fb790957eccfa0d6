"""What does a save of serving cost: the loop, the thread that writes, the disk; and how soon is a partition loaded?

One event a call, as `one_event`, over 100,000 keys, saved every 2,500 events and not at all. In one process, without Spark.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time

import numpy as np
from rich.table import Table

from headrace.log.log import At
from headrace.serve.store.partition import Partition
from headrace.serve.store.store import Store
from headrace.sql import parse_script
from headrace.stages.lower import lower

from . import command
from .one_event import HISTORY_BATCH, SCRIPT, Feed
from .payments import Payments, table
from .report import Result, Target

AT = At("payments.card", 0)
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 100.0)


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    sys.setswitchinterval(options.switch / 1000)
    delay = options.delay
    results = [run(log, options, delay, saves=saves) for saves in (False, True)]
    saved = results[1].details
    targets = [
        Target("the loop's part of a save, median", saved["hot_ms"][0], 1, at_least=False, unit="ms"),
        Target("loading a partition", saved["load_seconds"], 0.5, at_least=False, unit="s"),
        Target("99.9% of calls, with saves", saved["call_us"][2], 5_000, at_least=False, unit="µs"),
    ]
    command.finish(log, options, results, targets, saves_table(results))


def run(log: command.Log, options: argparse.Namespace, delay: int, *, saves: bool) -> Result:
    rows, events = command.rows_of(options), 1_000 if options.quick else options.calls
    history = rows - rows % min(rows, HISTORY_BATCH)
    spec = Payments(
        rows=history + events, cards=options.cards, events_per_second=history / 5_000.0,
        late_share=0.1 if delay else 0.0, late_max_seconds=float(delay),
    )  # fmt: skip
    folder = tempfile.mkdtemp(prefix="headrace-saves-", dir=options.folder)
    store = Store(folder)
    try:
        partition = store.open(AT, 1, [lower(parse_script(SCRIPT.format(delay))).stages[0]])
        feed = Feed(partition.processors[0], table(spec))
        for start in range(0, history, HISTORY_BATCH):
            partition.processors[0].process(*feed.cut(start, min(start + HISTORY_BATCH, history)))
        first = partition.save(history)
        assert first is not None
        first.result()
        details = timed(partition, feed, history, events, min(options.every, events // 4) if saves else events + 1)
        if saves:
            details |= loaded(store, partition)
    finally:
        store.close()
        shutil.rmtree(folder)
    name = f"DELAY {delay} s, " + (f"saved every {options.every:,} events" if saves else "never saved")
    log.say(f"{name}: {details}")
    return Result(name, events, details.pop("seconds"), details)


def timed(partition: Partition, feed: Feed, history: int, events: int, every: int) -> dict[str, object]:
    """Calls one by one, as fast as they go; saves between them."""
    processor, calls, hot, done = partition.processors[0], np.empty(events), [], []
    cut = [feed.cut(history + i, history + i + 1) for i in range(events)]
    gc.collect()
    gc.freeze()
    begin = time.perf_counter()
    for i, (header, arrivals) in enumerate(cut):
        start = time.perf_counter_ns()
        processor.process(header, arrivals)
        calls[i] = time.perf_counter_ns() - start
        if i % every == every - 1:
            start = time.perf_counter_ns()
            saving = partition.save(history + i + 1)
            if saving is not None:
                hot.append((time.perf_counter_ns() - start) / 1e6)
                done.append(saving)
    seconds = time.perf_counter() - begin
    gc.unfreeze()
    saved = [saving.result() for saving in done]
    return {
        "seconds": seconds,
        "call_us": [float(v) / 1000 for v in np.percentile(calls, PERCENTILES)],
        "hot_ms": spread(hot),
        "writer_ms": spread([1000 * s.seconds for s in saved]),
        "bytes": spread([float(s.bytes) for s in saved]),
        "saves": len(saved),
        "cache": [processor.cache.hits, processor.cache.misses],
    }


def spread(values: list[float]) -> list[float]:
    """The median and the largest."""
    return [float(np.median(values)), max(values)] if values else [0.0, 0.0]


def loaded(store: Store, partition: Partition) -> dict[str, object]:
    """Seconds to open it, after the last save: by the next unit."""
    begin = time.perf_counter()
    again = store.open(AT, partition.epoch + 1, [partition.processors[0].stage])
    seconds = time.perf_counter() - begin
    return {"load_seconds": seconds, "increments": len(again._saver.manifest.increments)}


def saves_table(results: list[Result]) -> Table:
    shown = Table(title="saves of serving")
    shown.add_column("")
    for heading in ("calls, 50% µs", "99%", "99.9%", "worst", "loop ms", "worst", "writer ms", "worst", "KB a save"):
        shown.add_column(heading, justify="right")
    for r in results:
        d = r.details
        values = [d["call_us"][0], d["call_us"][1], d["call_us"][2], d["call_us"][4]]
        parts = (
            [f"{v:,.0f}" for v in values]
            + [f"{v:.2f}" for v in (*d["hot_ms"], *d["writer_ms"])]
            + [f"{d['bytes'][0] / 1e3:,.0f}"]
        )
        shown.add_row(r.name, *parts)
    return shown


def arguments() -> argparse.ArgumentParser:
    options = command.parser("saves", __doc__.splitlines()[0], rows=1_000_000)
    options.add_argument("--cards", type=int, default=100_000)
    options.add_argument("--calls", type=int, default=30_000, help="events, one a call")
    options.add_argument("--every", type=int, default=2_500, help="events between two saves")
    options.add_argument("--delay", type=int, default=0, help="seconds")
    options.add_argument(
        "--switch", type=float, default=5.0, help="ms after which a thread of Python that runs lets another one run"
    )
    options.add_argument("--folder", help="where the store lies while it is measured")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
