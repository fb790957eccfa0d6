"""A session that is the user's: what a query of ours needs is set while it starts, and nothing stays set.

Spark's default of 200 partitions is for large joins. State of ours is in few buckets: most of 200 tasks, each with a state
store of its own, would be empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
FEWEST = 2


def partitions_for(spark: SparkSession) -> int:
    """As many as there are cores, unless the user has said how many."""
    given = int(spark.conf.get(PARTITIONS) or 200)
    if _chosen(spark, PARTITIONS):
        return given
    context = getattr(spark, "_sc", None)
    return given if context is None else max(FEWEST, min(given, context.defaultParallelism))


@contextmanager
def settings(spark: SparkSession, named: dict[str, str]) -> Iterator[None]:
    """Have these settings while inside; a query that is started there keeps them."""
    before = {key: spark.conf.get(key) if key in spark.conf.getAll else None for key in named}
    try:
        for key, value in named.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def activate(spark: SparkSession) -> None:
    """Have Spark look for what is registered in this session, whichever one this thread used last."""
    if hasattr(spark, "_jsparkSession"):
        SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def with_own_partitions(frame: DataFrame) -> DataFrame:
    """A DataFrame of the user's session whose rows are computed by a copy of it, with partitions as a query of ours needs them.

    A stream cannot be had this way: Spark plans it in the session that starts it.
    """
    spark = frame.sparkSession
    number = partitions_for(spark)
    if number == int(spark.conf.get(PARTITIONS) or 200):
        return frame
    if frame.isStreaming:
        warnings.warn(
            f"{PARTITIONS} is {spark.conf.get(PARTITIONS)}: a query that you start will have as many tasks in every batch; "
            f"set it to {number} before, or let hr.start run it",
            stacklevel=4,
        )
        return frame
    try:
        theirs: Any = spark._jsparkSession
        jvm: Any = spark._jvm
        own = theirs.cloneSession()
        for key, value in {PARTITIONS: str(number), "spark.sql.adaptive.enabled": "false"}.items():
            own.conf().set(key, value)  # adaptive plans would begin to run when they are looked at
        computed = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own, frame._jdf.logicalPlan())
        return DataFrame(theirs.internalCreateDataFrame(computed.queryExecution().toRdd(), computed.schema(), False), spark)
    except (Py4JError, AttributeError):  # not the Spark that this was written for: slower, but the same rows
        return frame


def _chosen(spark: SparkSession, key: str) -> bool:
    """Whether a setting was made, in the session or before it was started."""
    context = getattr(spark, "_sc", None)
    return key in spark.conf.getAll or (context is not None and context.getConf().contains(key))
