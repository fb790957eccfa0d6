"""Where the rows of each query go, as the sink understands it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headrace.plan.query import ConsoleSink, Emit, FileSink, StreamSink, TableSink
from headrace.spark.plan import has_op, shown
from headrace.spark.sink import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.stages.lower import Finish, Lowered


def targets_of(spark: SparkSession, lowered: Lowered, checkpoint: str) -> list[Target]:
    """One target per query. What has no place of its own is shown: it goes by way of files under the checkpoint."""
    places = shown(lowered)[1]
    return [_target(spark, number, finish, places[number], checkpoint) for number, finish in enumerate(lowered.finishes)]


def _target(spark: SparkSession, number: int, finish: Finish, places: tuple[int, ...], checkpoint: str) -> Target:
    query = finish.query
    match query.sink:
        case FileSink(path=path, format=kind):
            place, shape = path, kind
        case TableSink(name=name):
            place, shape = _table(spark, name, finish), "parquet"
        case ConsoleSink() | StreamSink():
            place, shape = os.path.join(checkpoint, "console", str(number)), "arrow"
    columns = tuple(n for n, _ in finish.items)
    return Target(number, place, shape, columns, places, has_op(finish), query.emit is Emit.FINAL_IN_ORDER)


def _table(spark: SparkSession, name: str, finish: Finish) -> str:
    """The directory of a Spark table, which is made if it does not exist."""
    fields = ", ".join(f"`{f.name}` {f.type}" for f in finish.query.node.schema.fields)
    op = "`_op` STRING, " if has_op(finish) else ""
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({op}{fields}) USING parquet")
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    location = next(r["data_type"] for r in rows if r["col_name"] == "Location")
    return location.removeprefix("file://").removeprefix("file:")
