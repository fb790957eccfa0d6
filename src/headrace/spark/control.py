"""The control source: what Spark does not tell a stateful operator. Commands are small files under the checkpoint.

Every plan reads it from its first run, so that the end of the input, or the mere passing of time, reaches every bucket.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headrace.spark.now import batch_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader

    from headrace.spark.plan import Layout


def control_dir(checkpoint: str) -> str:
    """Where commands of a run lie."""
    path = os.path.join(checkpoint, "control")
    os.makedirs(path, exist_ok=True)
    return path


def say(checkpoint: str, **command: object) -> None:
    """Give a command: `say(dir, ended=True)`. Written aside and moved, so that it is never read half."""
    name = f"{time.time_ns()}.json"
    folder = control_dir(checkpoint)
    hidden = os.path.join(folder, f".{name}")
    with open(hidden, "w", encoding="utf-8") as file:
        file.write(json.dumps({"command": json.dumps(command)}) + "\n")
    os.rename(hidden, os.path.join(folder, name))


def control_frame(spark: SparkSession, checkpoint: str, layout: Layout, *, tick: bool, named: bool) -> DataFrame:
    """Commands for every bucket, and the time once a second where silence matters. Sources are named all or none."""

    def reader(name: str) -> DataStreamReader:
        return spark.readStream.name(name) if named else spark.readStream

    commands = reader("headrace_control").schema("command STRING").json(control_dir(checkpoint)).select("command")
    now = batch_time() if tick else F.lit(0)
    if tick:
        ticks = reader("headrace_tick").format("rate").option("rowsPerSecond", "1").load()
        commands = commands.unionByName(ticks.select(F.lit("{}").alias("command")))
    every = F.array(*(F.lit(label) for row in layout.per_stage for label in row))
    comma = F.when(F.length("command") > 2, ", ").otherwise("")
    head = F.concat(F.regexp_replace("command", r"\}$", ""), comma, F.lit('"now": '), now, F.lit("}"))
    return commands.select(F.explode(every).alias("label"), head.alias("head"), F.expr("X''").alias("body"))
