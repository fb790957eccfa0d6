"""Files looked at before anything is run: what they are, and whether they are what is declared.

All of them are opened, little of each is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from headrace.errors import DataError
from headrace.files.formats import BOM, LOOK, NOT_UTF8, TEXTS, format_of, json_value, look
from headrace.files.headers import CsvLayout, layout_of
from headrace.files.listing import existing, is_pattern, passed_by
from headrace.files.parquet import check_columns, nanosecond_columns, schema_of, unmarked_texts
from headrace.notices import warn
from headrace.plan.nodes import base_streams
from headrace.plan.query import Script
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream

FIRST_LOOK = 1 << 12
NAMES = {"csv": "CSV", "json": "JSON", "parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found."""

    format: str  # csv | json | parquet
    files: tuple[str, ...]
    headed: bool | None = None  # whether the files have headers; None: there is none, or it does not matter
    nanoseconds: frozenset[str] = field(default_factory=frozenset)  # columns whose times are written so; in lower case
    unmarked: frozenset[str] = field(default_factory=frozenset)  # columns of text that are only bytes in parquet


def survey(stream: Stream, source: FileSource) -> Survey:
    """Look at the files of a stream; an error says which of them is not what is declared."""
    where = f"stream {stream.name!r}" if not stream.static else f"table {stream.name!r}"
    files = existing(source.path, where)
    _say_passed_by(source.path, where)
    heads = {path: _head(path) for path in files}
    kind = _format(heads, source, where)
    match kind:
        case "csv":
            return Survey(kind, tuple(files), _headed(heads, source, stream.schema, where))
        case "json":
            _check_keys(heads, stream.schema, where)
            return Survey(kind, tuple(files))
        case _:
            _refuse_colons(heads, where)
            full = {path: schema_of(path, where) for path, head in heads.items() if head}
            for path, columns in full.items():
                check_columns(path, columns, stream.schema, where)
            fine = nanosecond_columns(full, stream.schema, where)
            return Survey(kind, tuple(files), nanoseconds=fine, unmarked=unmarked_texts(full, stream.schema))


def _refuse_colons(paths: Iterable[str], where: str) -> None:
    """Hadoop takes what stands before a colon in a name for a scheme; text we read ourselves."""
    for path in paths:
        if ":" in _name(path):
            raise DataError(f"{_name(path)} has a colon in its name, with which Spark cannot read parquet", where=where,
                            hint="give the file another name")  # fmt: skip


def _say_passed_by(path: str, where: str) -> None:
    """What a user may think is read."""
    found = passed_by(path)
    folders = [p for p in found if os.path.isdir(p)]
    if folders:
        inner = os.path.join(path, "*") if is_pattern(path) else os.path.join(path, "*", "*")
        warn(f"files in folders are not read: {_few(folders)}. SOURCE FILE('{inner}') reads those", where=where)
    if others := [p for p in found if p not in folders]:
        warn(f"what is no file is not read: {_few(others)}", where=where)


def _few(paths: list[str]) -> str:
    return ", ".join(map(_name, paths[:3])) + (", .." if len(paths) > 3 else "")


def look_at(script: Script) -> dict[Stream, Survey]:
    """Look at the files of every stream and table that a script reads."""
    streams = dict.fromkeys(s for query in script.queries for s in base_streams(query.node))
    return {s: survey(s, s.source) for s in streams if isinstance(s.source, FileSource)}


def _head(path: str) -> bytes:
    """The start of a file: as little as tells what it is."""
    head = look(path, FIRST_LOOK)
    return head if len(head) < FIRST_LOOK or head.startswith(b"PAR1") or head.count(b"\n") > 1 else look(path, LOOK)


def _format(heads: dict[str, bytes], source: FileSource, where: str) -> str:
    """What all files are; it must be what is said of them, if anything is."""
    said = None if source.format == "auto" else source.format
    found: dict[str, str] = {}
    for path, head in heads.items():
        kind = format_of(head)
        if kind == "csv" and said == "json" and any(isinstance(json_value(line), dict) for line in head.splitlines()[:20]):
            kind = "json"  # its first line is not, but others are
        if kind is None:
            continue
        if kind not in NAMES:
            raise DataError(f"{_name(path)} is {kind}", where=where, hint=_convert(kind, path))
        if said is not None and kind != said:
            raise DataError(
                f"{_name(path)} is {NAMES[kind]}, and {NAMES[said]} was expected: {_because(source)}", where=where,
                hint=f"write SOURCE FILE('{source.path}', '{kind}'), or look at the file",
            )  # fmt: skip
        found.setdefault(kind, path)
    if len(found) > 1:
        ways = " and ".join(f"{_name(path)} is {NAMES[kind]}" for kind, path in found.items())
        raise DataError(
            f"the files are of several formats: {ways}", where=where, hint="give each format a directory and a stream of its own"
        )
    return next(iter(found), said or "csv")


def _name(path: str) -> str:
    return os.path.basename(path)


def _because(source: FileSource) -> str:
    ending = os.path.splitext(source.path)[1]
    return f"SOURCE FILE says '{source.format}'" if not ending else f"SOURCE FILE says '{source.format}', or its path '{ending}'"


def _convert(kind: str, path: str) -> str:
    if kind in NOT_UTF8.values():
        return f"text must be UTF-8: iconv -f {kind} -t UTF-8 {path}"
    return "csv, json and parquet can be read, and the first two compressed with gzip, bzip2, zstd, xz or lz4"


def _headed(heads: dict[str, bytes], source: FileSource, schema: Schema, where: str) -> bool | None:
    """Whether the files have headers: all, or none."""
    layouts: dict[bool, tuple[str, CsvLayout]] = {}
    for path, head in heads.items():
        if format_of(head) not in TEXTS:
            continue
        layout = layout_of(head, source.delimiter, schema)
        if layout.problem:
            raise DataError(f"{_name(path)} {layout.problem}", where=where, hint=layout.hint)
        layouts.setdefault(layout.headed, (path, layout))
    if len(layouts) > 1:
        (one, layout), (other, _) = layouts[True], layouts[False]
        raise DataError(
            f"{_name(one)} has a header, and {_name(other)} has none", where=where,
            hint=f"put the same line at the top of {_name(other)} if its columns are in that order: {', '.join(layout.header)};"
            " or say which files are meant by a pattern, as in SOURCE FILE('in/*.csv')",
        )  # fmt: skip
    return next(iter(layouts), None)


def _check_keys(heads: dict[str, bytes], schema: Schema, where: str) -> None:
    """An object that has none of the declared columns is not what was meant."""
    known = {name.lower() for name in schema.names}
    for path, head in heads.items():
        first = first_object(head)
        if first and not known & {str(key).lower() for key in first}:
            raise DataError(
                f"{_name(path)} has no column {', '.join(map(repr, schema.names))}; its first object has: {', '.join(first)}",
                where=where, hint="name the columns of CREATE STREAM as the file does",
            )  # fmt: skip


def first_object(head: bytes) -> dict[str, object] | None:
    """The first object in JSON text, if it is whole."""
    from headrace.kernels.text import json_records as k

    text = head.removeprefix(BOM)
    record = np.empty((1, 4), np.int64)
    found = k.split_values(np.frombuffer(text, np.uint8), 0, True, 0, 1, record)[0]
    if not found or record[0, 3] != k.GOOD:
        return None
    value = json_value(text[record[0, 0] : record[0, 1]])
    return value if isinstance(value, dict) else None
