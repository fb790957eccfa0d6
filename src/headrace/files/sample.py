"""The first rows of text files, held against the declared types. Spark has the last word on each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.files.cuts import FILE, LINE, TEXT, WHY, Reading
from headrace.files.reading import read_file
from headrace.files.survey import Survey
from headrace.files.values import fits, fits_json
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream

MOST_ROWS = 1_000
MOST_FILES = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """How many rows were looked at, and how many of them do not fit."""

    read: int = 0
    misfits: int = 0
    example: str = ""

    @property
    def share(self) -> float:
        return self.misfits / self.read if self.read else 0.0


def sample(stream: Stream, found: Survey) -> Sample:
    assert isinstance(stream.source, FileSource)
    if found.format == "parquet":
        return Sample()
    reading = Reading(stream.schema, found.format, stream.source.delimiter, found.headed)
    read, wrong = 0, []
    for row in islice(_rows(reading, found.files[:MOST_FILES]), MOST_ROWS):
        read += 1
        problem = row[WHY] or _misfit(row, reading)
        if problem:
            wrong.append(f"{os.path.basename(row['file'])}, line {row[LINE]}: {problem}")
    return Sample(read, len(wrong), wrong[0] if wrong else "")


def _rows(reading: Reading, files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    share = max(1, MOST_ROWS // max(1, len(files)))
    for path in files:
        rows = (r for batch in read_file(reading, path, 0, 0) for r in batch.slice(0, share).to_pylist() if r[WHY] != FILE)
        yield from ({**row, "file": path} for row in islice(rows, share))


def _misfit(row: dict[str, Any], reading: Reading) -> str:
    if reading.format == "json":
        return _json_misfit(row[TEXT], reading.schema)
    for column, field in zip(reading.columns, reading.schema.fields, strict=True):
        if row[column] is not None and not fits(row[column], field.type):
            return f"column {field.name!r} is {field.type}, and here is {row[column]!r}"
    return ""


def _json_misfit(text: str, schema: Schema) -> str:
    try:
        given = {str(key).lower(): value for key, value in json.loads(text).items()}
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    for field in schema.fields:
        value = given.get(field.name.lower())
        if not fits_json(value, field.type):
            return f"column {field.name!r} is {field.type}, and here is {json.dumps(value)}"
    return ""
