"""Programs as text that lasts: what a checkpoint says of the program whose state it has.

JSON. A part is an object that names its class in `is`, with its fields by name; a choice names its class and which it is. Whoever
reads a text of another version finds fields that it does not have, or lacks some: those take their default, if they have one.
"""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from headrace import program as programs
from headrace.errors import StateError
from headrace.plan import expr, patterns, query, schema, stream, triggers, windows
from headrace.program.script import ScriptProgram

OF_PLANS = (expr, query, schema, stream, windows, triggers, patterns, import_module("headrace.plan.aggregates.function"))
OF_PROGRAMS = (import_module(f"{programs.__name__}.{m.name}") for m in iter_modules(programs.__path__) if m.name != "written")
MODULES = (*OF_PLANS, *OF_PROGRAMS)
CLASS, CHOICE = "is", "which"


@cache
def _classes() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in MODULES:
        for name, cls in vars(module).items():
            if isinstance(cls, type) and cls.__module__ == module.__name__ and _is_part(cls):
                assert found.setdefault(name, cls) is cls, f"two classes are called {name}"
    return found


def _is_part(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) or issubclass(cls, Enum)


def write(program: object) -> str:
    """One line of JSON: a whole program, or a part of one."""
    return json.dumps(_written(program), separators=(",", ":"))


def read(text: str) -> ScriptProgram:
    """What was written; a `StateError` that says what is not understood."""
    try:
        found = _read(json.loads(text))
    except ValueError as error:
        raise StateError(f"the program of the checkpoint cannot be read: {error}", hint=_HINT) from error
    if not isinstance(found, ScriptProgram):
        raise StateError("the program of the checkpoint cannot be read: it is none", hint=_HINT)
    return found


_HINT = "run the version of Headrace that wrote it, or name a new directory with --checkpoint"


def _written(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_written(v) for v in value]
        case Enum():
            return {CLASS: _name(value), CHOICE: value.name}
        case _ if dataclasses.is_dataclass(value):
            return {CLASS: _name(value), **{f.name: _written(getattr(value, f.name)) for f in dataclasses.fields(value)}}
    raise AssertionError(f"a program has no {type(value).__name__}: {value!r}")


def _name(value: Any) -> str:
    name = type(value).__name__
    assert _classes().get(name) is type(value), f"{name} is not among the classes of programs"
    return name


def _read(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_read, value))
        case dict():
            return _part(value)
    return value


def _part(about: dict[str, Any]) -> Any:
    name = about.get(CLASS)
    cls = _classes().get(str(name))
    if cls is None:
        raise StateError(f"the program of the checkpoint has a {name!r}, which this version does not know", hint=_HINT)
    if issubclass(cls, Enum):
        if about[CHOICE] not in cls.__members__:
            raise StateError(f"the program of the checkpoint has {name} {about[CHOICE]!r}, which this version lacks", hint=_HINT)
        return cls[about[CHOICE]]
    assert dataclasses.is_dataclass(cls)
    known = {f.name: f for f in dataclasses.fields(cls)}
    given = {key: _read(v) for key, v in about.items() if key != CLASS}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise StateError(f"the program of the checkpoint has {name}.{unknown[0]}, which this version does not know", hint=_HINT)
    lacks = [f.name for f in known.values() if f.name not in given and _needed(f)]
    if lacks:
        raise StateError(f"the program of the checkpoint has a {name} without {lacks[0]}, which this version needs", hint=_HINT)
    return cls(**given)


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
