"""A run that has ended goes on when there is more: what is decided before anything changes, and remembered (decisions/0028).

ending   the end has been said, of these files: buckets stand before it or after it, as far as Spark has committed
ended    and all is done
goes_on  it was none: buckets that still have what it released take that back when they are next called
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headrace.errors import StateError
from headrace.spark.generations.cells import cells_of, last_committed
from headrace.spark.plan import finish_one, slots_of
from headrace.spark.sources.growth import grown
from headrace.spark.storage.checkpoint import files_of
from headrace.spark.storage.storage import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from headrace.exchange.ended import Released
    from headrace.spark.generations.evolve import Planned
    from headrace.spark.sinks.sink import Target
    from headrace.spark.storage.checkpoint import Checkpoint
    from headrace.spark.storage.storage import Storage
    from headrace.stages.lower import Lowered


def finished(spark: SparkSession, planned: Planned, storage: Storage, *, follow: bool) -> bool:
    """Whether the stored end leaves nothing to do. If there is more, the checkpoint goes on, or this says why it cannot."""
    facts = planned.facts
    if not (facts.ended or facts.ending):
        return False
    if not (follow or planned.comparison is not None or grown(facts, planned.lowered.streams)):
        return facts.ended
    if not facts.ending:
        raise StateError(
            f"the run in {facts.path!r} has ended, and the version of Headrace that ended it kept nothing to go on from",
            hint="name a new checkpoint directory",
        )
    tables = tuple(s for s in planned.lowered.streams if s.static)
    if not set(files_of(tables)) <= set(facts.files):
        raise StateError(
            f"tables have files that were not there when the run in {facts.path!r} ended, and tables are read once, at the start",
            hint="name a new checkpoint directory",
        )
    _refuse_final(spark, planned, storage)
    facts.ended = facts.ending = False
    facts.goes_on = True
    return False


def refuse_put_together(facts: Checkpoint, targets: Iterable[Target]) -> None:
    """A single file on another file system is put together at the end, and then its parts are gone."""
    for target in targets:
        if facts.goes_on and target.single and not target.shown and not is_local(target.path):
            raise StateError(
                f"the run has ended, and {target.path!r} was put together: nothing can be put behind it there",
                hint="name a new checkpoint directory, and write to a directory instead of a file",
            )


def end_is_said(facts: Checkpoint, storage: Storage, files: tuple[str, ...], sizes: dict[str, int]) -> None:
    """Remember of what, before any bucket learns of it."""
    facts.ending, facts.goes_on = True, False
    facts.files, facts.sizes = files, sizes
    facts.store(storage)


def _refuse_final(spark: SparkSession, planned: Planned, storage: Storage) -> None:
    from headrace.exchange.ended import refuse_final

    final: dict[str, list[Released]] = {}
    for one in _released(spark, planned.facts, storage):
        if not one.emit.early:
            final.setdefault(one.query, []).append(one)
    for query, parts in final.items():
        if planned.comparison is not None:
            if query in planned.comparison.continued.values():
                refuse_final(query, sum(p.count for p in parts), [r for p in parts for r in p.changes.rows.to_pylist()])
            continue
        rows = [row for part in parts for row in _shown(spark, planned.lowered, part)]
        more = sum(part.count - len(part.changes) for part in parts)
        if rows or more:
            refuse_final(query, len(rows) + more, rows)


def _released(spark: SparkSession, facts: Checkpoint, storage: Storage) -> list[Released]:
    """What buckets keep of an end, as of the last batch that was committed."""
    from headrace.exchange.ended import RELEASED, read_released

    last = last_committed(storage, facts.spark)
    if last is None:
        return []
    pages = cells_of(spark, storage, facts.spark, last).where(F.col("name") == f"page {RELEASED}")
    return [one for page in pages.select("body").collect() for one in read_released(bytes(page["body"]))]


def _shown(spark: SparkSession, lowered: Lowered, part: Released) -> list[tuple[object, ...]]:
    """The rows as sinks have got them: those that HAVING leaves, and the columns of the SELECT."""
    import pyarrow as pa

    slots = slots_of(lowered)
    query = slots.queries.index(part.query)
    kinds = [slots.types[slots.lead + place] for place in slots.places[query]]
    columns = [c if c.type == kind else c.cast(kind) for c, kind in zip(part.changes.rows.columns, kinds, strict=True)]
    count = len(part.changes)
    own = [pa.array([query] * count, pa.int32()), pa.array([1] * count, pa.int8())]
    table = pa.Table.from_arrays([*own, *columns], ["q", "sign", *slots.names(query)])
    return [tuple(row) for row in finish_one(spark.createDataFrame(table), lowered, query).collect()]
