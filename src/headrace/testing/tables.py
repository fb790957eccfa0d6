"""Streams and rows as small text tables, in and out.

    | now | at | card | amount |
    |  10 |  3 | a    | 12.5   |      two rows that come together, at 10 s
    |  10 |  9 | b    | NULL   |
    |  20 |  . | .    | .      |      a batch without rows

Columns `now` (an instant) or `batch` (a number, which is also its time in seconds) say what arrives together; `partition` is
optional. An instant is a number of seconds since 1970, a time of that day (`12:00:01.5`) or ISO text. An empty cell and NULL are
NULL; text may be quoted.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import groupby
from typing import Any

from headrace.errors import DataError, unknown
from headrace.oracle.rows import Row, canonical_row, from_micros, normal_rows, to_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.plan.types import base_type
from headrace.testing.engine import Arrival, Batch

PLACES = ("now", "batch", "partition")


def read_table(text: str) -> tuple[list[str], list[list[str]]]:
    """Header and cells; rules (`|---|`), blank lines and what follows the last bar are skipped."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("|")]
    cells = [[cell.strip() for cell in line[1 : line.rindex("|")].split("|")] for line in lines]
    cells = [row for row in cells if set("".join(row)) - set("-: ") or not "".join(row)]
    if not cells:
        raise DataError("the table has no header", hint="write lines as | name | name |")
    header, *rows = cells
    for row in rows:
        if len(row) != len(header):
            raise DataError(f"a row has {len(row)} cells, the header {len(header)}: {row}")
    return header, rows


def read_instant(text: str) -> int:
    """Microseconds of an instant.

    >>> read_instant("1.5"), read_instant("00:01"), read_instant("1970-01-01 00:00:01")
    (1500000, 60000000, 1000000)
    """
    try:
        return int(Decimal(text) * SECOND)
    except InvalidOperation:
        pass
    try:
        return to_micros(dt.datetime.fromisoformat(text if "-" in text else f"1970-01-01 {text}"))
    except ValueError:
        raise DataError(f"{text!r} is not an instant", hint="seconds, hh:mm:ss, or yyyy-mm-dd hh:mm:ss") from None


def read_cell(text: str, kind: str) -> Any:
    if text in ("", "NULL"):
        return None
    match base_type(kind):
        case "STRING" | "VARCHAR" | "CHAR":
            return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
        case "TIMESTAMP" | "TIMESTAMP_NTZ" | "TIMESTAMP_LTZ":
            return from_micros(read_instant(text))
        case "DATE":
            return dt.date.fromisoformat(text)
        case "BOOLEAN":
            return {"true": True, "false": False}[text.lower()]
        case "FLOAT" | "DOUBLE":
            return float(text)
        case "DECIMAL":
            return Decimal(text)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return int(text)
        case "ARRAY":
            return [read_cell(part, kind[len("ARRAY<") : -1]) for part in text[1:-1].split(", ") if text != "[]"]
    raise DataError(f"a table cannot hold {kind}")


def read_rows(schema: Schema, text: str) -> list[Row]:
    """The rows of a table with the columns of the schema, in any order; a column left out is NULL."""
    header, rows = read_table(text)
    return normal_rows(schema, [_values(schema, dict(zip(header, row, strict=True))) for row in rows])


def _values(schema: Schema, cells: dict[str, str]) -> Row:
    for name in cells:
        if not schema.has(name) and name not in (*PLACES, "_op"):
            raise DataError(unknown("column", name, schema.names))
    return tuple(read_cell(cells.get(f.name, ""), f.type) for f in schema.fields)


def read_batches(stream: str, schema: Schema, text: str) -> list[Batch]:
    """A stream as a table: adjacent rows of one `now` or `batch` arrive together; no such column: each row on its own."""
    header, rows = read_table(text)
    table = [dict(zip(header, row, strict=True)) for row in rows]
    together: list[tuple[object, int, list[dict[str, str]]]] = []
    for number, cells in enumerate(table):
        group = cells.get("batch", cells.get("now", number))
        now = read_instant(str(cells.get("now", group)))
        if together and together[-1][0] == group:
            together[-1][2].append(cells)
        else:
            together.append((group, now, [cells]))
    return [Batch(now, {stream: [a for cells in batch for a in _arrivals(schema, cells)]}) for _, now, batch in together]


def _arrivals(schema: Schema, cells: dict[str, str]) -> list[Arrival]:
    """The row of a line, or none where every cell is a dot."""
    if all(text == "." for name, text in cells.items() if name not in PLACES):
        return []
    return [Arrival(normal_rows(schema, [_values(schema, cells)])[0], int(cells.get("partition") or 0))]


def merge_batches(*streams: Sequence[Batch]) -> list[Batch]:
    """Several streams side by side: batches of one time become one."""
    by_time = sorted((b for stream in streams for b in stream), key=lambda b: b.now)
    merged = []
    for now, batches in groupby(by_time, key=lambda b: b.now):
        rows: dict[str, list[Arrival]] = {}
        for batch in batches:
            for name, arrivals in batch.rows.items():
                rows.setdefault(name, []).extend(arrivals)
        merged.append(Batch(now, rows))
    return merged


def format_cell(value: Any) -> str:
    """A value as `read_cell` reads it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case str():
            plain = value and value == value.strip() and value != "NULL" and value != "." and value[0] not in "'\""
            return value if plain else f"'{value}'"
        case list():
            return f"[{', '.join(map(format_cell, value))}]"
    return str(value)


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in table)


def diff(schema: Schema, want: Sequence[tuple[int, Row]], got: Sequence[tuple[int, Row]]) -> str:
    """What is missing and what is too much, as a table; empty where nothing is."""

    def identity(pair: tuple[int, Row]) -> tuple[int, Row]:
        return pair[0], canonical_row(pair[1], schema)

    missing = Counter(map(identity, want)) - Counter(map(identity, got))
    extra = Counter(map(identity, got)) - Counter(map(identity, want))
    lines = []
    for label, left, pairs in (("missing", missing, want), ("unexpected", extra, got)):
        shown = {identity(pair): pair for pair in pairs}
        for key, count in left.items():
            sign, row = shown[key]
            lines.extend([[label, "+" if sign > 0 else "-", *map(format_cell, row)]] * count)
    return format_table(("", "_op", *schema.names), lines) if lines else ""
