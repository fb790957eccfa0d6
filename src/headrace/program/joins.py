"""Joins, as data."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.query import Emit
from headrace.plan.windows import Window
from headrace.program.outputs import Output
from headrace.program.stage import Stage


@dataclass(frozen=True, slots=True)
class JoinColumn:
    """A column of a joined row: the vector that holds it in the rows of its side."""

    name: str
    type: str
    side: int  # 0: left, 1: right
    vector: int


@dataclass(frozen=True, slots=True)
class JoinOutput:
    """The rows of one query that are pairs."""

    query: str
    emit: Emit
    columns: tuple[JoinColumn, ...]


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """Pairs of rows of two sides. Its queries differ in what they show, and when."""

    split: int  # the rank of the first source of the right side
    key: int  # the table that numbers what rows are joined on
    live: int  # the vector that says which rows have a key that is not NULL
    windows: tuple[Window, Window]
    preserved: tuple[bool, bool]
    shown: tuple[JoinOutput, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(o.query for o in self.shown)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return ()

    @property
    def moving(self) -> bool:
        """Whether a row that comes late can undo a pair: it may push another out of a window, or be what a row waited for."""
        return any(self.preserved) or any(w.counts_rows for w in self.windows)


JoinStage = Stage[JoinProgram]
