"""The rows of a source, and why one is rejected: told apart in the JVM by a number, put into words in Python, for those alone."""

from __future__ import annotations

import functools
import json
import operator
import re
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.files.cuts import FILE
from headrace.files.opening import local_path
from headrace.files.reasons import json_reason, shown
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema

REJECTED = pa.schema([(name, pa.string()) for name in ("row", "reason", "source", "position", "file")] + [("line", pa.int64())])
_BREAK = re.compile(r"(\r\n|\r|\n)[ \t\r\n]*\Z")  # what lies between a record and the next


@dataclass(frozen=True, slots=True)
class Reason:
    """Rows for which the test is true are rejected. What was `found` is filled into the text at {}."""

    test: Column
    text: str
    found: Column | None = None

    def where(self, condition: Column) -> Reason:
        return Reason(condition & self.test, self.text, self.found)


@dataclass(frozen=True, slots=True)
class Rows:
    """The declared columns of a source, and what is known of every row beside them."""

    frame: DataFrame
    places: str  # how the place of a row is known: rows: in its file; lines: by its block; given; arrival
    reasons: tuple[Reason, ...] = ()  # to reject a row before anything is computed from it
    text: Column | None = None  # what the row said; None: it never was text
    line: Column | None = None
    file: Column | None = None  # None: not known, or told by a row of its own


@dataclass(frozen=True, slots=True)
class Words:
    """What the workers need to put a reason into words."""

    texts: tuple[str, ...]
    schema: Schema


def failed(test: Column, what: str, expr: Expr, schema: Schema) -> Reason:
    """An expression that cannot be used for a row, with the values that it was computed from."""
    used = [schema.field(name).name for name in expr.columns if schema.has(name)]
    if not used:
        return Reason(test, what)
    values = F.to_json(F.struct(*(F.col(f"`{n}`") for n in used)), {"ignoreNullFields": "false"})
    return Reason(test, f"{what}, with {{values}}", values)


def bad_column(reasons: list[Reason], rows: Rows, schema: Schema) -> Column:
    """Why a row is rejected, as JSON; NULL for one that is not.

    Numbers, not texts: those would make the plan larger, and Spark makes it anew for every batch.
    """
    if not reasons:
        return F.lit(None).cast("string")
    number, found = F.when(reasons[0].test, F.lit(0)), F.when(reasons[0].test, _found(reasons[0]))
    for i, reason in enumerate(reasons[1:], 1):
        number, found = number.when(reason.test, F.lit(i)), found.when(reason.test, _found(reason))
    text = F.to_json(F.struct(*(F.col(f"`{n}`") for n in schema.names))) if rows.text is None else rows.text
    line = F.lit(None).cast("bigint") if rows.line is None else rows.line
    file = F.lit(None).cast("string") if rows.file is None else rows.file
    told = F.struct(number.alias("w"), found.alias("f"), line.alias("l"), file.alias("p"), text.alias("t"))
    return F.when(functools.reduce(operator.or_, (r.test for r in reasons)), F.to_json(told))


def _found(reason: Reason) -> Column:
    return F.lit(None).cast("string") if reason.found is None else reason.found


class Rejects:
    """Puts the rejected rows of a task into words; knows which file it is reading."""

    def __init__(self, stream: str, words: Words) -> None:
        self.stream, self.words = stream, words
        self.file: str | None = None

    def rows(self, told: list[str], places: list[str]) -> list[dict[str, object]]:
        """The rows of `rejected(s)`, in the order they came; a row that only names the file is none."""
        found = []
        for text, place in zip(told, places, strict=True):
            about = json.loads(text)
            if about.get("f") == FILE and self.words.texts[about["w"]] == MALFORMED:
                self.file = about["t"]
                continue
            found.append(
                {
                    "row": _BREAK.sub("", about.get("t", "")), "reason": reason_of(about, self.words), "source": self.stream,
                    "position": place, "file": _local(about.get("p", self.file)), "line": about.get("l"),
                }
            )  # fmt: skip
        return found


def _local(path: str | None) -> str | None:
    return None if path is None else local_path(path) or path


MALFORMED = "{}"
VALUES = "{values}"
JSON_MISFIT = "{json}"


def reason_of(about: dict[str, object], words: Words) -> str:
    text, found = words.texts[int(str(about["w"]))], str(about.get("f", ""))
    if text == JSON_MISFIT:
        return json_reason(_BREAK.sub("", str(about.get("t", ""))), map(int, filter(None, found.split(","))), words.schema)
    if VALUES in text:
        values = json.loads(found)
        return text.replace(VALUES, ", ".join(f"{name} = {shown(value)}" for name, value in values.items()))
    return text.replace("{}", found if text == MALFORMED else repr(found))
