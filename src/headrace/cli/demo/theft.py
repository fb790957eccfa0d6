"""`headrace demo patterns`: stolen books, reported at three levels of correctness at once: what each says, and when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from headrace.cli.consoles import out
from headrace.cli.demo import theft_data as data
from headrace.cli.demo.fraud_data import wall
from headrace.cli.demo.scripts import AT_ONCE, SORTED, SURE, show, thefts, titled
from headrace.cli.demo.theft_data import Reading, Theft
from headrace.cli.demo.theft_picture import draw
from headrace.cli.run.command import run_to_the_end
from headrace.errors import InternalError
from headrace.plan.time import MINUTE
from headrace.runs.events import RowsEvent

WAYS = {AT_ONCE: "EMIT CHANGES", SURE: "EMIT FINAL", SORTED: "EMIT FINAL IN ORDER USING KSLACK"}


@dataclass(frozen=True, slots=True)
class Said:
    """One change: which way, when, and the `+` or `-` of a theft."""

    way: str
    at: int
    sign: int
    theft: Theft


def theft_demo(folder: Path, verbose: bool) -> None:
    """Write the readings, run the script on them, check what came out by hand, and tell it."""
    rows = data.readings()
    data.write_files(folder / "readings", rows)
    text = thefts(str(folder / "readings"))
    books, batches = len({r.book for r in rows}), data.slices(rows)
    data_files = f"{len(rows):,} readings of {books:,} books in {batches} batches of 2 minutes: {folder / 'readings'}"
    show(folder / "thefts.cql", text, data_files)
    said = listen(text, verbose)
    verify(rows, said)
    picture = folder / "thefts.png"
    draw(rows, said, picture)
    tell(rows, said, picture)


def listen(text: str, verbose: bool) -> list[Said]:
    """Run the script, a slice of the hour in each batch. A batch is over when its slice is."""
    from headrace.sql import parse_script

    said: list[Said] = []

    def collect(event: RowsEvent) -> None:
        signs = event.rows.column("_op").to_pylist() if "_op" in event.columns else ["+"] * event.rows.num_rows
        books, *times = (event.rows.column(name) for name in ("book", "taken", "gone"))
        taken, gone = (column.cast("int64").to_pylist() for column in times)
        at = data.slice_end(event.batch_id or 0)
        for op, *theft in zip(signs, books.to_pylist(), taken, gone, strict=True):
            said.append(Said(event.query_name, at, 1 if op == "+" else -1, (theft[0], theft[1], theft[2])))

    run_to_the_end(parse_script(text, "thefts.cql"), collect, verbose=verbose, options={"maxFilesPerTrigger": "1"})
    return said


def verify(rows: list[Reading], said: list[Said]) -> None:
    """Hold every way against a recount by hand. A demo that shows a wrong alarm is worse than none."""
    wanted = data.thefts(rows)
    for way in WAYS:
        standing: dict[Theft, int] = defaultdict(int)
        for one in (s for s in said if s.way == way):
            standing[one.theft] += one.sign
            if standing[one.theft] not in (0, 1):
                raise InternalError(f"{way}: {one.theft} was said twice, or taken back without being there")
        if {theft for theft, n in standing.items() if n} != wanted:
            raise InternalError(f"{way}: {sorted(standing)} but a recount gives {sorted(wanted)}")
    if any(s.sign < 0 for s in said if s.way != AT_ONCE):
        raise InternalError("what is final was taken back")


def first_alarm(said: list[Said], way: str, book: str) -> int | None:
    return min((s.at for s in said if s.way == way and s.theft[0] == book and s.sign > 0), default=None)


def apologies(said: list[Said]) -> dict[str, tuple[int, int]]:
    """Books with an alarm that was wrong: when it was given, and when it was taken back."""
    wrong: dict[str, tuple[int, int]] = {}
    for one in (s for s in said if s.sign < 0):
        alarm = first_alarm(said, one.way, one.theft[0])
        assert alarm is not None, "what was taken back was there"
        wrong[one.theft[0]] = (alarm, one.at)
    return wrong


def tell(rows: list[Reading], said: list[Said], picture: Path) -> None:
    console = out()
    stolen = sorted({(gone, book) for book, _, gone in data.thefts(rows)})
    table = titled("Stolen books", "book", "left at", *(f"{way}\nsays so at" for way in WAYS.values()))
    for gone, book in stolen:
        alarms = [first_alarm(said, way, book) for way in WAYS]
        table.add_row(book, wall(gone), *("never" if at is None else wall(at, "%H:%M") for at in alarms))
    console.print(table)
    sorry = apologies(said)
    columns = ("book", "EMIT CHANGES\nalarm at", "apology at", "the others")
    table = titled("Paid for, but the till was heard late", *columns)
    for book, (alarm, apology) in sorted(sorry.items(), key=lambda item: item[1]):
        table.add_row(book, wall(alarm, "%H:%M"), wall(apology, "%H:%M"), "say nothing")
    console.print(table)
    console.print()
    for line in story(stolen, said, picture):
        console.print(Text(line))


def story(stolen: list[tuple[int, str]], said: list[Said], picture: Path) -> list[str]:
    """What is to be seen in the tables."""
    waits = {}
    for way in WAYS:
        alarms = [(first_alarm(said, way, book), gone) for gone, book in stolen]
        waits[way] = sum(at - gone for at, gone in alarms if at is not None) / max(len(alarms), 1) / MINUTE
    sorry = len(apologies(said))
    return [
        f"EMIT CHANGES says so {waits[AT_ONCE]:.1f} minutes after the book has left, and apologises for {sorry} alarms.",
        f"EMIT FINAL waits until no till can object, {waits[SURE]:.1f} minutes, and is never wrong.",
        f"EMIT FINAL IN ORDER USING KSLACK lets every reading wait, {waits[SORTED]:.1f} minutes, and is in order too.",
        f"All of it was checked against a plain recount. The picture: {picture}",
    ]
