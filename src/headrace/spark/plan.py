"""A lowered script as one streaming DataFrame: sources, pack, exchange, buckets, and the finishing touches of every query."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headrace.plan.expr import Expr, all_of
from headrace.plan.query import Emit
from headrace.spark.attempt import attempt, can_fail
from headrace.spark.bucket import BucketProcessor
from headrace.spark.labels import labels
from headrace.spark.onward import LEAD, Feed, FeedPart, Onward, pack_feeds
from headrace.spark.pack import EXCHANGE, Packing, StagePart, pack_rows
from headrace.spark.sources import parts_of, prepare
from headrace.spark.stateful import METRICS_ROW, Program, Slots
from headrace.spark.tables import read_table
from headrace.spark.types import logical
from headrace.stages.lower import Finish, Lowered, disorder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from headrace.plan.schema import Schema

MOST_BUCKETS = 64


def bucket_count(spark: SparkSession) -> int:
    """How many buckets a new query gets, for good: enough for its tasks to share evenly, few enough for small batches."""
    return max(8, min(MOST_BUCKETS, 4 * int(spark.conf.get("spark.sql.shuffle.partitions") or 8)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Labels of all buckets: every stage has its own, and one is for rejected rows."""

    per_stage: tuple[tuple[int, ...], ...]
    rejected: int
    passing: tuple[int, ...] = ()  # for results that have levels still to pass

    @staticmethod
    def of(lowered: Lowered, buckets: int) -> Layout:
        """Give every (stage, bucket) a grouping key; they spread evenly over partitions."""
        counts = [1 if s.route == () else buckets for s in lowered.stages]
        passing = 0 if lowered.levels == 1 else buckets
        pool = iter(labels(1 << (sum(counts) + passing + 1 - 1).bit_length()))
        per_stage = tuple(tuple(next(pool) for _ in range(n)) for n in counts)
        return Layout(per_stage, next(pool), tuple(next(pool) for _ in range(passing)))

    @property
    def buckets(self) -> dict[int, tuple[int, int]]:
        """Label -> (stage, bucket)."""
        return {label: (s, b) for s, row in enumerate(self.per_stage) for b, label in enumerate(row)}


def output_frame(
    spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], control: DataFrame | None, *, streaming: bool,
    buckets: int | None = None, options: dict[str, str] | None = None, ended: bool = False,
) -> DataFrame:  # fmt: skip
    """The wide rows of all queries, before they are finished."""
    layout = Layout.of(lowered, buckets or bucket_count(spark))
    packed: DataFrame | None = None
    tables: dict[int, list[tuple[str, bytes]]] = {}
    for stream in lowered.streams:
        source = prepare(spark, stream, lowered.stages, frames.get(stream.rows_of), streaming=streaming, options=options or {})
        parts = tuple(StagePart(s, i, lowered.stages[s], names) for (s, i), names in source.inputs.items())
        disorder = parts[0].stage.sources[parts[0].source].disorder if parts else disorder_of(stream)
        packing = Packing(stream.name, disorder, source.places.kind, parts, layout.per_stage, layout.rejected, source.reasons)
        part = source.frame.mapInArrow(_packer(packing), EXCHANGE)
        if stream.static:
            read_table(packing, part, tables)
            continue
        packed = part if packed is None else packed.unionByName(part)
    assert packed is not None
    if control is not None:
        packed = packed.unionByName(control.select("label", "head", "body"))
    if ended:
        packed = packed.unionByName(_end_rows(spark, layout))
    return _levels(packed, lowered, layout, tables)


def _levels(packed: DataFrame, lowered: Lowered, layout: Layout, tables: dict[int, list[tuple[str, bytes]]]) -> DataFrame:
    """The stages of every level, one stateful operator after the other."""
    slots, run = slots_of(lowered), uuid.uuid4().hex
    for level in range(1, lowered.levels + 1):
        own = {label: at for label, at in layout.buckets.items() if lowered.stages[at[0]].level == level}
        onward = _onward(lowered, layout, level) if level < lowered.levels else None
        program = Program(lowered.stages, own, slots, layout.rejected, onward, layout.passing, tables)
        processor = BucketProcessor(f"{run} {level}", pickle.dumps(program))
        ddl = slots.ddl if onward is None else onward.ddl
        packed = packed.groupBy("label").transformWithStateInPandas(processor, ddl, "append", "none")
        if onward is not None:
            packed = _packed_feeds(packed, lowered, layout, onward)
    return packed


def _onward(lowered: Lowered, layout: Layout, level: int) -> Onward:
    feeds = []
    for finish in lowered.feeds:
        name = finish.query.name
        made = next(s for s in lowered.stages if name in s.queries)
        if made.level == level:
            readers = tuple((source, layout.per_stage[s]) for s, source in parts_of(name, lowered.stages))
            feeds.append(Feed(name, finish.columns, readers))
    return Onward(tuple(feeds), layout.passing)


