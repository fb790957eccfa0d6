"""The order of a DataFrame's rows: that of the files they are read from, if the DataFrame can still tell; else nobody knows it.

Spark packs files into tasks by their size. Without their order, rows of an early file that come behind those of a later one are
taken for late.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.notices import warn
from headrace.plan.stream import Stream
from headrace.spark.sources.files import place_in_file

# What keeps the rows of a file in their order, and gives at most one row for each.
KEEPS_ORDER = {"Project", "Filter", "SubqueryAlias", "EventTimeWatermark", "CollectMetrics", "View", "ResolvedHint"}


def file_order(frame: DataFrame) -> tuple[str, Column, Column] | None:
    """How places of rows are known (as `Rows.places` has it), and the two halves; None if the rows cannot tell."""
    if "_metadata" in frame.columns or not _is_straight(frame):
        return None
    # Only parquet numbers its rows; of text it is known where the block begins that a row was read from.
    for kind, row in (("rows", "row_index"), ("lines", "file_block_start")):
        place = place_in_file("_metadata.file_path", "_metadata.file_modification_time", f"_metadata.{row}")
        high, low = (F.expr(half) for half in place)
        try:
            assert len(frame.select(high, low).columns) == 2  # Spark says whether there is such a thing
        except AnalysisException:
            continue
        return kind, high, low
    return None


def _is_straight(frame: DataFrame) -> bool:
    """Whether rows go from one source through steps that keep their order."""
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return False  # Spark Connect does not show its plans
    plan = plan.queryExecution().analyzed()
    while plan.children().size() == 1:
        if plan.nodeName() not in KEEPS_ORDER:
            return False
        plan = plan.children().head()
    return bool(plan.children().isEmpty())


def say_unordered(stream: Stream) -> None:
    """A stream whose rows nobody can order: what that means, and what to do."""
    warn(
        "the order of the rows of this DataFrame is not known, so they are taken in the order in which Spark brings them: some"
        " may be late that are not, and rows of one time may change places between runs. Name the columns that place a row in its"
        " source, position=('partition', 'offset'), or hand over the DataFrame as it is read from files",
        where=f"stream {stream.name!r}",
    )
