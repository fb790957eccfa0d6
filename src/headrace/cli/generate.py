"""`headrace generate`: made-up events to try things on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from headrace.cli import formats
from headrace.cli.consoles import say
from headrace.cli.failures import reported
from headrace.cli.run.progress import span
from headrace.errors import QueryError, unknown
from headrace.generate import SCHEMAS, Options, events, parse_options
from headrace.plan.arrow import arrow_schema

AT_A_TIME = 65_536
MOST_FILES = 100
Kind = Enum("Kind", {kind: kind for kind in SCHEMAS}, type=str)  # type: ignore[misc]
Format = Enum("Format", {form: form for form in ("csv", "json", "parquet")}, type=str)  # type: ignore[misc]


def generate(
    kind: Annotated[Kind, typer.Argument(help="What to make.")],
    rows: Annotated[int, typer.Option(help="How many rows.", min=0)] = 10_000,
    rate: Annotated[float | None, typer.Option(help="Events per second (sequence: per unit) of event time.")] = None,
    keys: Annotated[int | None, typer.Option(help="How many cards, items, symbols or values.")] = None,
    skew: Annotated[float | None, typer.Option(help="Zipf exponent of the keys: 0 is even, 1 is usual in the wild.")] = None,
    late_share: Annotated[str | None, typer.Option(help="The share of rows that come late, 0 to 1; sequence: 0.1,A=0.3")] = None,
    late_max: Annotated[str | None, typer.Option(help="How late at most (10 seconds): the DELAY that admits them all.")] = None,
    types: Annotated[int | None, typer.Option(help="sequence: how many types, A to Z (10).")] = None,
    pog_share: Annotated[float | None, typer.Option(help="sequence: promises per event, 0 to 1.")] = None,
    pog: Annotated[str | None, typer.Option(help="sequence: promise by the largest `delay`, or by what was `sent`.")] = None,
    unit: Annotated[str | None, typer.Option(help="sequence: the time unit of rate and late-max (1 second).")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    start: Annotated[str, typer.Option(help="When the first row arrives (UTC).")] = "2026-01-01 00:00:00",
    format: Annotated[Format | None, typer.Option(help="By the name of --out, else csv.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; standard output if not given.")] = None,
    split_by: Annotated[str | None, typer.Option(help="A file in --out for each value of this column.")] = None,
) -> None:
    """Make up an event stream, in the order in which it would arrive.

    [bold]payments[/]  id, card, merchant, amount, at
    [bold]rfid[/]      kind (shelf, checkout, exit), id, reader, at; now and then
              an item leaves without passing the checkout
    [bold]ticks[/]     symbol, price (a random walk), qty, at
    [bold]sequence[/]  type (A to J, evenly), at, arrival, id, value, pog; disorder
              by type, and promises: a row with pog says that no more
              rows of its type come at or before that time

    [bold]Examples[/]
      headrace generate payments --rows 5 --format json
      headrace generate payments --rows 1000000 --late-share 0.1 --out payments.parquet
      headrace generate ticks --keys 20 --rate 50 --seed 7 > ticks.csv
      headrace generate sequence --pog-share 0.2 --split-by type --out types

    In a script the same rows come from
      SOURCE GENERATE('payments', rows => 1000000, late_share => 0.1)
    """
    with reported():
        of_all = {"rate": rate, "keys": keys, "skew": skew, "late_share": late_share, "late_max": late_max, "seed": seed}
        of_some = {"types": types, "pog_share": pog_share, "pog": pog, "unit": unit, "start": start, "rows": rows}
        given = ((name, str(value)) for name, value in (of_all | of_some).items() if value is not None)
        options = parse_options(kind.value, given)
        form = format.value if format else _form_of(out)
        schema = arrow_schema(SCHEMAS[kind.value])
        if split_by is not None:
            _write_each(kind.value, options, split_by, form, out)
            return
        if out is None:
            if form == "parquet" and sys.stdout.isatty():
                raise QueryError("parquet is not for a terminal", hint="add --out FILE, or choose csv or json")
            formats.write(sys.stdout.buffer, form, schema, _batches(kind.value, options))
            sys.stdout.flush()
            return
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("wb") as file:
            written = formats.write(file, form, schema, _batches(kind.value, options))
        say(f"{out}: {written:,} rows of {kind.value}, {span(written / options.row_rate)} of event time")


def _write_each(kind: str, options: Options, column: str, form: str, folder: Path | None) -> None:
    """One file for each value: the sources of a pattern are streams of their own."""
    schema = arrow_schema(SCHEMAS[kind])
    if column not in schema.names:
        raise QueryError(unknown("column", column, schema.names))
    if folder is None:
        raise QueryError("--split-by writes several files", hint="add --out DIR")
    found: set[object] = set()
    for batch in _batches(kind, options):
        found.update(pc.unique(batch.column(column)).to_pylist())
        if len(found) > MOST_FILES:
            raise QueryError(f"{column} has more than {MOST_FILES} values", hint="split by a column with few: type, kind")
    folder.mkdir(parents=True, exist_ok=True)
    for value in sorted(map(str, found)):
        path = folder / f"{value}.{form}"
        with path.open("wb") as file:
            parts = (batch.filter(pc.equal(batch.column(column).cast("string"), value)) for batch in _batches(kind, options))
            written = formats.write(file, form, schema, parts)
        say(f"{path}: {written:,} rows of {kind}")


def _batches(kind: str, options: Options) -> Iterator[pa.RecordBatch]:
    assert options.rows is not None
    for first in range(0, options.rows, AT_A_TIME):
        yield events(kind, options, first, AT_A_TIME)


def _form_of(out: Path | None) -> str:
    ending = out.suffix.lower().lstrip(".") if out else ""
    return {"parquet": "parquet", "json": "json", "jsonl": "json"}.get(ending, "csv")
