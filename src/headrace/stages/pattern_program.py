"""Sequence patterns as data: what runs in a bucket.

A *word* is a value that conditions between events read of one event: an int64 and whether it is NULL. Word k of place p is
column `w{p}_{k}` of conditions, and comes from a vector of the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.expr import Expr
from headrace.plan.query import Emit

ANY_ROW = -1  # in the place of a negated place: every row forbids


@dataclass(frozen=True, slots=True)
class Word:
    """A value of an event that conditions read."""

    vector: int
    type: str


@dataclass(frozen=True, slots=True)
class PlaceProgram:
    """One place of the sequence, positive or negated."""

    name: str
    live: int  # the vector that says which rows fit here by themselves
    sources: tuple[int, ...]  # of the stage, whose rows it takes
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition between events: an expression over words, true in every result."""

    expr: Expr
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """What must not lie in a gap: a row that fits at `place` and, taken there, meets the conditions.

    `gap` is how many positive places stand before it. A positive place is named where the first that fits is taken (NEXT), and
    ANY_ROW where nothing may lie between (STRICT); there, rows that fit at place `unless` do not count.
    """

    place: int
    gap: int
    conditions: tuple[int, ...] = ()
    unless: int | None = None
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequencing:
    """What all queries of a stage with one pattern share."""

    places: tuple[PlaceProgram, ...]
    positive: tuple[int, ...]  # places
    negations: tuple[Negation, ...]
    conditions: tuple[Condition, ...]  # by number in `negations` and below
    checked: tuple[int, ...]  # conditions between positive places
    equal: tuple[tuple[tuple[int, int], ...], ...]  # classes of (place, word) that are equal in every result
    within: int
    key: int | None  # the table that numbers what is equal in all events
    slack: int | None = None  # K: rows wait until the largest time of all sources is so far past them
    waits: tuple[int, ...] = ()  # which of the positive places have rows that may be taken back

    @property
    def trailing(self) -> bool:
        """Whether a negation ends the pattern, so that a result is known only when its window is over."""
        return any(n.gap == len(self.positive) for n in self.negations)


@dataclass(frozen=True, slots=True)
class PatternColumn:
    """A column of a result: the vector that holds it in the row at a place."""

    name: str
    type: str
    place: int
    vector: int


@dataclass(frozen=True, slots=True)
class PatternProgram:
    """The rows of one query that are results of the pattern of its stage."""

    query: str
    emit: Emit
    columns: tuple[PatternColumn, ...]
