"""Does the length of a window cost anything, and what do many windows cost? Figure 6 of Railgun."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from . import command, report, window_counts, window_kinds, window_shared, window_sizes
from .report import Result

PARTS = ("sizes", "counts", "kinds", "shared")
COUNT_ROWS = 1_000_000


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    sizes: list[Result] = []
    counts: list[Result] = []
    kinds: list[Result] = []
    if "sizes" in options.parts:
        points = list(window_sizes.points(command.rows_of(options), options.cards, options.streams, command.files_of(options)))
        if options.quick:  # the shortest window and the longest
            points = [points[0], points[len(window_sizes.SIZES) - 1]]
        sizes = window_sizes.measure(log, points, 1 if options.quick else options.repeat, options.quick)
    if "counts" in options.parts:
        rows = options.count_rows or (window_counts.QUICK_ROWS if options.quick else COUNT_ROWS)
        counts = window_counts.measure(log, rows, options.cards, options.caches, options.quick)
    if "kinds" in options.parts:
        kinds = window_kinds.measure(log, command.rows_of(options), options.cards, options.hop_shrink, options.quick)
    shared: list[Result] = []
    if "shared" in options.parts:
        shared = window_shared.measure(log, command.rows_of(options), options.shared_cards, options.looks, options.quick)
    plot = command.file_for(options, "png")
    draw(sizes, counts, plot)
    targets = window_sizes.targets(sizes) + window_counts.targets(counts) + window_kinds.targets(kinds)
    targets += window_shared.targets(shared)
    tables = [sizes_table(sizes)] * bool(sizes) + [counts_table(counts)] * bool(counts) + [kinds_table(kinds)] * bool(kinds)
    tables += [shared_table(shared)] * bool(shared)
    command.finish(log, options, [*sizes, *counts, *kinds, *shared], targets, *tables, plot=plot)


def kinds_table(results: Sequence[Result]) -> Table:
    table = Table(title="kinds of windows: SUM and COUNT per card")
    table.add_column("")
    for heading in ("rows", "seconds", "events/s", "of sliding"):
        table.add_column(heading, justify="right")
    sliding = next((r.events_per_second for r in results if r.name.endswith(window_kinds.SLIDING)), 0.0)
    for r in results:
        share = f"{r.events_per_second / sliding:.2f} x" if sliding else ""
        table.add_row(r.name, f"{r.rows:,}", f"{r.seconds:.1f}", f"{r.events_per_second:,.0f}", share)
    return table


def shared_table(results: Sequence[Result]) -> Table:
    table = Table(title="120 windows of 1 to 120 minutes against one of 60: the second half of each run")
    table.add_column("")
    for heading in ("cards", "rows", "one: s", "rows out", "120: s", "rows out", "time"):
        table.add_column(heading, justify="right")
    for one, many in window_shared.pairs(results):
        cells = [c for r in (one, many) for c in (f"{r.seconds:.1f}", f"{r.details['rows_out']:,}")]
        ratio = f"{many.seconds / one.seconds:.2f} x"
        table.add_row(one.details["shared"], f"{one.details['cards']:,}", f"{one.rows:,}", *cells, ratio)
    return table


def sizes_table(results: Sequence[Result]) -> Table:
    table = Table(title="windows of 5 minutes to 1 year: the second half of each run")
    for heading in ("stream", "window"):
        table.add_column(heading)
    for heading in ("rows", "seconds", "events/s", "of 5 min", "largest worker", "of 5 min", "all workers"):
        table.add_column(heading, justify="right")
    for stream in window_sizes.STREAMS:
        found = window_sizes.of_stream(results, stream)
        for r in found:
            base, d = found[0], r.details
            table.add_row(
                stream, r.name.split(", ")[1], f"{r.rows:,}", f"{r.seconds:.1f}", f"{r.events_per_second:,.0f}",
                f"{r.events_per_second / base.events_per_second:.2f} x", f"{d['largest_worker_mib']:,.0f} MiB",
                f"{d['largest_worker_mib'] / base.details['largest_worker_mib']:.2f} x", f"{d['all_workers_mib']:,.0f} MiB",
                end_section=r is found[-1],
            )  # fmt: skip
    return table


def counts_table(results: Sequence[Result]) -> Table:
    table = Table(title="windows that share neither end; SUM, AVG, COUNT over each")
    for heading in ("cache", "windows", "iterators", "events/s", "time", "window results/s", "hits", "misses", "largest worker"):
        table.add_column(heading, justify="right")
    for r in results:
        d = r.details
        base = window_counts.of_cache(results, d["cache_chunks"])[0]
        table.add_row(
            str(d["cache_chunks"]), str(d["windows"]), str(d["iterators"]), f"{r.events_per_second:,.0f}",
            f"{base.events_per_second / r.events_per_second:.1f} x", f"{r.events_per_second * d['windows']:,.0f}",
            f"{d['hits']:,}", f"{d['misses']:,}", f"{d['largest_worker_mib']:,.0f} MiB",
        )  # fmt: skip
    return table


def draw(sizes: Sequence[Result], counts: Sequence[Result], path: Path) -> None:
    """Two pictures: `windows.png` for the sizes and `windows-counts.png` for the numbers."""
    labels = ("window (s)", "events/s")
    if sizes:
        lines = {
            s: [(r.details["window_seconds"], r.events_per_second) for r in window_sizes.of_stream(sizes, s)]
            for s in window_sizes.STREAMS
        }
        report.save_lines({k: v for k, v in lines.items() if v}, labels, "window size and throughput", path)
    if counts:
        caches = dict.fromkeys(r.details["cache_chunks"] for r in counts)
        points = {
            f"cache of {c} chunks": [(r.details["iterators"], r.events_per_second) for r in window_counts.of_cache(counts, c)]
            for c in caches
        }
        where = path.with_name(f"{path.stem}-counts{path.suffix}")
        report.save_lines(points, ("iterators per bucket", "events/s"), "windows that share neither end", where)


def arguments() -> argparse.ArgumentParser:
    options = command.parser("windows", __doc__.splitlines()[0], rows=4_000_000)
    options.add_argument("--cards", type=int, default=100_000)
    command.add_parts(options, PARTS)
    options.add_argument("--streams", nargs="+", choices=window_sizes.STREAMS, default=window_sizes.STREAMS)
    options.add_argument("--repeat", type=int, default=3, help="runs of each window size; the fastest counts")
    options.add_argument("--hop-shrink", type=int, default=4, help="hopping windows get one in so many rows")
    options.add_argument("--count-rows", type=int, help=f"payments for each number of windows (default {COUNT_ROWS:,})")
    options.add_argument(
        "--caches", type=int, nargs="+", default=window_counts.CACHES, help="chunks that a worker keeps decoded (default 256 32)"
    )
    options.add_argument(
        "--shared-cards", type=int, nargs="+", default=window_shared.CARDS, help="cards that windows share looks at"
    )
    options.add_argument(
        "--looks", nargs="+", choices=window_shared.KINDS, default=window_shared.KINDS, help="what looks at them"
    )
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
