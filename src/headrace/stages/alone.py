"""Queries that have stages of their own: which these are, and the script as far as they need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.stages.lower import Lowered


def stages_of(lowered: Lowered, queries: Iterable[str]) -> tuple[int, ...]:
    """The stages of some queries, with those whose results they read."""
    wanted, found = set(queries), set[int]()
    while more := {i for i, stage in enumerate(lowered.stages) if wanted & set(stage.queries)} - found:
        found |= more
        wanted |= {source.name for i in more for source in lowered.stages[i].sources if source.follows}
    return tuple(sorted(found))


def part_of(lowered: Lowered, stages: tuple[int, ...]) -> Lowered:
    """A script with some of its stages, and what these read."""
    own = tuple(lowered.stages[i] for i in stages)
    asked, read = {q for s in own for q in s.queries}, {source.name for s in own for source in s.sources}
    return replace(
        lowered, streams=tuple(s for s in lowered.streams if s.name in read), stages=own,
        finishes=tuple(f for f in lowered.finishes if f.query.name in asked),
        feeds=tuple(f for f in lowered.feeds if f.query.name in asked),
    )  # fmt: skip
