"""Files of text as Arrow batches: a text for every field, with its place, its line, and why it cannot be read.

What a row says is not looked at here: Spark casts the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from headrace.files.chunks import Origin, origin_of
from headrace.files.csv_file import CsvCutter
from headrace.files.cuts import FILE, LINE, LOW, TEXT, WHY, Cut, Cutter, Reading, as_batch
from headrace.files.json_file import JsonCutter
from headrace.files.opening import BROKEN, local_path, open_file

HEAD = 1 << 20  # bytes that tell what a file is
BLOCK = 1 << 22
LONGEST = 1 << 24  # bytes of a record; a longer one is given up, so that memory is bounded


def arrow_schema(reading: Reading) -> pa.Schema:
    texts = [(name, pa.string()) for name in (*reading.columns, TEXT, WHY)]
    return pa.schema([*texts, (LINE, pa.int64()), ("_high", pa.int64()), (LOW, pa.int64())])


def cutter_of(reading: Reading) -> Cutter:
    if reading.format == "json":
        return JsonCutter(reading.schema)
    return CsvCutter(reading.schema, reading.delimiter, reading.headed)


def read_file(reading: Reading, path: str, high: int, low: int, content: bytes | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a file, in order; before them one that says which file it is."""
    origin, schema = origin_of(path), arrow_schema(reading)
    shown = local_path(path) or path if origin is None else origin.file
    base = (high, low) if origin is None else (origin.high, origin.low)
    first = True
    with open_file(path, content) as file:
        for cut in _cuts(cutter_of(reading), file, origin):
            if first:
                yield pa.RecordBatch.from_pylist([{TEXT: shown, WHY: FILE, LINE: 0, "_high": base[0], LOW: base[1]}], schema)
                first = False
            yield as_batch(cut, schema, base)


def _cuts(cutter: Cutter, file: BinaryIO, origin: Origin | None) -> Iterator[Cut]:
    """All records of a file, block by block. `at` is where the data at hand begins."""
    blocks = _Blocks(file)
    at, lines = cutter.begin(blocks.head)
    line = 1 + lines
    if cutter.unreadable:
        yield _one(cutter, b"", line, cutter.unreadable)
        return
    # The first record of data is the one that the origin speaks of.
    ahead, further = (0, 0) if origin is None else (-at, origin.line - line)
    blocks.head = blocks.head[at:]
    data = blocks.next()
    while data:
        cut, taken, line = cutter.cut(data, line, final=blocks.ended)
        if not taken and len(data) > LONGEST:
            cut, taken, line = _give_up(cutter, data, line)
        if len(cut.start):
            yield replace(cut, offset=at + ahead, line=cut.line + further)
        data, at = data[taken:], at + taken
        if not blocks.ended:
            data += blocks.next()
        elif not taken:
            break
    if blocks.trouble:
        yield replace(_one(cutter, b"", line + further, blocks.trouble), offset=at + ahead)


def _give_up(cutter: Cutter, data: bytes, line: int) -> tuple[Cut, int, int]:
    """A record that is too long: its first line is lost, or as much of it as is here."""
    if b"\n" in data:
        return cutter.cut(data, line, final=True, most=1)
    return _one(cutter, data[:1000], line, f"it is longer than {LONGEST >> 20} MiB"), len(data), line


def _one(cutter: Cutter, data: bytes, line: int, reason: str) -> Cut:
    """One record that cannot be read."""
    start, end = np.zeros(1, np.int64), np.array([len(data)])
    return Cut(data, start, end, np.array([line]), {0: reason}, tuple(pa.nulls(1, pa.string()) for _ in cutter.columns))


class _Blocks:
    """A file in blocks; one that is damaged ends where it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._some = getattr(file, "read1", file.read)  # a damaged file gives what there is before the damage
        self._whole, self.trouble = False, ""
        self.head = b""
        self.head = self._read(HEAD)  # what is looked at before anything is read

    @property
    def ended(self) -> bool:
        return self._whole and not self.head

    def next(self) -> bytes:
        if self.head:
            block, self.head = self.head[:BLOCK], self.head[BLOCK:]
            return block
        return self._read(BLOCK)

    def _read(self, most: int) -> bytes:
        parts, size = [], 0
        while size < most and not self._whole:
            try:
                part = self._some(most - size)
            except BROKEN as error:
                part, self.trouble = b"", f"the file is damaged from here on: {str(error) or type(error).__name__}"
            parts.append(part)
            size += len(part)
            self._whole = not part
        return b"".join(parts)
