"""The payments of the demo: quiet everyday traffic, three cards that break the rule, and one payment that comes far too late."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.cli import formats
from headrace.generate import SCHEMAS, Options, events
from headrace.plan.arrow import arrow_schema
from headrace.plan.time import MINUTE, SECOND

WINDOW = 5 * MINUTE
HOP = MINUTE
DELAY = 2 * MINUTE
LIMIT = 4
NOON = 1_772_452_800 * SECOND  # 2026-03-02 12:00 UTC
FILES = 4

TRAFFIC = Options(rate=2.0, keys=5_000, late_share=0.1, late_max=90 * SECOND, seed=3, start=NOON - 5 * MINUTE, rows=2_400)

EDGE, BURST, LATE, LOST = "card-edge", "card-burst", "card-late", "card-lost"


@dataclass(frozen=True, slots=True)
class Payment:
    """One payment: when it happened and when it reached us, in microseconds."""

    card: str
    amount: float
    at: int
    arrival: int
    merchant: str = "shop-000"
    id: int = 0


def _story(card: str, *times: str, late: dict[str, str] | None = None) -> list[Payment]:
    """Payments of a card at minutes and seconds after noon; `late` says when those that are late arrive."""
    arrivals = late or {}
    return [Payment(card, 20.0 + n, clock(t), clock(arrivals.get(t, t))) for n, t in enumerate(times)]


def clock(text: str) -> int:
    """`clock("5:25")` is 12:05:25 of the demo's day."""
    minutes, seconds = text.split(":")
    return NOON + int(minutes) * MINUTE + int(seconds) * SECOND


# Five payments in less than five minutes, placed so that every window that begins on a full minute holds at most four.
# The paper's figure 1 is not in its text: these times are ours, made to do what its section 2.1 says of it.
EDGE_TIMES = ("0:40", "1:50", "2:55", "4:10", "5:25")
STORIES = (
    *_story(EDGE, *EDGE_TIMES),
    *_story(BURST, "2:05", "2:20", "2:31", "2:44", "2:58"),
    *_story(LATE, "6:10", "6:50", "7:30", "8:10", "8:55", late={"7:30": "9:20"}),
    *_story(LOST, "2:00", late={"2:00": "9:00"}),
)


def payments() -> list[Payment]:
    traffic = events("payments", TRAFFIC, 0, TRAFFIC.rows or 0)
    at = traffic.column("at").cast(pa.int64()).to_pylist()
    cards, shops, amounts = (traffic.column(name).to_pylist() for name in ("card", "merchant", "amount"))
    every = SECOND / TRAFFIC.rate
    rows = [
        Payment(card, amount, when, max(when, TRAFFIC.start + round(i * every)), shop)
        for i, (card, shop, amount, when) in enumerate(zip(cards, shops, amounts, at, strict=True))
    ]
    rows = sorted([*rows, *STORIES], key=lambda p: p.arrival)
    return [Payment(p.card, p.amount, p.at, p.arrival, p.merchant, number) for number, p in enumerate(rows, 1)]


def write_files(folder: Path, rows: list[Payment]) -> list[Path]:
    """CSV files as they would have come in one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.csv"):
        old.unlink()
    size = -(-len(rows) // FILES)
    paths = [folder / f"part-{n}.csv" for n in range(FILES)]
    for n, path in enumerate(paths):
        part = [asdict(p) for p in rows[n * size : (n + 1) * size]]
        write_csv(path, arrow_schema(SCHEMAS["payments"]), part, FILES - n)
    return paths


def write_csv(path: Path, schema: pa.Schema, rows: list[dict[str, Any]], age_s: int) -> None:
    """Sources take files in order of age."""
    with path.open("wb") as file:
        formats.write(file, "csv", schema, [pa.RecordBatch.from_pylist(rows, schema)])
    os.utime(path, (time.time() - age_s,) * 2)


def admitted(rows: list[Payment]) -> list[Payment]:
    """Those that are no more than DELAY behind the newest before them."""
    newest, kept = rows[0].at, []
    for row in rows:
        if row.at >= newest - DELAY:
            kept.append(row)
        newest = max(newest, row.at)
    return kept


def recount(rows: list[Payment]) -> dict[int, int]:
    """The slow and obvious answer: for every admitted payment, those of its card in (at - 5 minutes, at]. Ids to counts."""
    by_card: dict[str, list[Payment]] = defaultdict(list)
    for row in admitted(rows):
        by_card[row.card].append(row)
    return {row.id: sum(row.at - WINDOW < other.at <= row.at for other in same) for same in by_card.values() for row in same}


def wall(micros: int, form: str = "%H:%M:%S") -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).strftime(form)
