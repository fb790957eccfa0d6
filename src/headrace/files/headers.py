"""Which field of a CSV file is which column: by its own header, or by order if it has none."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.files.formats import BOM
from headrace.files.values import fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.plan.schema import Schema

OTHER_DELIMITERS = (",", ";", "\t", "|")
_NAME = re.compile(r"[^\W\d][\w .\-/()]*")


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How records of a file are to be read. One with a `problem` cannot be."""

    fields: int  # how many a record has
    slots: tuple[int, ...]  # for each field, which of the declared columns it is; -1: none
    header: tuple[str, ...] = ()  # what the first record says, if it is a header
    skip: int = 0  # bytes before the first record of data
    lines: int = 0  # lines before it
    problem: str = ""
    hint: str = ""

    @property
    def headed(self) -> bool:
        return bool(self.header)


def first_records(head: bytes, delimiter: str, most: int) -> Iterator[tuple[list[str], int, int]]:
    """Records at the start of a file: their fields, and how many bytes and lines of the file they and all before them take."""
    rows = head.splitlines(keepends=True)
    ends, taken = [0], 0
    for row in rows:
        taken += len(row)
        ends.append(taken)
    texts = (row.decode("utf-8", "replace") for row in rows)
    reader = csv.reader(texts, delimiter=delimiter)
    try:
        for number, record in enumerate(r for r in reader if any(f.strip() for f in r) or len(r) > 1):
            if number == most:
                return
            yield record, ends[reader.line_num], reader.line_num
    except csv.Error:  # a field that goes on for too long, or a NUL
        return


def layout_of(head: bytes, delimiter: str, schema: Schema) -> CsvLayout:
    start = len(BOM) if head.startswith(BOM) else 0
    plain = CsvLayout(len(schema.fields), tuple(range(len(schema.fields))), skip=start)
    first = next(first_records(head[start:], delimiter, 1), None)
    if first is None:
        return plain
    record, taken, lines = first
    names = tuple(_plain(name) for name in record)
    if not _is_header(names, schema):
        return _otherwise(plain, names, head[start:], delimiter, schema)
    return _headed(names, start + taken, lines, schema)


def _plain(name: str) -> str:
    """A name as it is meant: spaces before quotes make these a part of the field."""
    name = name.strip()
    return name[1:-1].strip() if len(name) > 1 and name[0] == name[-1] == '"' else name


def _headed(names: tuple[str, ...], skip: int, lines: int, schema: Schema) -> CsvLayout:
    columns = {f.name.lower(): i for i, f in enumerate(schema.fields)}
    slots = tuple(columns.get(name.lower(), -1) for name in names)
    missing = [f.name for i, f in enumerate(schema.fields) if i not in slots]
    twice = [schema.fields[i].name for i, count in Counter(slots).items() if i >= 0 and count > 1]
    problem = f"has two columns {twice[0]!r}" if twice else f"has no column {', '.join(map(repr, missing))}" if missing else ""
    return CsvLayout(
        len(names), slots, names, skip, lines,
        f"{problem}; its header says: {', '.join(names)}" if problem else "",
        "correct the columns of CREATE STREAM, or the file" if problem else "",
    )  # fmt: skip


def _is_header(names: tuple[str, ...], schema: Schema) -> bool:
    """Whether a record is a header: it has all declared names, or half of them and is no row of data."""
    known = {n.lower() for n in names} & {f.name.lower() for f in schema.fields}
    if len(known) == len(schema.fields):
        return True
    return bool(known) and 2 * len(known) >= min(len(names), len(schema.fields)) and not _is_data(names, schema)


def _is_data(record: tuple[str, ...], schema: Schema) -> bool:
    if len(record) != len(schema.fields):
        return False
    kinds = [f.type for f in schema.fields]
    return all(fits(text, kind) for text, kind in zip(record, kinds, strict=True) if text)


def _otherwise(plain: CsvLayout, names: tuple[str, ...], head: bytes, delimiter: str, schema: Schema) -> CsvLayout:
    """The first record is no header. If it is no data either, it may be a header in disguise."""
    if _is_data(names, schema):
        return plain

    def wrong(problem: str, hint: str) -> CsvLayout:
        return CsvLayout(plain.fields, plain.slots, problem=problem, hint=hint)

    for other in OTHER_DELIMITERS:
        record = next(first_records(head, other, 1), ([], 0, 0))[0]
        if other != delimiter and _is_header(tuple(n.strip() for n in record), schema):
            problem = f"has fields between {_shown(other)}, not between {_shown(delimiter)}"
            return wrong(problem, f"write SOURCE FILE('..', {_shown(other)})")
    for record, _, lines in first_records(head, delimiter, 20):
        if {f.name.lower() for f in schema.fields} <= {n.strip().lower() for n in record}:
            problem = f"has its header in line {lines}, and something else before it"
            return wrong(problem, "remove the lines before the header")
    if _names_others(names, head, delimiter, schema):
        problem = f"has no column {', '.join(repr(f.name) for f in schema.fields)}; its first line says: {', '.join(names)}"
        hint = "name the columns of CREATE STREAM as the file does, or put a header on the file"
        return wrong(problem, hint)
    return plain


def _names_others(names: tuple[str, ...], head: bytes, delimiter: str, schema: Schema) -> bool:
    """Whether the first record is a header of other columns: names only, where the second one has as many fields and others."""
    typed = [(n, f.type) for n, f in zip(names, schema.fields, strict=False) if f.type not in ("STRING", "BINARY")]
    if len(names) < 2 or not typed or any(fits(text, kind) for text, kind in typed):
        return False
    second = [r for r, _, _ in first_records(head, delimiter, 2)][1:]
    named = all(_NAME.fullmatch(n) for n in names)
    return named and bool(second) and len(second[0]) == len(names) and not all(_NAME.fullmatch(f.strip()) for f in second[0])


def _shown(delimiter: str) -> str:
    return "'\\t'" if delimiter == "\t" else repr(delimiter)
