"""JSON: an object a line, objects one behind the other, or an array of them; keys do not mind case, as columns do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headrace.files.cuts import FOLDED, Cut, not_text, strings
from headrace.files.formats import BOM, LOOK, format_of, json_value
from headrace.kernels.text import json_records as k
from headrace.plan.schema import Schema


class JsonCutter:
    """Cuts one file."""

    def __init__(self, schema: Schema) -> None:
        self.columns: tuple[str, ...] = (FOLDED,)
        self.names = names_of(schema)
        self.lines = True
        self.unreadable = ""
        self._inside = 0  # whether in an array

    def begin(self, head: bytes) -> tuple[int, int]:
        kind = format_of(head[:LOOK])
        if kind not in ("csv", "json", None):
            self.unreadable = f"the file is {kind}, and is read as JSON"
        start = len(BOM) if head.startswith(BOM) else 0
        self.lines = lines_of_json(head[start:])
        return start, 0

    def cut(self, data: bytes, line: int, *, final: bool, most: int | None = None) -> tuple[Cut, int, int]:
        if most is None:
            most = 1 + (data.count(b"\n") if self.lines else data.count(b"{") + data.count(b",") + data.count(b"\n"))
        record, buffer = np.empty((most, 4), np.int64), np.frombuffer(data, np.uint8)
        if self.lines:
            found, taken, line = k.split_lines(buffer, 0, final, line, record)
        else:
            found, taken, self._inside, line = k.split_values(buffer, 0, final, self._inside, line, record)
        record = record[:found]
        why = not_text(data, record[:, 0], record[:, 1]) | self._why(buffer, record)
        folded = self._folded(buffer, record, why)
        text = None
        if not self.lines:
            text = strings(*k.gather_spans(buffer, record[:, 0], record[:, 1]))
        return Cut(data, record[:, 0], record[:, 1], record[:, 2], why, (folded,), text=text), taken, line

    def _why(self, buffer: np.ndarray, record: np.ndarray) -> dict[int, str]:
        """What is no object, or not whole."""
        first = buffer[record[:, 0]]
        bad = np.flatnonzero((first != k.OPEN_OBJECT) | (record[:, 3] != k.GOOD)).tolist()
        return {i: "a bracket or quote is never closed" if record[i, 3] else "it is not a JSON object" for i in bad}

    def _folded(self, buffer: np.ndarray, record: np.ndarray, why: dict[int, str]) -> pa.Array:
        changed, out = np.zeros(len(record), np.bool_), buffer.copy()
        if not k.fold_keys(buffer, out, record, *self.names, changed):
            return pa.nulls(len(record), pa.string())
        changed[list(why)] = False
        return strings(*k.gather_spans(out, record[:, 0], np.where(changed, record[:, 1], record[:, 0])), changed)


def lines_of_json(head: bytes) -> bool:
    """Whether every line of a file that begins so is a value; else they are cut by their brackets."""
    text = head.lstrip()
    if text.startswith(b"["):
        return False
    first = text.split(b"\n", 1)[0]
    if not first.startswith(b"{") or json_value(first) is not None:
        return True
    record = np.empty((1, 4), np.int64)
    found = k.split_values(np.frombuffer(text, np.uint8), 0, True, 0, 1, record)[0]
    return not (found and record[0, 3] == k.GOOD and json_value(text[: record[0, 1]]) is not None)


def names_of(schema: Schema) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The names in a schema, as the tree that `fold_keys` walks along: kinds, children, first fields, fields, text."""
    tree = _Tree()
    tree.struct([(f.name, exp.DataType.build(f.type, dialect="spark")) for f in schema.fields])
    return (
        np.array(tree.kinds, np.int64), np.array(tree.childs, np.int64), np.array(tree.first, np.int64).reshape(-1, 2),
        np.array(tree.field, np.int64).reshape(-1, 3), np.frombuffer(tree.text, np.uint8),
    )  # fmt: skip


class _Tree:
    """Grows by types."""

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.childs: list[int] = []
        self.first: list[tuple[int, int]] = []
        self.field: list[tuple[int, int, int]] = []
        self.text = b""

    def _node(self, kind: int) -> int:
        self.kinds.append(kind)
        self.childs.append(-1)
        self.first.append((0, 0))
        return len(self.kinds) - 1

    def struct(self, fields: list[tuple[str, exp.Expr]]) -> int:
        node, start = self._node(k.STRUCT), len(self.field)
        self.first[node] = (start, len(fields))
        self.field += [(0, 0, -1)] * len(fields)
        for i, (name, kind) in enumerate(fields):
            at = len(self.text)
            self.text += name.encode()
            end = len(self.text)
            self.field[start + i] = (at, end, self._of(kind))
        return node

    def _of(self, kind: exp.Expr) -> int:
        if kind.is_type("struct"):
            return self.struct([(f.name, f.args["kind"]) for f in kind.expressions])
        if kind.is_type("array", "map"):
            node = self._node(k.ARRAY if kind.is_type("array") else k.MAP)
            self.childs[node] = self._of(kind.expressions[-1])
            return node
        return self._node(k.LEAF)
