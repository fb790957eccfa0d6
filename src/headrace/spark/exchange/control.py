"""The control source: what Spark does not tell a stateful operator. Commands are small files under the checkpoint.

Every plan reads it from its first run, so that the end of the input, or the mere passing of time, reaches every bucket.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.exchange.heads import CONTROL
from headrace.spark.sources.prepare import batch_time
from headrace.spark.storage.storage import Storage, join, storage_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from headrace.spark.plan import Labels

CONTROL_SOURCE, TICK_SOURCE = "headrace_control", "headrace_tick"
TICKS = "RateStream"  # as the progress of a query calls the source of the time


def control_dir(checkpoint: str) -> str:
    return join(checkpoint, "control")


def say(storage: Storage, checkpoint: str, **command: object) -> None:
    """Give a command: `say(storage, dir, ended=run)`. It is seen whole or not at all."""
    line = json.dumps({"command": json.dumps(command)}) + "\n"
    storage.add(join(control_dir(checkpoint), f"{time.time_ns()}.json"), line.encode())


def only_time_passed(progress: Any) -> bool:
    """Whether a micro-batch has read nothing but ticks: no other source is further than it was."""
    sources = (s for s in progress["sources"] if not s["description"].startswith(TICKS))
    return all(s["startOffset"] == s["endOffset"] for s in sources)


def control_frame(spark: SparkSession, checkpoint: str, layout: Labels, run: str, *, tick: bool, named: bool) -> DataFrame:
    """Commands for every bucket, and the time once a second where silence matters. Sources are named all or none.

    What another run has said of the end does not count: it was killed, and there may be more since.
    """

    def reader(name: str) -> DataStreamReader:
        return spark.readStream.name(name) if named else spark.readStream

    folder = control_dir(checkpoint)
    storage_of(folder, spark).make(folder)
    commands = reader(CONTROL_SOURCE).schema("command STRING").json(folder).select("command")
    now = batch_time() if tick else F.lit(0)
    if tick:
        ticks = reader(TICK_SOURCE).format("rate").option("rowsPerSecond", "1").load()
        commands = commands.unionByName(ticks.select(F.lit("{}").alias("command")))
    every = F.array(*(F.lit(label) for row in layout.per_stage for label in row))
    ended = F.coalesce(F.get_json_object("command", "$.ended") == run, F.lit(False))
    head = F.format_string(CONTROL, now.cast("string"), ended.cast("string"))
    return commands.select(F.explode(every).alias("label"), head.alias("head"), F.expr("X''").alias("body"))
