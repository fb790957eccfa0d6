"""Which values the rows of a stage have: a vector of another program may have them in another form."""

from __future__ import annotations

from typing import Any

from headrace.evolution.names import Names
from headrace.program.stage import Stage, Vector, VectorKind

WORDS = (VectorKind.DOUBLE, VectorKind.INT, VectorKind.ORDERED, VectorKind.BITS)  # one value of 64 bits, read in several ways


def held_as(old: Stage[Any], old_names: Names, kind: VectorKind, name: str, value: str) -> int | None:
    """The vector of an old stage that has the values of one of a new stage, perhaps in another form; None: it has none."""
    if name in old_names.vectors:
        return old_names.vectors.index(name)
    alike = (i for i, v in enumerate(old.vectors) if old_names.values[i] == value and v.kind in WORDS and _exact(old, v))
    return next(alike, None) if kind in WORDS else None


def _exact(stage: Stage[Any], vector: Vector) -> bool:
    """Whether a form has all of a value: that which compares floating-point numbers has lost the sign of zero."""
    return vector.kind is not VectorKind.ORDERED or not floating(stage, vector)


def floating(stage: Stage[Any], vector: Vector) -> bool:
    """Whether the values of a vector are floating-point numbers."""
    return vector.input is not None and stage.inputs[vector.input].type in ("FLOAT", "DOUBLE")
