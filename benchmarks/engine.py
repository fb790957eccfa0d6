"""Headrace's side of a comparison: the same files, session, sink and checkpoints as its rivals on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.spark.exchange.slots import METRICS_ROW
from headrace.spark.plan import finish_all, finish_one, output_frame
from headrace.spark.progress import METRICS
from headrace.spark.session import local_session
from headrace.spark.types import CatalystTypes
from headrace.sql import parse_script
from headrace.stages.lower import lower

from .payments import SPARK_DDL
from .report import Result
from .rivals.spark_native import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from headrace.stages.lower import Lowered

SUBJECT = "headrace"
SOURCE_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def session(**settings: str) -> SparkSession:
    """The one session that all engines on Spark share: Headrace's own local profile."""
    return local_session("headrace-benchmark", quiet=True, **{"spark.driver.memory": "6g", **settings})


def script(data: Path, select: str, delay_seconds: float = 0.0) -> str:
    return f"""CREATE STREAM payments ({SPARK_DDL}) SOURCE FILE('{data}', 'parquet')
        TIMESTAMP BY at DELAY {delay_seconds:g} SECONDS; {select};"""


def sum_and_count(window: str = "60 MINUTES") -> str:
    return f"""SELECT id, card, at, SUM(amount) AS total, COUNT(*) AS n
        FROM payments [RANGE {window}] GROUP BY card EMIT CHANGES"""


def results(spark: SparkSession, sql: str, buckets: int | None = None, observe: bool = False, files: int = 1) -> DataFrame:
    """The rows of the one query of a script; so many files are one micro-batch."""
    lowered, wide = _wide(spark, sql, buckets, files)
    return finish_one(wide.observe(SUBJECT, *map(_metric, METRICS)) if observe else wide, lowered, 0)


def all_results(spark: SparkSession, sql: str) -> DataFrame:
    """The rows of all queries of a script, as the sink gets them; how many there are is observed."""
    lowered, wide = _wide(spark, sql, None)
    return finish_all(wide, lowered).observe(SUBJECT, F.count(F.lit(1)).alias("rows_out"))


def _wide(spark: SparkSession, sql: str, buckets: int | None, files: int = 1) -> tuple[Lowered, DataFrame]:
    spark.conf.set(SOURCE_EVOLUTION, "true")
    try:
        lowered = lower(parse_script(sql), CatalystTypes(spark))
        options = {"maxFilesPerTrigger": str(files)}
        return lowered, output_frame(spark, lowered, {}, None, streaming=True, buckets=buckets, options=options)
    finally:
        spark.conf.unset(SOURCE_EVOLUTION)


def _metric(name: str) -> Column:
    row = (F.col("q") == METRICS_ROW) & (F.col("sign") == METRICS.index(name))
    return F.sum(F.when(row, F.col("number"))).alias(name)


def sliding(
    spark: SparkSession, data: Path, window: str = "60 MINUTES", delay_seconds: float = 0.0, name: str = SUBJECT,
    **details: Any,
) -> Result:  # fmt: skip
    """SUM and COUNT per card, for every event, taken back and said anew where a late one changes them."""
    frame = results(spark, script(data, sum_and_count(window), delay_seconds))
    return run_to_end(name, frame, "append", window=window, delay_seconds=delay_seconds, **details)
