"""A whole script as data: what a checkpoint remembers of the program that wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.plan.query import Emit
from headrace.program.stage import Stage


@dataclass(frozen=True, slots=True)
class Asked:
    """A query: what it is called, when it speaks, and what it means, written out."""

    name: str
    emit: Emit
    meaning: str
    apart: str = ""  # what its stages are called, if they are its own


@dataclass(frozen=True, slots=True)
class ScriptProgram:
    """All that state depends on: the stages, what they give to each other, and the queries; then how they run."""

    stages: tuple[Stage[Any], ...]
    feeds: tuple[tuple[str, str], ...] = ()  # name and meaning
    queries: tuple[Asked, ...] = ()  # those that sinks wait for, in order
    buckets: int = 0
    noted: bool = False  # whether state says of every key in which bucket it belongs; else buckets cannot become more or fewer
    sources: tuple[str, ...] = ()  # what Spark reads, in order
    spools: tuple[str, ...] = ()  # the streams whose rows these are, which may be fewer: one can be read by time and by arrival
