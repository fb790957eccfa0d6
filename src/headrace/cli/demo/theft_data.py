"""The readings of the theft demo: an hour in a bookshop, read by antennas whose networks lose time, but no reading."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from headrace.cli.demo.fraud_data import NOON, write_csv
from headrace.generate import Options, events
from headrace.generate.draws import BLOCK
from headrace.plan.arrow import arrow_schema
from headrace.plan.schema import Schema
from headrace.plan.time import HOUR, MINUTE, SECOND

WITHIN = 5 * HOUR
DELAY = 6 * MINUTE
SLICE = 2 * MINUTE  # a file of each stream, and so a batch
KINDS = ("shelf", "checkout", "exit")
SCHEMA = Schema.of(book="STRING", reader="INT", at="TIMESTAMP", pog="TIMESTAMP")

# A block holds whole visits; of its items one in eight is a book.
VISITS = Options(rate=BLOCK / (HOUR / SECOND), keys=1_000_000, late_share=0.3, late_max=DELAY, seed=2, start=NOON, rows=BLOCK)
ONE_IN, CHOSEN = 8, 3


@dataclass(frozen=True, slots=True)
class Reading:
    """A book was here: when, and when we heard of it, in microseconds."""

    kind: str
    book: str
    reader: int
    at: int
    arrival: int


def readings() -> list[Reading]:
    """All of them in order of arrival; three of each book."""
    rows = events("rfid", VISITS, 0, BLOCK)
    at = rows.column("at").cast(pa.int64()).to_pylist()
    kinds, items, readers = (rows.column(name).to_pylist() for name in ("kind", "id", "reader"))
    every = SECOND / VISITS.rate
    by_book: dict[str, list[Reading]] = defaultdict(list)
    for i, (kind, item, reader, when) in enumerate(zip(kinds, items, readers, at, strict=True)):
        number = item.removeprefix("item-")
        if int(number) % ONE_IN == CHOSEN:
            by_book[number].append(Reading(kind, f"book-{number}", reader, when, max(when, VISITS.start + round(i * every))))
    return sorted((r for own in by_book.values() if len(own) == len(KINDS) for r in own), key=lambda r: r.arrival)


def slices(rows: list[Reading]) -> int:
    return (rows[-1].arrival - NOON) // SLICE + 1


def slice_end(number: int) -> int:
    """When a batch has come: what it makes known is said then."""
    return NOON + (number + 1) * SLICE


def promises(rows: list[Reading], kind: str) -> list[int]:
    """For every batch: the largest time up to which nothing of a kind is under way. The antenna knows what it has sent."""
    ends = map(slice_end, range(slices(rows)))
    return [min([end, *(r.at for r in rows if r.kind == kind and r.arrival >= end)]) - 1 for end in ends]


def write_files(folder: Path, rows: list[Reading]) -> None:
    """A folder for each kind, a file in it for each batch. Those of the tills end with a promise."""
    promised = promises(rows, "checkout")
    for kind in KINDS:
        shutil.rmtree(folder / kind, ignore_errors=True)
        (folder / kind).mkdir(parents=True)
        for number in range(slices(rows)):
            own = [r for r in rows if r.kind == kind and slice_end(number) - SLICE <= r.arrival < slice_end(number)]
            lines = [asdict(r) for r in own] + ([{"pog": promised[number]}] if kind == "checkout" else [])
            write_csv(folder / kind / f"part-{number:02d}.csv", arrow_schema(SCHEMA), lines, slices(rows) - number)


Theft = tuple[str, int, int]  # the book, when it was last on a shelf, when it left


def thefts(rows: list[Reading]) -> set[Theft]:
    """The slow and obvious answer: from a shelf to an exit, and at no till between them."""
    by_book: dict[str, list[Reading]] = defaultdict(list)
    for row in rows:
        by_book[row.book].append(row)
    return {
        (book, taken.at, gone.at)
        for book, own in by_book.items()
        for taken in own
        for gone in own
        if taken.kind == "shelf" and gone.kind == "exit" and taken.at <= gone.at <= taken.at + WITHIN
        if not any(r.kind == "checkout" and taken.at <= r.at <= gone.at for r in own)
    }
