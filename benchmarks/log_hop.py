"""How long is one hop over the log, between two processes, and what does it cost? And appending and reading alone.

Events are due at a steady rate, and latency is from when an event was due: if one is late, those behind it are late as well.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from headrace.log.broker import Broker, NotFetchedError
from headrace.log.log import At

from . import command, report
from .log_side import KINDS, TOPIC, open_log
from .report import Result, Target

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
# An append to Kafka takes a journey there and back, and who appends one after the other cannot append more often.
RATES = {"files": (500.0, 2_000.0, 5_000.0), "kafka": (500.0, 1_000.0)}
ALONE = {"files": (50_000, 200_000), "kafka": (5_000, 20_000)}  # appends, records read
MEDIAN_HOP_MS = {"files": 0.5, "kafka": 1.0}
MEDIAN_APPEND_US = {"files": 100.0, "kafka": 1_000.0}
Fresh = Callable[[], AbstractContextManager[str]]  # makes the address of an empty log
SIDE = "import sys; from benchmarks.log_side import run; run(sys.argv[1:])"


@dataclass(frozen=True)
class Hop:
    """What is asked of the two sides."""

    log: str
    rate: float
    seconds: float
    sync: float = 0.0  # seconds between

    @property
    def name(self) -> str:
        return f"{self.log}, {self.rate:,.0f} events/s" + (f", synced every {self.sync:g} s" if self.sync else "")


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    hops, alone, targets = [], [], []
    for kind in options.log:
        with ExitStack() as stack:
            try:
                fresh = stack.enter_context(OPENED[kind](options))
            except NotFetchedError as why:
                log.say(f"[yellow]without Kafka:[/] {why}")
                continue
            hops += [hop(log, options, asked, fresh) for asked in asked_of(options, kind)]
            alone += [appends(options, kind, fresh), *reads(options, kind, fresh)]
        targets += targets_of(kind, hops, alone)
    plot = command.file_for(options, "png")
    title = f"one hop over the log, {options.partitions} partitions, records of {options.size} bytes"
    report.save_tails({r.name: r.details["from_due_ms"] for r in hops}, "ms", title, plot)
    command.finish(log, options, [*hops, *alone], targets, hop_table(hops, title), alone_table(alone), plot=plot)


def asked_of(options: argparse.Namespace, kind: str) -> list[Hop]:
    if options.quick:
        return [Hop(kind, 500.0, 0.4, 0.1)]
    rates = options.rates or RATES[kind]
    return [*(Hop(kind, rate, options.seconds) for rate in rates), Hop(kind, rates[0], options.seconds, 1.0)]


def targets_of(kind: str, hops: list[Result], alone: list[Result]) -> list[Target]:
    found = [
        Target(f"median hop, {r.name}", r.details["p50_ms"], MEDIAN_HOP_MS[kind], at_least=False, unit="ms")
        for r in hops if r.name.startswith(kind)
    ]  # fmt: skip
    (one,) = (r for r in alone if r.name == f"{kind}, append, one a call")
    return [*found, Target(f"median append, {kind}", one.details["median_us"], MEDIAN_APPEND_US[kind], at_least=False, unit="µs")]


@contextmanager
def in_files(options: argparse.Namespace) -> Iterator[Fresh]:
    yield lambda: tempfile.TemporaryDirectory(dir=options.folder)


@contextmanager
def on_kafka(options: argparse.Namespace) -> Iterator[Fresh]:
    """On brokers that run already, or one of our own."""

    @contextmanager
    def fresh() -> Iterator[str]:
        yield f"{brokers}/{uuid.uuid4().hex[:8]}-"

    if brokers := options.brokers:
        yield fresh
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        broker = Broker(Path(folder))
        broker.start()
        brokers = broker.address
        try:
            yield fresh
        finally:
            broker.kill()


OPENED = {"files": in_files, "kafka": on_kafka}


def hop(log: command.Log, options: argparse.Namespace, asked: Hop, fresh: Fresh) -> Result:
    events = int(asked.rate * asked.seconds)
    idle = 0.2 if options.quick else 5.0
    with fresh() as address:
        made = open_log(asked.log, address)
        made.create(TOPIC, options.partitions)
        made.close()
        said = {
            "log": asked.log, "address": address, "size": options.size, "partitions": options.partitions, "rate": asked.rate,
            "events": events, "warm_up": events // 10, "sync": asked.sync, "idle": idle,
        }  # fmt: skip
        sender, receiver = side("append", said), side("poll", said)
        start(receiver, 0)
        assert receiver.stdout is not None
        if receiver.stdout.readline() != "idle\n":
            raise RuntimeError(f"who polls ended with {receiver.wait()}")
        start(sender, time.monotonic_ns() + 100_000_000)
        sent, seen = ended(sender), ended(receiver)
    result = as_result(asked, sent, seen, idle)
    log.say(f"{result.name}: median {result.details['p50_ms']:.2f} ms, 99.9% {result.details['p99.9_ms']:.2f} ms")
    return result


def side(which: str, asked: dict[str, Any]) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(command.HERE.parent), *filter(None, sys.path)])
    line = [sys.executable, "-c", SIDE, which, json.dumps(asked)]
    process = subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"the side that is to {which} ended with {process.wait()}")
    return process


def start(process: subprocess.Popen[str], moment: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{moment}\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    said = process.stdout.read()
    if process.wait():
        raise RuntimeError(f"a side of the hop ended with {process.returncode}")
    return dict(json.loads(said))


def as_result(asked: Hop, sent: dict[str, Any], seen: dict[str, Any], idle: float) -> Result:
    latency = np.percentile(np.array(seen["from_due_ns"]) / 1e6, PERCENTILES)
    counted = len(seen["from_due_ns"])
    details = {
        **{f"p{p:g}_ms": float(v) for p, v in zip(PERCENTILES, latency, strict=True)},
        "worst_ms": max(seen["from_due_ns"]) / 1e6,
        "from_due_ms": list(zip(PERCENTILES, map(float, latency), strict=True)),
        "p50_from_sent_ms": float(np.median(seen["from_sent_ns"])) / 1e6,
        "p99.9_from_sent_ms": float(np.percentile(seen["from_sent_ns"], 99.9)) / 1e6,
        "append_us": float(np.median(sent["append_ns"])) / 1e3,
        "p99.9_append_us": float(np.percentile(sent["append_ns"], 99.9)) / 1e3,
        "appender_cpu_us": sent["cpu"] / counted * 1e6,
        "poller_cpu_us": seen["cpu"] / counted * 1e6,
        "idle_cpu_ms_per_second": seen["idle"] / idle * 1e3,
        "polls": seen["polls"],
    }
    return Result(asked.name, counted, counted / asked.rate, details)


def appends(options: argparse.Namespace, kind: str, fresh: Fresh) -> Result:
    """One record a call, one call behind the other, nobody waiting."""
    count, value = 500 if options.quick else ALONE[kind][0], bytes(options.size)
    with fresh() as address:
        log = open_log(kind, address)
        log.create(TOPIC, 1)
        at, taken = At(TOPIC, 0), np.empty(count)
        log.append(at, [value])
        for number in range(count):
            begin = time.perf_counter_ns()
            log.append(at, [value])
            taken[number] = time.perf_counter_ns() - begin
        log.close()
    details = {"median_us": float(np.median(taken)) / 1e3, "p99.9_us": float(np.percentile(taken, 99.9)) / 1e3}
    return Result(f"{kind}, append, one a call", count, float(taken.sum()) / 1e9, details)


def reads(options: argparse.Namespace, kind: str, fresh: Fresh) -> list[Result]:
    """All of it from the beginning; then, each time by somebody new, the record in its middle."""
    count, value = 2_000 if options.quick else ALONE[kind][1], bytes(options.size)
    found = []
    with fresh() as address:
        log, at = open_log(kind, address), At(TOPIC, 0)
        log.create(TOPIC, 1)
        for _ in range(count):
            log.append(at, [value])
        begin, offset = time.perf_counter(), 0
        while offset < count:
            offset += len(log.poll({at: offset}, 5.0))
        found.append(Result(f"{kind}, read in order", count, time.perf_counter() - begin))
        taken = []
        for _ in range(20):
            other = open_log(kind, address)
            begin = time.perf_counter()
            assert other.poll({at: count // 2}, 5.0, most=1)[0].offset == count // 2
            taken.append(time.perf_counter() - begin)
            other.close()
        log.close()
    found.append(Result(f"{kind}, find an offset", len(taken), sum(taken), {"median_us": float(np.median(taken)) * 1e6}))
    return found


def hop_table(results: list[Result], title: str) -> Table:
    table = Table(title=title)
    table.add_column("")
    for heading in (
        "events", "50% ms", "99% ms", "99.9% ms", "worst ms", "append µs", "CPU append µs", "CPU poll µs", "idle CPU ms/s"
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for r in results:
        d = r.details
        times = (f"{d[k]:,.2f}" for k in ("p50_ms", "p99_ms", "p99.9_ms", "worst_ms"))
        costs = (f"{d[k]:,.1f}" for k in ("append_us", "appender_cpu_us", "poller_cpu_us", "idle_cpu_ms_per_second"))
        table.add_row(r.name, f"{r.rows:,}", *times, *costs)
    return table


def alone_table(results: list[Result]) -> Table:
    table = Table(title="alone, in one process")
    table.add_column("")
    for heading in ("times", "times/s", "median µs"):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            r.name, f"{r.rows:,}", f"{r.events_per_second:,.0f}", f"{r.details.get('median_us', 1e6 / r.events_per_second):,.1f}"
        )
    return table


def arguments() -> argparse.ArgumentParser:
    options = command.parser("log_hop", __doc__.splitlines()[0])
    options.add_argument("--log", choices=KINDS, nargs="+", default=list(KINDS), help="which of them (default: all)")
    options.add_argument("--brokers", help="Kafka that runs already (default: one that is started for this)")
    options.add_argument("--rates", type=float, nargs="+", help="events per second (default: as many as it bears)")
    options.add_argument("--seconds", type=float, default=60.0, help="for each rate; the first tenth does not count")
    options.add_argument("--size", type=int, default=200, help="bytes of a record")
    options.add_argument("--partitions", type=int, default=10)
    options.add_argument("--folder", type=Path, help="where the log is to lie (default: the temporary directory)")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
