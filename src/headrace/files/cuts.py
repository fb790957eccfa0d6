"""Records that were cut out of a piece of text, and the batch that Spark gets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.plan.schema import Schema

TEXT, WHY, LINE, LOW = "__text", "__why", "__line", "_low"
FOLDED = "__json"  # the text with its keys as they are declared; NULL where they are so already
FILE = "#file"  # in WHY: the row is no row, but TEXT says from which file the following ones are


@dataclass(frozen=True, slots=True)
class Reading:
    """How the files of a stream are read. Travels to the workers as it is."""

    schema: Schema
    format: str  # csv | json
    delimiter: str = ","
    headed: bool | None = None  # whether files are known to have headers, from those that were looked at first

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of text that a row has: a field for every declared column, or JSON with its keys as they are declared."""
        return (FOLDED,) if self.format == "json" else field_columns(self.schema)


def field_columns(schema: Schema) -> tuple[str, ...]:
    """The columns of the texts of fields; no declared one has such a name."""
    return tuple(f"__{i}" for i in range(len(schema.fields)))


@dataclass(frozen=True, slots=True)
class Cut:
    """Records of a piece of text, in order, and the texts of their columns."""

    data: bytes
    start: np.ndarray  # where in the data a record begins
    end: np.ndarray
    line: np.ndarray
    why: dict[int, str]  # records that cannot be read, with the reason
    columns: tuple[pa.Array, ...]
    offset: int = 0  # of the data in its file
    text: pa.Array | None = field(default=None)  # what the records say; made of the data if it is not here


class Cutter(Protocol):
    """Cuts the text of one file into records."""

    columns: tuple[str, ...]
    unreadable: str  # why nothing of the file can be read; known after `begin`

    def begin(self, head: bytes) -> tuple[int, int]:
        """Look at the start of the file; how many bytes and lines of it are no records."""

    def cut(self, data: bytes, line: int, *, final: bool, most: int | None = None) -> tuple[Cut, int, int]:
        """The records in the data, at most so many; how many bytes they take, and the line of what is left.

        Unless `final`, the data goes on.
        """


def not_text(data: bytes, start: np.ndarray, end: np.ndarray) -> dict[int, str]:
    """Records that are not UTF-8. Only those are looked at one by one."""
    found: dict[int, str] = {}
    if not len(start) or data.isascii():
        return found
    text, at = memoryview(data)[: int(end[-1])], int(start[0])
    while at < len(text):
        try:
            str(text[at:], "utf-8")
        except UnicodeDecodeError as error:
            record = int(np.searchsorted(start, at + error.start, "right")) - 1
            byte = at + error.start - int(start[record])
            found[record] = f"it is not UTF-8: byte {byte + 1} is 0x{data[at + error.start]:02x}"
            at = int(end[record])
            continue
        break
    return found


def strings(offsets: np.ndarray, data: bytes | np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    mask = None if valid is None or valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [mask, pa.py_buffer(offsets), pa.py_buffer(data)])


def whole_texts(cut: Cut) -> pa.Array:
    """What every record says, up to the next one: nothing is copied. Line breaks at the end are no part of it, and stay."""
    if cut.text is not None:
        return cut.text
    offsets = np.append(cut.start, cut.end[-1:] if len(cut.end) else [0]).astype(np.int32)
    return strings(offsets, cut.data)


def as_batch(cut: Cut, schema: pa.Schema, base: tuple[int, int]) -> pa.RecordBatch:
    """The batch of these records; their places lie behind that of the file."""
    rows = len(cut.start)
    text = whole_texts(cut)
    why = pa.nulls(rows, pa.string())
    if cut.why:
        bad = sorted(cut.why)
        mask = np.zeros(rows, np.bool_)
        mask[bad] = True
        why = pc.replace_with_mask(why, pa.array(mask), pa.array([cut.why[i] for i in bad], pa.string()))
        shown = [cut.data[cut.start[i] : cut.end[i]].decode("utf-8", "backslashreplace") for i in bad]
        text = pc.replace_with_mask(text, pa.array(mask), pa.array(shown, pa.string()))
    place = [pa.array(cut.line), pa.array(np.full(rows, base[0], np.int64)), pa.array(base[1] + cut.offset + cut.start)]
    return pa.RecordBatch.from_arrays([*cut.columns, text, why, *place], schema=schema)
