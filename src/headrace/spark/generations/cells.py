"""The state of a generation as a table, by Spark's reader of state: every cell of every bucket, at the last committed batch."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.spark.exchange.bucket import CELLS
from headrace.spark.storage.storage import Storage, join


def last_committed(storage: Storage, folder: str) -> int | None:
    """The last batch that Spark has committed in its checkpoint; None: none yet."""
    return max((int(name) for name in storage.names(join(folder, "commits")) if name.isdigit()), default=None)


def cells_of(spark: SparkSession, storage: Storage, folder: str, batch: int) -> DataFrame:
    """All cells in a checkpoint of Spark's: (label INT, name STRING, body BINARY).

    Spark numbers stateful operators from the last one back, so those of level 1 have the highest number. It does not matter
    here: a bucket has its state in the operator of its own level and nowhere else, and its label is nobody else's.
    """
    operators = [name for name in storage.names(join(folder, "state")) if name.isdigit()]
    found: DataFrame | None = None
    for number in operators:
        options = {"operatorId": number, "stateVarName": CELLS, "batchId": str(batch)}
        read = spark.read.format("statestore").options(**options).load(folder)
        cells = read.select(
            F.col("key.label").alias("label"),
            F.col("user_map_key.name").alias("name"),
            F.col("user_map_value.data").alias("body"),
        )
        found = cells if found is None else found.unionByName(cells)
    assert found is not None, f"a batch is committed in {folder}, and there is no state"
    return found
