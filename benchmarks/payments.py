"""Card payments as parquet files: the same rows for every engine, from a seed.

Files are named in arrival order, and rows lie in arrival order inside a file. Without `late_share`
arrival order is event-time order. Event times are always unique, also when cut to milliseconds at
rates up to 1,000 events/s, because Flink's event time knows nothing finer.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("card", pa.int64()),
        ("merchant", pa.int64()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
SPARK_DDL = "id BIGINT, card BIGINT, merchant BIGINT, amount DOUBLE, at TIMESTAMP"
START_MICROS = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
GENERATOR_VERSION = 1  # raise when the same parameters would give other rows


@dataclass(frozen=True)
class Payments:
    """What to generate; two equal values give the same bytes of data."""

    rows: int = 5_000_000
    files: int = 10
    cards: int = 100_000
    merchants: int = 10_000
    skew: float = 0.0  # 0: every card alike; s: the k-th card has a share proportional to k^-s
    events_per_second: float = 1_000.0  # of event time
    late_share: float = 0.0
    late_max_seconds: float = 0.0
    row_groups: int = 4  # per file, so that two tasks can share one
    seed: int = 7

    def __post_init__(self) -> None:
        if self.files < 1 or self.rows < self.files:
            raise ValueError(f"cannot split {self.rows} rows into {self.files} files")
        if not 0.0 <= self.late_share <= 1.0 or self.late_max_seconds < 0.0:
            raise ValueError("late_share is a share (0 to 1) and late_max_seconds is not negative")
        if not 0.0 < self.events_per_second <= 1_000_000.0:
            raise ValueError("events_per_second must lie in (0, 1,000,000]: times are microseconds and unique")

    def shrink(self, rows: int) -> Payments:
        """The same stream with fewer cards: as long, as many events per card, so a slow rival's load
        per event stays what it was. (Only fewer rows would leave nearly empty windows.)
        """
        share = rows / self.rows
        cards = max(1, round(self.cards * share))
        return replace(self, rows=rows, cards=cards, events_per_second=self.events_per_second * share)

    @property
    def fingerprint(self) -> str:
        text = json.dumps([GENERATOR_VERSION, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def event_times(spec: Payments, rng: np.random.Generator) -> np.ndarray:
    """Strictly increasing microseconds: the i-th event lies anywhere in the i-th slot of 1/rate."""
    edges = (np.arange(spec.rows + 1) * (1e6 / spec.events_per_second)).astype(np.int64)
    widths = np.diff(edges)
    return START_MICROS + edges[:-1] + (rng.random(spec.rows) * widths).astype(np.int64)


def arrival_order(spec: Payments, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row numbers by arrival: a share of the rows comes up to `late_max_seconds` after its time."""
    if spec.late_share == 0.0:
        return np.arange(spec.rows)
    late = rng.random(spec.rows) < spec.late_share
    delay = np.where(late, rng.random(spec.rows) * spec.late_max_seconds * 1e6, 0.0).astype(np.int64)
    return np.argsort(at + delay, kind="stable")


def draw_keys(count: int, keys: int, skew: float, rng: np.random.Generator) -> np.ndarray:
    if skew == 0.0:
        return rng.integers(0, keys, count)
    shares = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)
    ranks = np.searchsorted(shares, rng.random(count) * shares[-1], side="right")
    return rng.permutation(keys)[np.minimum(ranks, keys - 1)]


def table(spec: Payments) -> pa.Table:
    """All rows in arrival order; `id` numbers them in event-time order."""
    rng = np.random.default_rng(spec.seed)
    at = event_times(spec, rng)
    card = draw_keys(spec.rows, spec.cards, spec.skew, rng)
    merchant = draw_keys(spec.rows, spec.merchants, 0.0, rng)
    amount = np.round(rng.lognormal(3.0, 1.0, spec.rows), 2)
    order = arrival_order(spec, at, rng)
    columns = [order, card[order], merchant[order], amount[order], at[order]]
    return pa.table([pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def ensure(spec: Payments, cache: Path) -> Path:
    """The directory of parquet files for `spec` below `cache`; written only if it is not there."""
    target = cache / f"payments-{spec.rows}-{spec.fingerprint}"
    if target.is_dir():
        return target
    scratch = cache / f".{target.name}.{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    write(spec, scratch)
    scratch.rename(target)
    return target


def write(spec: Payments, directory: Path) -> None:
    """One file after another, modified a second apart: Spark reads the oldest first."""
    rows = table(spec)
    edges = np.linspace(0, spec.rows, spec.files + 1).astype(int)
    group = -(-int(np.diff(edges).max()) // spec.row_groups)
    for number, (low, high) in enumerate(pairwise(edges)):
        path = directory / f"part-{number:05d}.parquet"
        pq.write_table(rows.slice(low, high - low), path, row_group_size=group, compression="snappy")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (directory / "_spec.json").write_text(json.dumps(asdict(spec), indent=2) + "\n")


def partitioned(source: Path, partitions: int = 2) -> Path:
    """The rows of `source` dealt out to one file per reader, each in arrival order and one row group.

    Flink's file source hands out splits in no order, and OVER drops what then comes behind the watermark
    without a word; one unsplittable file per reader keeps every row, like a partitioned log would.
    """
    target = source.with_name(f"{source.name}-in-{partitions}")
    if target.is_dir():
        return target
    scratch = source.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    rows = pa.concat_tables(pq.read_table(path) for path in sorted(source.glob("*.parquet")))
    for number in range(partitions):
        part = rows.take(np.arange(number, rows.num_rows, partitions))
        path = scratch / f"part-{number:05d}.parquet"
        pq.write_table(part, path, row_group_size=part.num_rows, compression="snappy")
    scratch.rename(target)
    return target
