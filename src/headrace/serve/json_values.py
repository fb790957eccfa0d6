"""Values of JSON as the declared types, with the meaning that Spark's reader gives them when files are read.

A value comes as the text it has in the event, so that decimals are exact and a STRING is what was written. Where it does not
fit, the whole row is rejected; what of it could be read decides only on the words.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import msgspec

from headrace.errors import QueryError
from headrace.plan.schema import Field, Schema
from headrace.scalars.row.meaning import decimals, digits, numbers, texts, times
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
_BASE64 = re.compile(r"(?:[\x00-\x20]*[A-Za-z0-9+/]{4})*[\x00-\x20]*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?[\x00-\x20]*\Z")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")
_DAYS = re.compile(r"[+-]?\d+\Z")
_FIRST_GREGORIAN = -141_427  # days; before it the numbers meant another calendar
_MOST_INT = 2**31 - 1


class Misfit(Exception):
    """A value is not of its type."""


class Ruined(Exception):
    """A text behind which Spark's parser does not find its way again: nothing of the row is read."""


class Partly(Misfit):
    """A nested value of which only a part fits."""


def reader_of(kind: Type, java: int) -> Read:
    """What reads a value of a type, as a Spark on this version of Java does."""
    match kind.name:
        case "BOOLEAN":
            return _boolean
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _integer(kind.name)
        case "FLOAT" | "DOUBLE":
            return _float if kind.name == "FLOAT" else _double
        case "STRING":
            return string_reader(java)
        case "DECIMAL":
            return _decimal(kind)
        case "DATE":
            return _date
        case "BINARY":
            return _binary
        case "ARRAY":
            return _array(kind, java)
        case "STRUCT":
            return _struct(kind, java)
        case "MAP" if kind.parts[0].name == "STRING":
            return _map(kind, java)
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


def string_reader(java: int) -> Read:
    """A STRING is a text, or any other value as Jackson writes it anew: numbers with a point as Java prints them."""
    shown = digits.digits_of(java)

    def read(raw: bytes) -> str:
        return _text(raw) if raw[:1] == b'"' else written(raw.decode(), shown)

    return read


def written(text: str, shown: digits.Digits) -> str:
    """A value of JSON without white space.

    >>> written('{ "a" : [ 1.50, -0 ] }', digits.digits_of(17))
    '{"a":[1.5,0]}'
    """
    return _anew(json.loads(text, object_pairs_hook=_Pairs, parse_float=_Float), shown)


class _Pairs(list[tuple[str, Any]]):
    """An object, with keys that are there twice."""


class _Float(float):
    """A number with a point or an exponent."""


def _anew(value: Any, shown: digits.Digits) -> str:
    match value:
        case _Pairs():
            return "{" + ",".join(f"{_quoted(key)}:{_anew(one, shown)}" for key, one in value) + "}"
        case list():
            return "[" + ",".join(_anew(one, shown) for one in value) + "]"
        case str():
            return _quoted(value)
        case float():
            text = digits.text_of(value, shown)
            return text if value - value == 0.0 else f'"{text}"'
        case None | bool():
            return json.dumps(value)
    return str(value)


_CONTROLS = {i: f"\\u{i:04X}" for i in range(32)} | {ord(s): f"\\{c}" for s, c in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)}


def _quoted(text: str) -> str:
    return f'"{text.translate(_CONTROLS)}"'


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
    text = _text(raw)
    if _BASE64.match(text) is not None:
        return b64decode("".join(sign for sign in text if sign > " "))
    alone = _NO_BASE64.search(text) is None and len(text.rstrip("=")) % 4 == 1  # the quote is taken for its second sign
    raise Ruined if alone else Misfit


def _array(kind: Type, java: int) -> Read:
    inner = nullable(reader_of(kind.parts[0], java))

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


def _map(kind: Type, java: int) -> Read:
    inner = nullable(reader_of(kind.parts[1], java))

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


def _struct(kind: Type, java: int) -> Read:
    fields = Fields(kind.names, tuple(nullable(reader_of(part, java)) for part in kind.parts))

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


def time_reader(field: Field, java: int) -> Read:
    """A TIMESTAMP column is read as text first, and then as in a query; an hour without a date is none."""
    zoned, string = type_of(field.type).name == "TIMESTAMP", string_reader(java)

    def read(raw: bytes) -> int:
        try:
            return times.read_time(string(raw), zoned=zoned)
        except Failed as error:
            raise Misfit from error

    return read


def fields_of(schema: Schema, java: int) -> Fields:
    """The declared columns."""
    readers = []
    for field in schema.fields:
        kind = type_of(field.type)
        timed = kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ")
        try:
            readers.append(nullable(time_reader(field, java) if timed else reader_of(kind, java)))
        except QueryError as error:
            raise QueryError(f"column {field.name!r}: {error.message}", hint=error.hint) from error
    return Fields(schema.names, tuple(readers))


def decode_object(data: bytes) -> dict[str, msgspec.Raw]:
    return _object(data)


class Quick:
    """Reads what fits as it is: an event whose keys are the declared ones, with values that cannot be mistaken."""

    def __init__(self, schema: Schema, java: int) -> None:
        kinds = [type_of(field.type) for field in schema.fields]
        fields = [(f"f{i}", _QUICK[k.name], _NOTHING if _QUICK[k.name] is msgspec.Raw else None) for i, k in enumerate(kinds)]
        names = {f"f{i}": name for i, name in enumerate(schema.names)}
        self.decode = msgspec.json.Decoder(msgspec.defstruct("Event", fields, rename=names, forbid_unknown_fields=True)).decode
        slow = fields_of(schema, java).fields
        self.after = [
            (i, _later(k, read)) for i, (k, (_, read)) in enumerate(zip(kinds, slow, strict=True)) if k.name not in _READY
        ]

    def read(self, data: bytes) -> tuple[Any, ...] | None:
        """The values; None where it takes a closer look."""
        if len(data) > _LONGEST:  # of which all might be one number
            return None
        try:
            values = msgspec.structs.astuple(self.decode(data))
            if not self.after:
                return values
            found = list(values)
            for place, read in self.after:
                value = found[place]
                if value is not None:
                    found[place] = read(value)
            return tuple(found)
        except (msgspec.DecodeError, Misfit, Ruined, Failed, UnicodeDecodeError):
            return None


_NOTHING = msgspec.Raw(b"null")
_READY: dict[str, Any] = {
    "STRING": str | None, "BOOLEAN": bool | None, "DOUBLE": float | None,
    **{name: Annotated[int, msgspec.Meta(ge=least, le=most)] | None for name, (least, most) in RANGES.items()},
}  # fmt: skip
_QUICK: defaultdict[str, Any] = defaultdict(lambda: msgspec.Raw, {**_READY, "TIMESTAMP": str | None, "TIMESTAMP_NTZ": str | None})


def _later(kind: Type, read: Read) -> Callable[[Any], Any]:
    """What is done with a text of a time, or with any other value that is still as it was written."""
    if kind.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return lambda raw: read(bytes(raw))
    return partial(times.read_time, zoned=kind.name == "TIMESTAMP")
