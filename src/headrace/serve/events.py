"""A posted event: from its JSON to values and a time, or to why it is rejected, as `headrace run` reads it from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.errors import QueryError
from headrace.files.reasons import json_reason, shown
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import Stream
from headrace.scalars.row.compiled import JAVA, ExpressionFailed, compile_row, compiled
from headrace.scalars.row.meaning import calendar
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.meaning.numbers import LEAST, MOST
from headrace.scalars.row.types import Type, type_of
from headrace.serve.json_values import Fields, Partly, Quick, Ruined, decode_object, fields_of, string_reader
from headrace.serve.replies import spark_json

MIN_TIME = -62_135_596_800_000_000  # 0001-01-01
MAX_TIME = 253_402_300_799_999_999  # 9999-12-31
Times = Callable[[Any], int | None]


@dataclass(frozen=True, slots=True)
class Event:
    """The declared columns, the time, and what was asked for besides."""

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


def reader(stream: Stream, exprs: Sequence[Expr] = (), guards: Mapping[Expr, Expr] | None = None, *, java: int = JAVA) -> Read:
    """What reads one event of a stream: of its JSON, and when it came.

    `exprs` are computed for every event, in this order; where one fails, the event is rejected. One that only some queries use
    is computed as its guard, which is NULL where none does.
    """
    fields, schema = fields_of(stream.schema, java), stream.schema
    quick = Quick(schema, java).read
    said = _clause(stream, "PUNCTUATED BY", stream.punctuation, java)
    at = _clause(stream, "TIMESTAMP BY", stream.timestamp, java)
    tried = [(guards or {}).get(e, e) for e in exprs]
    compute = compile_row([*tried, *([stream.timestamp] if stream.timestamp is not None else [])], schema, java=java)
    named = [*exprs, *([stream.timestamp] if stream.timestamp is not None else [])]
    known = compiled([stream.punctuation], schema, java=java).function if stream.punctuation is not None else None

    def read(data: bytes, now: int) -> Event | Punctuation | Rejected:
        values = quick(data)
        if values is None:
            slowly = _values(data, fields, schema, java)
            if isinstance(slowly, Rejected):
                return slowly
            values = slowly
        try:
            if known is not None and stream.punctuation is not None and said is not None:
                promise = known(values)[0]
                if promise is not None:
                    return _punctuation(said(promise), stream.punctuation, values, schema, java)
            computed = compute(values)
        except ExpressionFailed as error:
            failed = stream.punctuation if error.expr == stream.punctuation and error.number == 0 else named[error.number]
            assert failed is not None, "one of those that were computed"
            return Rejected(f"the expression {failed} failed{_with(failed, values, schema, java)}")
        if at is None or stream.timestamp is None:
            return Event(values, now, computed)
        given = computed[-1]
        if given is None:
            beside = "" if stream.timestamp.as_column else _with(stream.timestamp, values, schema, java)
            return Rejected(f"the timestamp {stream.timestamp} is NULL{beside}")
        time = at(given)
        if time is None or not MIN_TIME <= time <= MAX_TIME:
            return Rejected(_outside("timestamp", stream.timestamp, values, schema, java))
        return Event(values, time, computed[:-1])

    return read


def _values(data: bytes, fields: Fields, schema: Schema, java: int) -> tuple[Any, ...] | Rejected:
    """The declared columns; keys that are not declared do not matter."""
    try:
        data.decode()
        values, misfits = fields.read(decode_object(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Rejected(_not_json(data, schema, error))
    except Ruined:
        return Rejected(json_reason(data.decode(), range(len(schema.fields)), schema))
    if not misfits:
        return tuple(values)
    text = data.decode()
    times = [number for number, _ in misfits if schema.fields[number].type.startswith("TIMESTAMP")]
    if len(times) < len(misfits):
        return Rejected(json_reason(text, [number for number, why in misfits if not isinstance(why, Partly)], schema))
    field = schema.fields[times[0]]
    given = {key.lower(): raw for key, raw in decode_object(data).items()}
    shown_text = string_reader(java)(bytes(given[field.name.lower()]))
    return Rejected(f"column {field.name!r} is {field.type}, and here is {shown_text!r}")


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


def _clause(stream: Stream, clause: str, expr: Expr | None, java: int) -> Times | None:
    """What makes microseconds of the value of an expression; None where they do not fit."""
    if expr is None:
        return None
    kind = compiled([expr], stream.schema, java=java).types[0]
    if kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return lambda value: value
    if kind.name == "DATE":
        return _midnight
    if not kind.is_integer:
        hint = "give a TIMESTAMP, a DATE or an integer"
        raise QueryError(f"{clause} {expr} is a {kind}", where=f"stream {stream.name!r}", hint=hint)
    unit = stream.timestamp_unit
    return lambda value: value * unit if LEAST <= value * unit <= MOST else None


def _midnight(day: int) -> int | None:
    try:
        return calendar.midnight(day)
    except Failed:
        return None


def _punctuation(promise: int | None, expr: Expr, values: tuple[Any, ...], schema: Schema, java: int) -> Punctuation | Rejected:
    if promise is None or not MIN_TIME <= promise <= MAX_TIME:
        return Rejected(_outside("punctuation", expr, values, schema, java))
    return Punctuation(promise)


def _outside(what: str, expr: Expr, values: tuple[Any, ...], schema: Schema, java: int) -> str:
    return f"the {what} {expr} is outside years 1 to 9999{_with(expr, values, schema, java)}"


def _with(expr: Expr, values: tuple[Any, ...], schema: Schema, java: int) -> str:
    """The values that an expression was computed from, as Spark would write them."""
    used = [schema.field(name).name for name in expr.columns if schema.has(name)]
    told = []
    for name in dict.fromkeys(used):
        place = schema.names.index(name)
        told.append(f"{name} = {shown(spark_json(_type(schema, place), values[place], java))}")
    return f", with {', '.join(told)}" if told else ""


def _type(schema: Schema, place: int) -> Type:
    return type_of(schema.fields[place].type)
