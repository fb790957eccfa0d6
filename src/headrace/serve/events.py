"""A posted event: from its JSON to values and a time, or to why it is rejected, as `headrace run` reads it from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headrace.errors import QueryError
from headrace.files.reasons import json_reason, shown
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import Stream
from headrace.scalars.row.compiled import JAVA, ExpressionFailed, compile_row, compiled
from headrace.scalars.row.meaning import calendar
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.types import type_of
from headrace.serve.json_values import Fields, Misfit, Partly, Quick, Ruined, decode_object, fields_of, string_reader
from headrace.serve.replies import spark_json

MIN_TIME = -62_135_596_800_000_000  # 0001-01-01
MAX_TIME = 253_402_300_799_999_999  # 9999-12-31


class Event(NamedTuple):
    """The declared columns, the time, and what was asked for besides. No dataclass: one is made for every event."""

    values: tuple[Any, ...]
    time: int
    computed: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Punctuation:
    """No event: nothing up to this time comes any more."""

    promise: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """No event, and why."""

    reason: str


Read = Callable[[bytes, int], Event | Punctuation | Rejected]
Made = Callable[[int], Event | Punctuation]


def reader(stream: Stream, exprs: Sequence[Expr] = (), guards: Mapping[Expr, Expr] | None = None, *, java: int = JAVA) -> Read:
    """What reads one event of a stream: of its JSON, and when it came.

    `exprs` are computed for every event, in this order; where one fails, the event is rejected. One that only some queries use
    is computed as its guard, which is NULL where none does.
    """
    dated = (stream.timestamp,) if stream.timestamp is not None else ()
    compute = compile_row([*((guards or {}).get(e, e) for e in exprs), *dated], stream.schema, java=java)
    at = _Clause.of(stream, "timestamp", "TIMESTAMP BY", stream.timestamp, java)
    upto = _Clause.of(stream, "punctuation", "PUNCTUATED BY", stream.punctuation, java)
    return _Reader(stream.schema, Quick(stream.schema, java).read, fields_of(stream.schema, java), compute, (*exprs, *dated),
                   at, upto, java)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Clause:
    """An expression that is a time: what computes it, and what makes microseconds of it; None where they do not fit."""

    what: str
    expr: Expr
    compute: Callable[[Sequence[Any]], tuple[Any, ...]]
    micros: Callable[[Any], int | None]

    @staticmethod
    def of(stream: Stream, what: str, clause: str, expr: Expr | None, java: int) -> _Clause | None:
        if expr is None:
            return None
        found = compiled([expr], stream.schema, java=java)
        kind, unit = found.types[0], stream.timestamp_unit
        if kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return _Clause(what, expr, found.function, lambda value: value)
        if kind.name == "DATE":
            return _Clause(what, expr, found.function, _midnight)
        if kind.is_integer:
            return _Clause(what, expr, found.function, lambda value: value * unit)
        hint = "give a TIMESTAMP, a DATE or an integer"
        raise QueryError(f"{clause} {expr} is a {kind}", where=f"stream {stream.name!r}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Reader:
    schema: Schema
    quick: Callable[[bytes], tuple[Any, ...] | None]
    fields: Fields
    compute: Callable[[Sequence[Any]], tuple[Any, ...]]
    computed: tuple[Expr, ...]
    at: _Clause | None
    upto: _Clause | None
    java: int

    def __call__(self, data: bytes, now: int) -> Event | Punctuation | Rejected:
        values = self.quick(data) or self._slowly(data)
        if isinstance(values, Rejected):
            return values
        try:
            if self.upto is not None and (promise := self.upto.compute(values)[0]) is not None:
                return self._time(self.upto, promise, values, Punctuation)
        except ExpressionFailed as error:
            return self._failed(error.expr, values)
        try:
            computed = self.compute(values)
        except ExpressionFailed as error:
            return self._failed(self.computed[error.number], values)
        if self.at is None:
            return Event(values, now, computed)
        given = computed[-1]
        if given is None:
            beside = "" if self.at.expr.as_column else self._with(self.at.expr, values)
            return Rejected(f"the timestamp {self.at.expr} is NULL{beside}")
        return self._time(self.at, given, values, lambda time: Event(values, time, computed[:-1]))

    def _time(self, clause: _Clause, value: Any, values: tuple[Any, ...], made: Made) -> Event | Punctuation | Rejected:
        time = clause.micros(value)
        if time is None or not MIN_TIME <= time <= MAX_TIME:
            return Rejected(f"the {clause.what} {clause.expr} is outside years 1 to 9999{self._with(clause.expr, values)}")
        return made(time)

    def _failed(self, expr: Expr, values: tuple[Any, ...]) -> Rejected:
        return Rejected(f"the expression {expr} failed{self._with(expr, values)}")

    def _with(self, expr: Expr, values: tuple[Any, ...]) -> str:
        """The values that an expression was computed from, as Spark would write them."""
        places = [self.schema.names.index(self.schema.field(name).name) for name in expr.columns if self.schema.has(name)]
        told = []
        for place in dict.fromkeys(places):
            field = self.schema.fields[place]
            told.append(f"{field.name} = {shown(spark_json(type_of(field.type), values[place], self.java))}")
        return f", with {', '.join(told)}" if told else ""

    def _slowly(self, data: bytes) -> tuple[Any, ...] | Rejected:
        """The declared columns; keys that are not declared do not matter."""
        try:
            data.decode()
            values, misfits = self.fields.read(decode_object(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Rejected(_not_json(data, self.schema, error))
        except Ruined:
            return Rejected(json_reason(data.decode(), range(len(self.schema.fields)), self.schema))
        return self._misfit(data, misfits) if misfits else tuple(values)

    def _misfit(self, data: bytes, misfits: list[tuple[int, Misfit]]) -> Rejected:
        """A run reads times by themselves: they are only told of where everything else fits."""
        times = [number for number, _ in misfits if self.schema.fields[number].type.startswith("TIMESTAMP")]
        if len(times) < len(misfits):
            alone = [number for number, why in misfits if not isinstance(why, Partly)]
            return Rejected(json_reason(data.decode(), alone, self.schema))
        field = self.schema.fields[times[0]]
        given = {key.lower(): raw for key, raw in decode_object(data).items()}
        text = string_reader(self.java)(bytes(given[field.name.lower()]))
        return Rejected(f"column {field.name!r} is {field.type}, and here is {text!r}")


def _midnight(day: int) -> int | None:
    try:
        return calendar.midnight(day)
    except Failed:
        return None


def _not_json(data: bytes, schema: Schema, error: Exception) -> str:
    try:
        text = data.decode().strip()
    except UnicodeDecodeError as wrong:
        return f"it is not UTF-8: byte {wrong.start + 1} is 0x{data[wrong.start]:02x}"
    if not text.startswith("{"):
        return "it is not a JSON object"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json_reason(text, (), schema)
    return f"it is not JSON: {error}"  # of what only some call so, such as NaN
