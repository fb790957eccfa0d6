"""The rows of a query that are rows as they came, perhaps with more columns, as data."""

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
