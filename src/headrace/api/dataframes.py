"""DataFrames: their columns, and which stream of a plan each one is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import QueryError
from headrace.plan.schema import Field, Schema

Frames = Mapping[str, Any]  # the name of a FrameSource -> a Spark DataFrame


def schema_of(frame: Any) -> Schema:
    """The columns of a Spark DataFrame, classic or Connect, streaming or static."""
    fields = getattr(getattr(frame, "schema", None), "fields", None)
    if fields is None:
        raise QueryError(f"expected a Spark DataFrame, got {type(frame).__name__}")
    return Schema(tuple(Field(f.name, f.dataType.simpleString()) for f in fields))


def merge_frames(*parts: Frames) -> dict[str, Any]:
    """All frames of several streams; one name is one frame."""
    found: dict[str, Any] = {}
    for part in parts:
        for name, frame in part.items():
            if found.setdefault(name, frame) is not frame:
                raise QueryError(f"two streams are called {name!r}", hint="give each a name: hr.stream(df, name='payments', ..)")
    return found
