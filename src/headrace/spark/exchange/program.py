"""What the driver makes and a worker runs. The driver needs none of what runs it, and does not load it."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.program.stage import Stage
from headrace.spark.exchange.levels import NextLevel
from headrace.spark.exchange.slots import Slots


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
    previous: tuple[Stage, ...] = ()  # of the program whose state is handed over
    previous_buckets: int = 0  # how many that had; 0: nothing is handed over, rows are processed
