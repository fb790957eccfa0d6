"""What the driver makes and a worker runs. The driver needs none of what runs it, and does not load it."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.evolution.compare import Comparison
from headrace.plan.query import Emit
from headrace.program.stage import Stage
from headrace.spark.exchange.levels import NextLevel
from headrace.spark.exchange.slots import Slots


@dataclass(frozen=True, slots=True)
class Ends:
    """Of a run whose end may not be the last word: the queries that sinks wait for, and whether an earlier end is taken back."""

    sinks: dict[str, Emit]
    goes_on: bool


@dataclass(frozen=True, slots=True)
class LevelProgram:
    """What a worker must know to process the buckets of one level of a query. Travels from the driver, pickled."""

    stages: tuple[Stage, ...]
    buckets: dict[int, tuple[int, int]]  # label -> (stage, bucket), of the stages of this level
    slots: Slots
    rejected_label: int
    onward: NextLevel | None = None  # None: this is the last level
    passing: tuple[int, ...] = ()  # labels of results that earlier levels have for the sinks
    tables: dict[int, list[tuple[str, bytes]]] = field(default_factory=dict)  # label -> what is there before the first batch
    before: tuple[tuple[Stage, ...], Comparison] | None = None  # whose state is handed over, instead of rows, and how it fits
    ends: Ends | None = None  # None: nobody will go on when the input has ended