def _packed_feeds(wide: DataFrame, lowered: Lowered, layout: Layout, onward: Onward) -> DataFrame:
    """The inputs of the stages that read feeds, computed in the JVM, then packed."""
    columns = [F.col(c.split()[0]) for c in LEAD.split(", ")]
    parts = []
    for number, feed in enumerate(onward.feeds):
        for s, source in parts_of(feed.query, lowered.stages):
            stage = lowered.stages[s]
            names = tuple(f"x{s}_{source}_{i}" for i in range(len(stage.inputs)))
            parts.append(FeedPart(number, source, stage, layout.per_stage[s], names))
            for name, spec in zip(names, stage.inputs, strict=True):
                value = _over_wide(f"f{number}", feed.columns, spec.exprs[source])
                columns.append(F.when(F.col("f") == number, value).alias(name))
    return wide.select(*columns).mapInArrow(_feed_packer(tuple(parts)), EXCHANGE)


def _feed_packer(parts: tuple[FeedPart, ...]):  # type: ignore[no-untyped-def]
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack_feeds(parts, batches)

    return pack


def _packer(packing: Packing):  # type: ignore[no-untyped-def]
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack_rows(packing, batches)

    return pack


def _end_rows(spark: SparkSession, layout: Layout) -> DataFrame:
    rows = [(label, '{"ended": true}', b"") for row in layout.per_stage for label in row]
    return spark.createDataFrame(rows, EXCHANGE)


def slots_of(lowered: Lowered) -> Slots:
    """Where each query's columns lie in the wide row."""
    rejected = tuple((i, f.rejected) for i, f in enumerate(lowered.finishes) if f.rejected is not None)
    ordered = any(f.query.emit is Emit.FINAL_IN_ORDER for f in lowered.finishes)
    names = tuple(f.query.name for f in lowered.finishes)
    return Slots(names, tuple(f.columns for f in lowered.finishes), rejected, ordered)


def _value(query: int, finish: Finish, expr: Expr) -> Column:
    return _over_wide(f"q{query}", finish.columns, expr)


def _over_wide(prefix: str, columns: Schema, expr: Expr) -> Column:
    """An expression over some columns, over the wide row. One that fails gives NULL: its row has left the input."""
    names = {f.name.lower(): Expr(logical(f"{prefix}c{i}", f.type)) for i, f in enumerate(columns.fields)}
    column = F.expr(expr.substitute(names).sql)
    return attempt(column)["v"] if can_fail(expr) else column


def finish_one(frame: DataFrame, lowered: Lowered, query: int) -> DataFrame:
    """The rows of one query as a DataFrame with its own columns, and `_op` under EMIT CHANGES."""
    finish = lowered.finishes[query]
    rows = frame.where(F.col("q") == query)
    predicate = all_of(finish.predicates)
    if predicate is not None:
        rows = rows.where(_value(query, finish, predicate))
    columns = [_value(query, finish, e).alias(n) for n, e in finish.items]
    if finish.query.emit is Emit.CHANGES and not _plain(finish):
        columns.insert(0, F.when(F.col("sign") > 0, "+").otherwise("-").alias("_op"))
    return rows.select(*columns)


def _plain(finish: Finish) -> bool:
    """Whether the rows are never taken back because they are a record of what came: late and rejected rows."""
    from headrace.plan.nodes import Late, Rejected
    from headrace.stages.flatten import split_top

    return isinstance(split_top(finish.query.node)[1], Late | Rejected)


def has_op(finish: Finish) -> bool:
    """Whether rows of this query carry `_op`."""
    return finish.query.emit is Emit.CHANGES and not _plain(finish)


def finish_all(frame: DataFrame, lowered: Lowered) -> DataFrame:
    """The rows of all queries, still in one wide row: q, sign, order key, and o<q>_<i> for every column shown."""
    several = len(lowered.finishes) > 1
    key = ("ts", "high", "low", "sub") if slots_of(lowered).ordered else ()
    columns = [F.col(c) for c in ("q", "sign", *key)]
    keep = F.lit(True)
    for q, finish in enumerate(lowered.finishes):
        predicate = all_of(finish.predicates)
        if predicate is not None:
            keep = keep & F.when(F.col("q") == q, F.coalesce(_value(q, finish, predicate), F.lit(False))).otherwise(True)
        for i, (_, expr) in enumerate(finish.items):
            value = _value(q, finish, expr)
            columns.append((F.when(F.col("q") == q, value) if several else value).alias(f"o{q}_{i}"))
    return frame.where((F.col("q") != METRICS_ROW) & keep).select(*columns)
