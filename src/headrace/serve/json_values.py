"""Values of JSON as the declared types, with the meaning that Spark's reader gives them when files are read.

A value comes as the text it has in the event, so that decimals are exact and a STRING is what was written. Where it does not
fit, the whole row is rejected; what of it could be read decides only on the words.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from headrace.errors import QueryError
from headrace.plan.schema import Field, Schema
from headrace.scalars.row.meaning import decimals, numbers, texts, times
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.types import RANGES, Type, type_of

Read = Callable[[bytes], Any]  # of a value that is not null

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_INTEGER = re.compile(rb"-?[0-9]+\Z")
_NUMBER = re.compile(rb"-?[0-9]")
_LONGEST = 1000  # characters of a number
_NOT_NUMBERS = {
    "NaN": float("nan"), "+INF": float("inf"), "+Infinity": float("inf"), "Infinity": float("inf"), "-INF": float("-inf"),
    "-Infinity": float("-inf"),
}  # fmt: skip
_DAYS = re.compile(r"[+-]?\d+\Z")
_FIRST_GREGORIAN = -141_427  # days; before it the numbers meant another calendar
_MOST_INT = 2**31 - 1


class Misfit(Exception):
    """A value is not of its type."""


class Partly(Misfit):
    """A nested value of which only a part fits."""


def reader_of(kind: Type) -> Read:
    """What reads a value of a type."""
    match kind.name:
        case "BOOLEAN":
            return _boolean
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _integer(kind.name)
        case "FLOAT" | "DOUBLE":
            return _float if kind.name == "FLOAT" else _double
        case "STRING":
            return _string
        case "DECIMAL":
            return _decimal(kind)
        case "DATE":
            return _date
        case "BINARY":
            return _binary
        case "ARRAY":
            return _array(kind)
        case "STRUCT":
            return _struct(kind)
        case "MAP" if kind.parts[0].name == "STRING":
            return _map(kind)
    raise QueryError(f"values of type {kind} are not read from an event", hint="declare a STRING and CAST it in the query")


def _boolean(raw: bytes) -> bool:
    if raw == b"true":
        return True
    if raw == b"false":
        return False
    raise Misfit


def _integer(name: str) -> Read:
    least, most = RANGES[name]
    top = 255 if name == "TINYINT" else most  # Jackson takes bytes without a sign, too

    def read(raw: bytes) -> int:
        if _INTEGER.match(raw) is None or len(raw) > _LONGEST:
            raise Misfit
        found = int(raw)
        if not least <= found <= top:
            raise Misfit
        return found if found <= most else found - 256

    return read


def _is_number(raw: bytes) -> bool:
    return _NUMBER.match(raw) is not None and len(raw) <= _LONGEST


def _double(raw: bytes) -> float:
    if _is_number(raw):
        found = float(raw)
        return found if found or _INTEGER.match(raw) is None else 0.0  # an integer has no zero below zero
    return _not_a_number(raw)


def _not_a_number(raw: bytes) -> float:
    found = _NOT_NUMBERS.get(_text(raw)) if raw[:1] == b'"' else None
    if found is None:
        raise Misfit
    return found


def _float(raw: bytes) -> float:
    if not _is_number(raw):
        return _not_a_number(raw)
    if _INTEGER.match(raw) is not None:
        found = int(raw)
        return numbers.single_of(found) if len(raw.lstrip(b"-")) < 19 else numbers.single(float(raw))
    near = float(raw)
    return texts.single_of_text(raw.decode(), near) if near - near == 0.0 and near else near


def _string(raw: bytes) -> str:
    return _text(raw) if raw[:1] == b'"' else raw.decode()


def _decimal(kind: Type) -> Read:
    fit = decimals.fitter(kind.precision, kind.scale)

    def read(raw: bytes) -> Decimal:
        try:
            if _is_number(raw):
                return fit(decimals.read(raw.decode()))
            if raw[:1] != b'"':
                raise Misfit
            text = _text(raw).replace(",", "")
            if text != text.strip():
                raise Misfit
            return fit(decimals.read(text))
        except Failed as error:
            raise Misfit from error

    return read


def _date(raw: bytes) -> int:
    if raw[:1] != b'"':
        raise Misfit
    text = _text(raw)
    try:
        return times.read_date(text)
    except Failed as error:
        if _DAYS.match(text) is None or not _FIRST_GREGORIAN <= int(text) <= _MOST_INT:
            raise Misfit from error
        return int(text)  # days, as Spark 1.5 wrote them


def _binary(raw: bytes) -> bytes:
    if raw[:1] != b'"':
        raise Misfit
    try:
        return b64decode("".join(sign for sign in _text(raw) if sign > " "), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Misfit from error


def _array(kind: Type) -> Read:
    inner = nullable(reader_of(kind.parts[0]))

    def read(raw: bytes) -> list[Any]:
        if raw[:1] != b"[":
            raise Misfit
        found, partly = [], False
        for one in _list(raw):
            try:
                found.append(inner(bytes(one)))
            except Partly:
                partly = True
        if partly:
            raise Partly
        return found

    return read


def _map(kind: Type) -> Read:
    inner = nullable(reader_of(kind.parts[1]))

    def read(raw: bytes) -> dict[str, Any]:
        if raw[:1] != b"{":
            raise Misfit
        found, worst = {}, None
        for key, one in _object(raw).items():
            try:
                found[key] = inner(bytes(one))
            except Misfit as error:
                worst = error if worst is None or isinstance(worst, Partly) else worst
        if worst is not None:
            raise worst
        return found

    return read


def _struct(kind: Type) -> Read:
    fields = Fields(kind.names, tuple(nullable(reader_of(part)) for part in kind.parts))

    def read(raw: bytes) -> tuple[Any, ...]:
        if raw[:1] != b"{":
            raise Misfit
        values, misfits = fields.read(_object(raw))
        if misfits:
            raise Partly
        return tuple(values)

    return read


def nullable(read: Read) -> Read:
    return lambda raw: None if raw == b"null" else read(raw)


class Fields:
    """The fields of an object, whose keys do not mind case where no other has theirs exactly."""

    def __init__(self, names: tuple[str, ...], readers: tuple[Read, ...]) -> None:
        self.fields = tuple(zip(names, readers, strict=True))
        self.names = frozenset(names)
        self.folded = {_fold(name): name for name in names}

    def read(self, found: dict[str, msgspec.Raw]) -> tuple[list[Any], list[tuple[int, Misfit]]]:
        """The values, and the numbers of those that do not fit."""
        if not self.names.issuperset(found):
            found = self._renamed(found)
        values: list[Any] = []
        misfits: list[tuple[int, Misfit]] = []
        for number, (name, read) in enumerate(self.fields):
            raw = found.get(name)
            value = None
            if raw is not None:
                try:
                    value = read(bytes(raw))
                except Misfit as error:
                    misfits.append((number, error))
            values.append(value)
        return values, misfits

    def _renamed(self, found: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        renamed = dict(found)
        for key, raw in found.items():
            name = self.folded.get(_fold(key))
            if name is not None and name not in found:
                renamed[name] = raw
        return renamed


_LOWER = {ord(sign): ord(sign) + 32 for sign in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _fold(name: str) -> str:
    """Without the case of ASCII letters."""
    return name.translate(_LOWER)


def time_reader(field: Field) -> Read:
    """A TIMESTAMP column is read as text first, and then as in a query; an hour without a date is none."""
    zoned = type_of(field.type).name == "TIMESTAMP"

    def read(raw: bytes) -> int:
        text = _string(raw)
        if 0 <= text.lstrip(" ").find(":") < 4:
            raise Misfit
        try:
            return times.read_time(text, zoned=zoned)
        except Failed as error:
            raise Misfit from error

    return read


def fields_of(schema: Schema) -> Fields:
    """The declared columns."""
    readers = []
    for field in schema.fields:
        kind = type_of(field.type)
        timed = kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ")
        try:
            readers.append(nullable(time_reader(field) if timed else reader_of(kind)))
        except QueryError as error:
            raise QueryError(f"column {field.name!r}: {error.message}", hint=error.hint) from error
    return Fields(schema.names, tuple(readers))


def text_of_value(raw: bytes) -> str:
    return _string(raw)


decode_object = _object
