"""What Spark calls for every bucket of every batch. Small, because Spark starts a process per query to see what state it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd


CELLS = "cells"  # by this name, and those of its columns below, the state of a generation is read by the next


class BucketProcessor(StatefulProcessor):
    """A door to `headrace.spark.exchange.stateful`, which a worker loads when rows come, and keeps loaded."""

    def __init__(self, run: str, program: bytes) -> None:
        """`program`: pickled `Program`, so that a task that finds it loaded need not read it again."""
        self.run, self.program = run, program

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one variable, because each costs every task of every batch several milliseconds."""
        # Types rather than their text: text is parsed by the JVM, which costs a call each.
        name, data = StructType([StructField("name", StringType())]), StructType([StructField("data", BinaryType())])
        self.cells = handle.getMapState(CELLS, name, data)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from headrace.spark.exchange.stateful import buckets_of

        yield from buckets_of(self.run, self.program).process(int(key[0]), rows, self.cells)

    def close(self) -> None:
        """Nothing is held open."""
