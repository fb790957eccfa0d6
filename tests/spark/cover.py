"""What a script asks of the engine, part by part, and few scripts that together ask for all of it.

The meaning of every case is tested without Spark, with the same stages and processors; on Spark a case proves something if it has
a kind of step, clause, function or type that no other has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from headrace.plan.expr import Expr
from headrace.plan.query import Script
from headrace.stages.lower import lower

Name = TypeVar("Name")
Feature = tuple[str, object]


def features_of(script: Script) -> frozenset[Feature]:
    """All kinds of things in its plan, and in the stages it becomes: each with where it stands."""
    return frozenset(_features(script, "script") | _features(lower(script), "stages"))


def cover(features: Mapping[Name, frozenset[Feature]]) -> list[Name]:
    """Few that have all features together: always the one that adds most."""
    left = set().union(*features.values())
    chosen = []
    while left:
        best = max(features, key=lambda name: len(features[name] & left))
        chosen.append(best)
        left -= features[best]
    return chosen


def _features(thing: Any, where: str) -> set[Feature]:
    """Which classes, choices and clauses; not which numbers and names."""
    match thing:
        case Expr():
            return {("expression", type(node).__name__) for node in thing.tree.walk()}
        case Enum() | bool():
            return {(where, thing)}
        case str() if where.endswith(".type"):
            return {(where, thing)}
        case tuple() | list() | frozenset():
            own = {(where, "many")} if len(thing) > 1 else set()
            return own.union(*(_features(part, where) for part in thing))
        case dict():
            return set().union(*(_features(part, where) for part in thing.values()))
    return _of_fields(thing, where) if is_dataclass(thing) else set()


def _of_fields(thing: Any, where: str) -> set[Feature]:
    kind = type(thing).__name__
    out: set[Feature] = {(where, kind)}
    for field in fields(thing):
        value = getattr(thing, field.name)
        if value != field.default:
            out.add((f"{kind}.{field.name}", "given"))
        out |= _features(value, f"{kind}.{field.name}")
    return out
