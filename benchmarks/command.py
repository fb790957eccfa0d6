"""What every benchmark has in common: its arguments, the files it leaves, the lines it prints."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from .report import Result, Target, machine, save_json, target_table

HERE = Path(__file__).resolve().parent
DATA = HERE / ".data"
RESULTS = HERE / "results"
QUICK_ROWS = 4_000
NAMED_AFTER_BENCHMARK = Path()  # `--json` without a file


def parser(name: str, description: str, rows: int | None = None) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog=f"headrace bench {name}", description=description)
    options.set_defaults(benchmark=name)
    if rows is not None:
        options.add_argument("--rows", type=int, help=f"payments (default {rows:,}; with --quick {QUICK_ROWS:,})")
        options.set_defaults(standard_rows=rows)
    for flag, kind in (("--json", "json"), ("--plot", "png")):
        options.add_argument(
            flag, type=Path, nargs="?", default=NAMED_AFTER_BENCHMARK, const=NAMED_AFTER_BENCHMARK, metavar="FILE",
            help=f"where to write it; a directory is filled by name (default benchmarks/results/{name}.{kind})",
        )  # fmt: skip
    options.add_argument("--quick", action="store_true", help="few rows, to see that it runs; its figures mean nothing")
    return options


def add_parts(options: argparse.ArgumentParser, every: tuple[str, ...]) -> None:
    """Which parts of a benchmark are run."""

    def parts(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        if wrong := [part for part in found if part not in every]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no part: {', '.join(every)}")
        return found

    options.add_argument("--parts", type=parts, default=every, help=f"{','.join(every)} (default: all)")


def rows_of(options: argparse.Namespace) -> int:
    if options.rows is not None:
        return int(options.rows)
    return QUICK_ROWS if options.quick else int(options.standard_rows)


def files_of(options: argparse.Namespace) -> int:
    """Files, so micro-batches, of a stream."""
    return 2 if options.quick else 10


def file_for(options: argparse.Namespace, ending: str) -> Path:
    path: Path = options.json if ending == "json" else options.plot
    if path == NAMED_AFTER_BENCHMARK:
        path = RESULTS
    return path / f"{options.benchmark}.{ending}" if path.is_dir() or path == RESULTS else path


class Log:
    """Progress on standard error, results on standard output."""

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started below ends too
        width = None if sys.stdout.isatty() else 140  # a file has room
        self.out, self.err = Console(width=width, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)
        self.begin, self.load = time.monotonic(), os.getloadavg()[0]

    def say(self, text: str) -> None:
        self.err.print(f"[dim]{time.monotonic() - self.begin:6.0f} s[/]  {text}")

    def show(self, *parts: RenderableType) -> None:
        for part in parts:
            self.out.print(part)


def finish(
    log: Log, options: argparse.Namespace, results: Sequence[Result], targets: Sequence[Target], *tables: RenderableType,
    flink: str | None = None, plot: Path | None = None, more: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Tables, targets and the JSON, with the machine they hold for."""
    log.show(*tables)
    if targets:
        log.show(target_table(targets))
    if options.quick:
        log.show("[yellow]--quick: the figures mean nothing[/]")
    path = file_for(options, "json")
    arguments = {k: str(v) for k, v in vars(options).items()}
    save_json(results, {**machine(flink), "load_before": log.load, "arguments": arguments}, path, targets, more or {})
    log.say(f"written: {path}" + (f", {plot}" if plot else ""))
