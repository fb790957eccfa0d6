"""Sequence patterns as data: what runs in a bucket.

A *word* is a value that conditions between events read of one event: an int64 and whether it is NULL. Word k of place p is
column `w{p}_{k}` of conditions, and comes from a vector of the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.expr import Expr
from headrace.plan.patterns import Spill
from headrace.plan.query import Emit
from headrace.program.aggregates import Metric, Tally
from headrace.program.outputs import Output
from headrace.program.stage import Stage

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
    ANY_ROW where nothing may lie between (STRICT); there, rows that fit at place `unless` and meet the conditions do not count.
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
    repeated: tuple[int, ...] = ()  # which of the positive places stand for a group: by its first row, at the end by its last
    spill: Spill | None = None

    @property
    def trailing(self) -> bool:
        """Whether a negation ends the pattern, so that a result is known only when its window is over."""
        return any(n.gap == len(self.positive) for n in self.negations)

    def next_to(self, q: int) -> int:
        """Where the group of a repeated place ends: at the next positive place, or, at the end of the pattern, at its own."""
        return min(q + 1, len(self.positive) - 1)

    def members(self, q: int) -> Negation:
        """Where the other rows of a group lie: they fit at its place, in the gap next to the row that stands for it."""
        place = self.positive[q]
        return Negation(place, self.next_to(q), self.conditions_of(place), sources=self.places[place].sources)

    def conditions_of(self, place: int) -> tuple[int, ...]:
        """The conditions that a row at a place must meet."""
        return tuple(k for k, c in enumerate(self.conditions) if place in c.places)


@dataclass(frozen=True, slots=True)
class PatternColumn:
    """A column of a result: the vector that holds it in the row at a place."""

    name: str
    type: str
    place: int
    vector: int


@dataclass(frozen=True, slots=True)
class GroupProgram:
    """Aggregates over the group of a repeated place: tallies with a key for every result, and what is read of them."""

    place: int
    tallies: tuple[Tally, ...]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class PatternOutput:
    """The rows of one query that are results of the pattern of its stage."""

    query: str
    emit: Emit
    columns: tuple[PatternColumn, ...]
    groups: tuple[GroupProgram, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternProgram:
    """A sequence pattern. Its queries differ in what they show, and when."""

    sequence: Sequencing
    shown: tuple[PatternOutput, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(o.query for o in self.shown)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return ()


PatternStage = Stage[PatternProgram]
