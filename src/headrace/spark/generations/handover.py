"""State goes from the buckets of one generation to those of the next: as rows of a file, by one batch of the new plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.exchange.heads import HandoverHead, write_head
from headrace.spark.borrowed import PARTITIONS, partitions_for, settings
from headrace.spark.exchange.pack import EXCHANGE
from headrace.spark.plan import Labels, levels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.evolution.compare import Comparison
    from headrace.exchange.host import At
    from headrace.program.script import ScriptProgram
    from headrace.program.stage import Stage
    from headrace.stages.lower import Lowered

# Which buckets of the old program a bucket of the new one takes over from: takes(new stage, new bucket) -> [(old stage, bucket)]
Takes = Callable[[int, int], "list[At]"]
NAME = "headrace_handover"
EVOLVES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def given_cells(spark: SparkSession, cells: DataFrame, givers: dict[At, int], takers: Labels, takes: Takes) -> DataFrame:
    """The cells that every new bucket is handed: (label INT, head STRING, body BINARY), as they are packed for the exchange."""
    rows = [
        (givers[old], *old, label)
        for label, at in takers.buckets.items() for old in takes(*at) if old in givers
    ]  # fmt: skip
    wanted = spark.createDataFrame(rows, "giver INT, stage INT, bucket INT, taker INT")
    head = F.to_json(F.struct(F.lit("handover").alias("kind"), "stage", "bucket", F.col("name").alias("cell")))
    found = cells.join(F.broadcast(wanted), F.col("giver") == F.col("label"))
    handed = found.select(F.col("taker").alias("label"), head.alias("head"), "body")
    # Spark runs no batch over nothing: this is for no bucket, and goes no further.
    nothing = spark.createDataFrame([(takers.rejected, write_head(HandoverHead(-1, -1, "")), b"")], EXCHANGE)
    return handed.unionByName(nothing)


def run_handover(
    spark: SparkSession, lowered: Lowered, now: ScriptProgram, before: tuple[tuple[Stage[Any], ...], Comparison], source: str,
    checkpoint: str, *, named: bool,
) -> None:  # fmt: skip
    """Batch 0 of the new generation, in a checkpoint of Spark's that is new: every bucket keeps what it is handed."""
    with settings(spark, {PARTITIONS: str(partitions_for(spark)), **({EVOLVES: "true"} if named else {})}):
        reader = spark.readStream.name(NAME) if named else spark.readStream
        packed = reader.schema(EXCHANGE).parquet(source)
        layout = Labels.of(lowered.stages, now.buckets)
        wide = levels(packed, lowered, layout, {}, before)
        writer = wide.writeStream.format("noop").option("checkpointLocation", checkpoint).outputMode("append")
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
