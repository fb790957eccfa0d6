"""Rows that pass as they are, as data."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.query import Emit
from headrace.program.aggregates import Metric


@dataclass(frozen=True, slots=True)
class Output:
    """The rows of one query: for every event where the masks hold, its own columns and its metrics."""

    query: str
    emit: Emit
    columns: tuple[tuple[str, int], ...]  # (name, input)
    metrics: tuple[Metric, ...] = ()
    masks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsProgram:
    """Rows pass: nothing is kept but what has to wait."""

    outputs: tuple[Output, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """Whose rows it makes."""
        return tuple(o.query for o in self.outputs)
