"""`headrace check --data`: what the files of a script are, and how many of their first rows would not fit."""

from __future__ import annotations

from rich.text import Text

from headrace.cli.consoles import err, out, warnings_on
from headrace.errors import DataError
from headrace.files.sample import Sample, sample
from headrace.files.survey import NAMES, Survey, look_at
from headrace.plan.query import Script
from headrace.plan.stream import Stream
from headrace.runs.losses import LOUD


def show_data(plan: Script) -> None:
    """Open the files, and say what they are; an error if they are not what is declared."""
    console = out()
    worst: DataError | None = None
    with warnings_on(err()):
        surveys = look_at(plan)
    for stream, found in surveys.items():
        rows = sample(stream, found)
        console.print(Text(stream.name, style="bold cyan"))
        console.print(Text(f"  files   {len(found.files):,} {NAMES[found.format]}{_headers(found)}"))
        if rows.read:
            console.print(Text(f"  rows    {_fit(rows)}", style="red" if rows.share > LOUD else ""))
        if rows.read == rows.misfits > 0:
            worst = worst or _nothing_fits(stream, rows)
    if worst is not None:
        raise worst


def _headers(found: Survey) -> str:
    return "" if found.headed is None else " with headers" if found.headed else " without headers"


def _fit(rows: Sample) -> str:
    if not rows.misfits:
        return f"the first {rows.read:,} fit"
    return f"{rows.misfits:,} of the first {rows.read:,} would be rejected, for example {rows.example}"


def _nothing_fits(stream: Stream, rows: Sample) -> DataError:
    return DataError(
        f"none of the first {rows.read:,} rows fits: {rows.example}", where=f"stream {stream.name!r}",
        hint="correct the columns of CREATE STREAM, or the file",
    )  # fmt: skip
