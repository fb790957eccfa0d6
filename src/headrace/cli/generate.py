"""`headrace generate`: made-up events to try things on."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import formats
from headrace.cli.consoles import say
from headrace.cli.failures import reported
from headrace.cli.progress import span
from headrace.errors import QueryError
from headrace.generate import SCHEMAS, events, parse_options
from headrace.plan.arrow import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headrace.generate import Options

AT_A_TIME = 65_536
Kind = Enum("Kind", {kind: kind for kind in SCHEMAS}, type=str)  # type: ignore[misc]
Format = Enum("Format", {form: form for form in ("csv", "json", "parquet")}, type=str)  # type: ignore[misc]


def generate(
    kind: Annotated[Kind, typer.Argument(help="What to make.")],
    rows: Annotated[int, typer.Option(help="How many rows.", min=0)] = 10_000,
    rate: Annotated[float | None, typer.Option(help="Events per second of event time.")] = None,
    keys: Annotated[int | None, typer.Option(help="How many cards, items or symbols.")] = None,
    skew: Annotated[float | None, typer.Option(help="Zipf exponent of the keys: 0 is even, 1 is usual in the wild.")] = None,
    late_share: Annotated[float, typer.Option(help="The share of rows that come late, 0 to 1.")] = 0.0,
    late_max: Annotated[str, typer.Option(help="How late at most: the DELAY that admits them all.")] = "10 seconds",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    start: Annotated[str, typer.Option(help="When the first row arrives (UTC).")] = "2026-01-01 00:00:00",
    format: Annotated[Format | None, typer.Option(help="By the name of --out, else csv.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; standard output if not given.")] = None,
) -> None:
    """Make up an event stream, in the order in which it would arrive.

    [bold]payments[/]  id, card, merchant, amount, at
    [bold]rfid[/]      kind (shelf, checkout, exit), id, reader, at; now and then
              an item leaves without passing the checkout
    [bold]ticks[/]     symbol, price (a random walk), qty, at

    [bold]Examples[/]
      headrace generate payments --rows 5 --format json
      headrace generate payments --rows 1000000 --late-share 0.1 --out payments.parquet
      headrace generate ticks --keys 20 --rate 50 --seed 7 > ticks.csv

    In a script the same rows come from
      SOURCE GENERATE('payments', rows => 1000000, late_share => 0.1)
    """
    with reported():
        given = {
            "rate": rate,
            "keys": keys,
            "skew": skew,
            "late_share": late_share,
            "late_max": late_max,
            "seed": seed,
            "start": start,
        }
        pairs = tuple((name, str(value)) for name, value in given.items() if value is not None)
        options = parse_options(kind.value, (*pairs, ("rows", str(rows))))
        form = format.value if format else _form_of(out)
        schema = arrow_schema(SCHEMAS[kind.value])
        if out is None:
            if form == "parquet" and sys.stdout.isatty():
                raise QueryError("parquet is not for a terminal", hint="add --out FILE, or choose csv or json")
            formats.write(sys.stdout.buffer, form, schema, _batches(kind.value, options))
            sys.stdout.flush()
            return
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("wb") as file:
            written = formats.write(file, form, schema, _batches(kind.value, options))
        say(f"{out}: {written:,} rows of {kind.value}, {span(written / options.rate)} of event time")


def _batches(kind: str, options: Options) -> Iterator[pa.RecordBatch]:
    assert options.rows is not None
    for first in range(0, options.rows, AT_A_TIME):
        yield events(kind, options, first, AT_A_TIME)


def _form_of(out: Path | None) -> str:
    ending = out.suffix.lower().lstrip(".") if out else ""
    return {"parquet": "parquet", "json": "json", "jsonl": "json"}.get(ending, "csv")
