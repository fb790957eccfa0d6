"""For the Python API: results as a DataFrame, or run by Headrace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headrace.errors import QueryError, SetupError
from headrace.plan.nodes import base_streams
from headrace.plan.query import Script
from headrace.plan.stream import FrameSource
from headrace.program.stage import Source
from headrace.spark.borrowed import with_own_partitions
from headrace.spark.failures import explained
from headrace.spark.plan import finish_one, output_frame
from headrace.spark.run import Run, start_run
from headrace.spark.session import require_state_store
from headrace.spark.static import StaticRun
from headrace.spark.types import CatalystTypes
from headrace.spark.workers.shipped import require_workers
from headrace.stages.lower import Lowered, lower


def to_df(script: Script, frames: dict[str, DataFrame]) -> DataFrame:
    """The results of a script of one query as a DataFrame: streaming if its input is, else complete."""
    if len(script.queries) != 1:
        raise QueryError("to_df gives the rows of one query", hint="use hr.start for several")
    spark = session_of(frames)
    require_state_store(spark)
    require_workers(spark)
    streaming = any(f.isStreaming for f in frames.values())
    lowered = lower(script, CatalystTypes(spark))
    if not streaming:
        lowered = _complete(lowered)
    with explained():
        frame = output_frame(spark, lowered, _by_stream(script, frames), None, streaming=streaming, ended=not streaming)
        return with_own_partitions(finish_one(frame, lowered, 0))


def session_of(frames: dict[str, DataFrame]) -> SparkSession:
    """That of the DataFrames; of a script that reads none, the one that is there."""
    frame = next(iter(frames.values()), None)
    spark = SparkSession.getActiveSession() if frame is None else frame.sparkSession
    if spark is None:
        raise SetupError("there is no Spark session", hint="start one first: SparkSession.builder.getOrCreate()")
    return spark


def _complete(lowered: Lowered) -> Lowered:
    """A static frame is all there: nothing in it is late, whatever order Spark reads it in."""

    def never_late(source: Source) -> Source:
        return replace(source, disorder=replace(source.disorder, delay=None, punctuated=False))

    return replace(lowered, stages=tuple(replace(s, sources=tuple(map(never_late, s.sources))) for s in lowered.stages))


def _by_stream(script: Script, frames: dict[str, DataFrame]) -> dict[str, DataFrame]:
    streams = (s for query in script.queries for s in base_streams(query.node))
    return {s.name: frames[s.source.name] for s in streams if isinstance(s.source, FrameSource)}


def start(script: Script, frames: dict[str, DataFrame], checkpoint: str | None = None, **options: Any) -> Run | StaticRun:
    """Run a script over DataFrames, with late and rejected rows, to the end of bounded input or until it is stopped."""
    spark = session_of(frames)
    static = [name for name, frame in frames.items() if not frame.isStreaming]
    if not static:
        return start_run(spark, script, _by_stream(script, frames), checkpoint=checkpoint, **options)
    if len(static) < len(frames):
        raise QueryError(f"the DataFrame {static[0]!r} is static and others are streams", hint="start them apart")
    require_state_store(spark)
    require_workers(spark)
    lowered = _complete(lower(script, CatalystTypes(spark)))
    given = {name: options[name] for name in ("buckets", "overwrite", "max_rejected") if name in options}
    return StaticRun(spark, lowered, _by_stream(script, frames), checkpoint, **given)
