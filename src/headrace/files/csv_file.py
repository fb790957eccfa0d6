"""CSV: records by the kernel, columns by the header of the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.files.cuts import Cut, field_columns, not_text, strings
from headrace.files.formats import BOM, LOOK, format_of
from headrace.files.headers import CsvLayout, layout_of
from headrace.kernels.text import csv_records as k
from headrace.plan.schema import Schema

MOST_LOOKED_AT = 16 * LOOK


class CsvCutter:
    """Cuts one file."""

    def __init__(self, schema: Schema, delimiter: str, headed: bool | None) -> None:
        """For a file whose layout is not known yet; `headed` says whether other files of its stream have headers."""
        self.schema, self.delimiter, self.headed = schema, delimiter, headed
        self.columns = field_columns(schema)
        self.layout = CsvLayout(0, ())
        self.unreadable = self._trouble = ""
        self._header = b""

    def begin(self, head: bytes) -> tuple[int, int]:
        kind = format_of(head[:LOOK])
        if kind not in ("csv", "json", None):
            self.unreadable = f"the file is {kind}, and is read as CSV"
        self.layout = layout = layout_of(head[:MOST_LOOKED_AT], self.delimiter, self.schema)
        if layout.problem:
            self._trouble = f"the file {layout.problem}"
        elif self.headed is not None and self.headed != layout.headed and kind is not None:
            has, had = ("a header", "have none") if layout.headed else ("no header", "have one")
            self._trouble = f"the file has {has}, and the files that were there at the start {had}"
        self._header = head[: layout.skip].removeprefix(BOM).strip(b"\r\n") if layout.headed else b""
        self._slots = np.array(layout.slots, np.int64)
        self._fields = -1 if self._trouble else layout.fields
        return layout.skip, layout.lines

    def cut(self, data: bytes, line: int, *, final: bool, most: int | None = None) -> tuple[Cut, int, int]:
        most = most or data.count(b"\n") + data.count(b"\r") + 1
        width, buffer = len(self.columns), np.frombuffer(data, np.uint8)
        starts, ends = np.empty((2, most, width), np.int32)
        kinds, record = np.empty((most, width), np.uint8), np.empty((most, 5), np.int64)
        found, taken, after = k.split_records(
            buffer, 0, final, ord(self.delimiter), self._fields, self._slots, line, starts, ends, kinds, record
        )
        kept: np.ndarray | slice | None = self._without_headers(data, record[:found])
        again = kept is not None
        kept = slice(found) if kept is None else kept
        record, starts, ends, kinds = record[kept], starts[kept], ends[kept], kinds[kept]
        why = self._why(data, record)
        states = record[:, 3]
        if why:
            states = states.copy()
            states[list(why)] = k.NOT_TEXT
        columns = tuple(
            strings(*k.gather_field(buffer, starts[:, i], ends[:, i], kinds[:, i], states, f.type != "STRING"))
            for i, f in enumerate(self.schema.fields)
        )
        spans = record[:, :2].tolist() if again else []
        text = pa.array([data[a:b].decode("utf-8", "backslashreplace") for a, b in spans], pa.string()) if again else None
        return Cut(data, record[:, 0], record[:, 1], record[:, 2], why, columns, text=text), taken, after

    def _without_headers(self, data: bytes, record: np.ndarray) -> np.ndarray | None:
        """Files that were written one behind the other have their header once more; None: they have not."""
        header = self._header
        if not header or header not in data:
            return None
        same = [data[a:b] == header for a, b in record[:, :2].tolist()]
        return np.flatnonzero(~np.array(same, np.bool_)) if any(same) else None

    def _why(self, data: bytes, record: np.ndarray) -> dict[int, str]:
        if self._trouble:
            return dict.fromkeys(range(len(record)), self._trouble)
        why = not_text(data, record[:, 0], record[:, 1])
        for i in np.flatnonzero(record[:, 3] != k.GOOD).tolist():
            why[i] = self._reason(int(record[i, 3]), int(record[i, 4]))
        return why

    def _reason(self, state: int, number: int) -> str:
        if state == k.UNCLOSED:
            return "a quote is never closed"
        if state == k.GARBAGE:
            return "there is text behind a closing quote; a quote inside quotes is written twice"
        names = self.layout.header or self.schema.names
        return f"it has {number} field{'s' * (number != 1)}, and {self.layout.fields} were expected: {', '.join(names)}"
