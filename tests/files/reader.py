"""Reads a text with the reader of files, in blocks of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.files import reading
from headrace.files.cuts import FILE, LINE, LOW, TEXT, WHY
from headrace.plan.schema import Schema


def read(
    folder: Path, data: bytes, schema: Schema, kind: str = "csv", block: int = 1 << 22, name: str = "x.txt", **how: Any
) -> list[dict[str, Any]]:
    """The rows of a file that holds this, as the reader gives them; the first says which file it is."""
    (folder / name).write_bytes(data)
    old, reading.BLOCK = reading.BLOCK, block
    try:
        batches = list(reading.read_file(reading.Reading(schema, kind, **how), str(folder / name), 7, 1000))
    finally:
        reading.BLOCK = old
    rows = [row for batch in batches for row in batch.to_pylist()]
    if rows:
        assert (rows[0][WHY], rows[0][TEXT]) == (FILE, str(folder / name))
    assert [r[LOW] for r in rows[1:]] == sorted({r[LOW] for r in rows[1:]}), "every row has a place of its own, in order"
    return rows[1:]


def values(rows: list[dict[str, Any]], schema: Schema) -> list[tuple[Any, ...]]:
    """The texts of rows that can be read."""
    return [tuple(row[f"__{i}"] for i in range(len(schema.fields))) for row in rows if row[WHY] is None]


def refused(rows: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    """Line, text and reason of rows that cannot be read."""
    return [(row[LINE], row[TEXT], row[WHY]) for row in rows if row[WHY] is not None]
