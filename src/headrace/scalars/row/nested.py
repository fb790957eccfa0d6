"""Values inside of values: fields of a STRUCT, elements of an ARRAY, values of a MAP."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from headrace.errors import QueryError, unknown
from headrace.scalars.row.meaning import numbers
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.parts import Part, call, cast, strict
from headrace.scalars.row.types import INT, STRING, Type


def field(part: Part, name: str) -> Part:
    """`s.name`: names do not mind case."""
    if part.type.name != "STRUCT":
        raise QueryError(f"{name!r} is asked of a {part.type}, which has no fields", hint="fields are those of a STRUCT")
    lowered = [n.lower() for n in part.type.names]
    if name.lower() not in lowered:
        raise QueryError(unknown("field", name, part.type.names))
    place = lowered.index(name.lower())
    return strict(part.type.parts[place], [part], lambda _, xs: f"{xs[0]}[{place}]", nulls=True)


def element(inside: Part, key: Part, written: exp.Expr, java: int) -> Part:
    """`xs[i]`, counted from 0; `m[key]`, NULL if it is not there; `s['name']`."""
    match inside.type.name:
        case "STRUCT" if isinstance(key.literal, str):
            return field(inside, key.literal)
        case "ARRAY" if key.type.is_integer:
            return call(inside.type.parts[0], _at, [inside, key], nulls=True)
        case "MAP":
            return _looked_up(inside, key, java)
    raise QueryError(f"a {inside.type} has no element {written.sql(dialect='spark')}", hint="[..] is for ARRAY and MAP")


def element_at(inside: Part, key: Part, java: int, *, safe: bool) -> Part:
    """ELEMENT_AT, counted from 1, or below 0 from the end."""
    if inside.type.name == "MAP":
        return _looked_up(inside, key, java)
    if inside.type.name != "ARRAY" or not key.type.is_integer or key.type.name == "BIGINT":
        raise QueryError(f"ELEMENT_AT of {inside.type} and {key.type} is not offered for one row", hint="CAST the number to INT")
    return call(inside.type.parts[0], _tried_from_one if safe else _from_one, [inside, key], nulls=True)


def _looked_up(inside: Part, key: Part, java: int) -> Part:
    kind = inside.type.parts[0]
    if kind != STRING and not kind.is_integer:
        raise QueryError(f"values of {inside.type} are not looked up here", hint="keys are a STRING or a whole number")
    if key.type != kind and not (key.type.is_integer and kind.is_integer):
        raise QueryError(f"the keys of {inside.type} are no {key.type}", hint=f"CAST it to {kind}")
    return call(inside.type.parts[1], dict.get, [inside, cast(key, kind, java)], nulls=True)


def _at(values: list[Any], place: int) -> Any:
    """Of a BIGINT Java takes the lower half."""
    place = numbers.wrapped(place, 32)
    if not 0 <= place < len(values):
        raise Failed(f"there is no element {place}, counted from 0, of {len(values)}")
    return values[place]


def get(values: list[Any], place: int) -> Any:
    return values[place] if 0 <= place < len(values) else None


def _from_one(values: list[Any], place: int) -> Any:
    if place == 0 or abs(place) > len(values):
        raise Failed(f"there is no element {place}, counted from 1, of {len(values)}")
    return values[place - 1 if place > 0 else place]


def _tried_from_one(values: list[Any], place: int) -> Any:
    if place == 0:
        raise Failed("elements are counted from 1")
    return values[place - 1 if place > 0 else place] if abs(place) <= len(values) else None


def contains(inside: Part, value: Part) -> Part:
    """ARRAY_CONTAINS: NULL where it is not there and something else is NULL."""
    kind = inside.type.parts[0] if inside.type.name == "ARRAY" else None
    alike = kind is not None and (kind == value.type or (kind.is_integer and value.type.is_integer))
    if kind is None or not alike or kind.is_nested:
        hint = "CAST the value to what the array has"
        raise QueryError(f"ARRAY_CONTAINS of {inside.type} and {value.type} is not offered for one row", hint=hint)
    return call(Type("BOOLEAN"), _has_float if kind.is_float else _has, [inside, value], nulls=True)


def _has(values: list[Any], value: Any) -> bool | None:
    found = any(v is not None and v == value for v in values)
    return True if found else None if None in values else False


def _has_float(values: list[Any], value: float) -> bool | None:
    found = any(v is not None and numbers.same(v, value) for v in values)
    return True if found else None if any(v is None for v in values) else False


def size(inside: Part) -> Part:
    if inside.type.name not in ("ARRAY", "MAP"):
        raise QueryError(f"SIZE takes an ARRAY or a MAP, and this is a {inside.type}")
    return call(INT, len, [inside])
