"""A lowered script as one streaming DataFrame: sources, pack, exchange, buckets, and the finishing touches of every query."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headrace.evolution.compare import Comparison
from headrace.exchange.heads import ControlHead, write_head
from headrace.plan.expr import Expr, all_of
from headrace.plan.nodes import Late, Rejected
from headrace.plan.schema import Schema
from headrace.program.stage import AnyStage
from headrace.spark.borrowed import partitions_for
from headrace.spark.exchange.bucket import BucketProcessor
from headrace.spark.exchange.labels import labels
from headrace.spark.exchange.levels import LEAD, Ends, Feed, FeedPart, LevelProgram, NextLevel, pack_feeds
from headrace.spark.exchange.pack import EXCHANGE, Packing, StagePart, pack_rows, read_table
from headrace.spark.exchange.slots import METRICS_ROW, Slots
from headrace.spark.progress import counting
from headrace.spark.sources.attempt import attempt, can_fail
from headrace.spark.sources.prepare import parts_of, prepare
from headrace.spark.types import logical
from headrace.stages.flatten import split_top
from headrace.stages.lower import Finish, Lowered, disorder_of

LEAST_BUCKETS = 8
BUCKETS_PER_CORE = 4  # tasks share them evenly, and a cluster may grow to four times its size
BUCKETS = "spark.headrace.buckets"


def given_buckets(spark: SparkSession) -> int | None:
    """How many the session asks for, if it does."""
    given = spark.conf.get(BUCKETS, None)
    return None if given is None else int(given)


def bucket_count(spark: SparkSession) -> int:
    """How many buckets a new query gets: all the parallelism it can have. It follows the cores of the cluster."""
    given = given_buckets(spark)
    if given is not None:
        return given
    context = spark.sparkContext

    def number(key: str, default: int) -> int:
        return int(context.getConf().get(key, str(default)) or default)

    # Executors may be asked for and not have come yet.
    asked = max(number("spark.executor.instances", 0), number("spark.dynamicAllocation.maxExecutors", 0))
    cores = max(context.defaultParallelism, asked * number("spark.executor.cores", 1), number("spark.cores.max", 0))
    return max(LEAST_BUCKETS, BUCKETS_PER_CORE * cores, partitions_for(spark))


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of all buckets: every stage has its own, and one is for rejected rows."""

    per_stage: tuple[tuple[int, ...], ...]
    rejected: int
    passing: tuple[int, ...] = ()  # for results that have levels still to pass

    @staticmethod
    def of(stages: Sequence[AnyStage], buckets: int) -> Labels:
        """Give every (stage, bucket) a grouping key; they spread evenly over partitions."""
        counts = [stage.buckets(buckets) for stage in stages]
        passing = 0 if all(stage.level == 1 for stage in stages) else buckets
        pool = iter(labels(1 << (sum(counts) + passing + 1 - 1).bit_length()))
        per_stage = tuple(tuple(next(pool) for _ in range(n)) for n in counts)
        return Labels(per_stage, next(pool), tuple(next(pool) for _ in range(passing)))

    @property
    def buckets(self) -> dict[int, tuple[int, int]]:
        """Label -> (stage, bucket)."""
        return {label: (s, b) for s, row in enumerate(self.per_stage) for b, label in enumerate(row)}

    def places(self, first: int = 0) -> dict[tuple[int, int], int]:
        """(stage, bucket) -> label, with stages numbered from `first` on."""
        return {(first + s, b): label for label, (s, b) in self.buckets.items()}


def output_frame(
    spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], control: DataFrame | None, *, streaming: bool,
    buckets: int | None = None, options: dict[str, str] | None = None, ended: bool = False,
    watch: Callable[[str], str | Observation] | None = None, ends: Ends | None = None,
) -> DataFrame:  # fmt: skip
    """The wide rows of all queries, before they are finished. Rows read and rejected are observed as `watch` names them.

    `ended`: the input ends with what is there; `ends`: when it ends, there may be more later.
    """
    layout = Labels.of(lowered.stages, buckets or bucket_count(spark))
    packed: DataFrame | None = None
    tables: dict[int, list[tuple[str, bytes]]] = {}
    counted = {stream.rows_of: stream.name for stream in reversed(sorted(lowered.streams, key=lambda s: s.reads is not None))}
    for stream in lowered.streams:
        source = prepare(spark, stream, lowered.stages, frames.get(stream.rows_of), streaming=streaming, options=options or {})
        parts = tuple(StagePart(s, i, lowered.stages[s], names) for (s, i), names in source.inputs.items())
        disorder = parts[0].stage.sources[parts[0].source].disorder if parts else disorder_of(stream)
        packing = Packing(
            stream.name, disorder, source.places, parts, layout.per_stage, layout.rejected, source.words,
            counted=counted[stream.rows_of] == stream.name,
        )  # fmt: skip
        part = source.frame.mapInArrow(partial(pack_rows, packing), EXCHANGE)
        if stream.static:
            read_table(packing, part, tables)
            continue
        if watch is not None:
            part = part.observe(watch(stream.name), *counting())
        packed = part if packed is None else packed.unionByName(part)
    assert packed is not None
    if control is not None:
        packed = packed.unionByName(control.select("label", "head", "body"))
    if ended:
        head = write_head(ControlHead(ended=True))
        rows = [(label, head, b"") for row in layout.per_stage for label in row]
        packed = packed.unionByName(spark.createDataFrame(rows, EXCHANGE))
    return levels(packed, lowered, layout, tables, ends=ends)


def levels(
    packed: DataFrame, lowered: Lowered, layout: Labels, tables: dict[int, list[tuple[str, bytes]]],
    before: tuple[tuple[AnyStage, ...], Comparison] | None = None, ends: Ends | None = None,
) -> DataFrame:  # fmt: skip
    """The stages of every level, one stateful operator after the other. They may be handed the state of others, not rows."""
    slots, run = slots_of(lowered), uuid.uuid4().hex
    for level in range(1, lowered.levels + 1):
        own = {label: at for label, at in layout.buckets.items() if lowered.stages[at[0]].level == level}
        onward = _onward(lowered, layout, level) if level < lowered.levels else None
        program = LevelProgram(lowered.stages, own, slots, layout.rejected, onward, layout.passing, tables, before, ends)
        processor = BucketProcessor(f"{run} {level}", pickle.dumps(program))
        ddl = slots.ddl if onward is None else onward.ddl
        packed = packed.groupBy("label").transformWithStateInPandas(processor, ddl, "append", "none")
        if onward is not None:
            packed = _packed_feeds(packed, lowered, layout, onward)
    return packed


def _onward(lowered: Lowered, layout: Labels, level: int) -> NextLevel:
    feeds = []
    for finish in lowered.feeds:
        name = finish.query.name
        made = next(s for s in lowered.stages if name in s.queries)
        if made.level == level:
            readers = tuple((source, layout.per_stage[s]) for s, source in parts_of(name, lowered.stages))
            feeds.append(Feed(name, finish.columns, readers))
    return NextLevel(tuple(feeds), layout.passing)


def _packed_feeds(wide: DataFrame, lowered: Lowered, layout: Labels, onward: NextLevel) -> DataFrame:
    """The inputs of the stages that read feeds, computed in the JVM, then packed."""
    columns = [F.col(c.split()[0]) for c in LEAD.split(", ")]
    parts = []
    for number, feed in enumerate(onward.feeds):
        for s, source in parts_of(feed.query, lowered.stages):
            stage = lowered.stages[s]
            names = tuple(f"x{s}_{source}_{i}" for i in range(len(stage.inputs)))
            parts.append(FeedPart(number, source, stage, layout.per_stage[s], names))
            for name, spec in zip(names, stage.inputs, strict=True):
                given = [f"f{number}c{i}" for i in range(len(feed.columns.fields))]
                value = _column(_over_wide(given, feed.columns, spec.exprs[source]))
                columns.append(F.when(F.col("f") == number, value).alias(name))
    return wide.select(*columns).mapInArrow(partial(pack_feeds, tuple(parts)), EXCHANGE)


def slots_of(lowered: Lowered) -> Slots:
    """Where each query's columns lie in the wide row."""
    rejected = tuple((i, f.rejected) for i, f in enumerate(lowered.finishes) if f.rejected is not None)
    ordered = any(f.query.emit.ordered for f in lowered.finishes)
    names = tuple(f.query.name for f in lowered.finishes)
    return Slots.of(names, tuple(f.columns for f in lowered.finishes), rejected, ordered)


Wide = tuple[Expr, bool]  # an expression over the wide row, and whether it can fail


def _over_wide(names: Sequence[str], columns: Schema, expr: Expr) -> Wide:
    """An expression over some columns, over those of the wide row that have these names."""
    of = {f.name.lower(): Expr(logical(n, f.type)) for n, f in zip(names, columns.fields, strict=True)}
    return expr.substitute(of), can_fail(expr, columns)


def _column(wide: Wide) -> Column:
    """An expression over the wide row. One that fails gives NULL: its row has left the input."""
    column = F.expr(wide[0].sql)
    return attempt(column)["v"] if wide[1] else column


def finish_one(frame: DataFrame, lowered: Lowered, query: int) -> DataFrame:
    """The rows of one query as a DataFrame with its own columns, and `_op` under EMIT CHANGES."""
    finish, given = lowered.finishes[query], slots_of(lowered).names(query)
    rows = frame.where(F.col("q") == query)
    predicate = all_of(finish.predicates)
    if predicate is not None:
        rows = rows.where(_column(_over_wide(given, finish.columns, predicate)))
    columns = [_column(_over_wide(given, finish.columns, e)).alias(n) for n, e in finish.items]
    if has_op(finish):
        columns.insert(0, F.when(F.col("sign") > 0, "+").otherwise("-").alias("_op"))
    return rows.select(*columns)


def has_op(finish: Finish) -> bool:
    """Whether rows of this query carry `_op`. Late and rejected rows are a record of what came, and never taken back."""
    return finish.query.emit.early and not isinstance(split_top(finish.query.node)[1], Late | Rejected)


def shown(lowered: Lowered) -> tuple[dict[Wide, list[int]], list[tuple[int, ...]]]:
    """What is computed over the wide row, and for which queries; per query, which of these are its columns.

    Queries share what they show as they share the columns it is computed from: the same text over them is one.
    """
    slots, of = slots_of(lowered), dict[Wide, list[int]]()
    wide = [[_over_wide(slots.names(q), f.columns, e) for _, e in f.items] for q, f in enumerate(lowered.finishes)]
    for q, exprs in enumerate(wide):
        for expr in exprs:
            users = of.setdefault(expr, [])
            users += [q] if q not in users[-1:] else []
    number = {expr: i for i, expr in enumerate(of)}
    return of, [tuple(number[expr] for expr in exprs) for exprs in wide]


def finish_all(frame: DataFrame, lowered: Lowered) -> DataFrame:
    """The rows of all queries, still in one wide row: q, sign, order key, and o<i> for everything that is shown."""
    slots, everybody = slots_of(lowered), len(lowered.finishes)
    columns = [F.col(c) for c in ("q", "sign", *(("ts", "high", "low", "sub") if slots.ordered else ()))]
    tests: dict[Wide, list[int]] = {}
    for q, finish in enumerate(lowered.finishes):
        predicate = all_of(finish.predicates)
        if predicate is not None:
            tests.setdefault(_over_wide(slots.names(q), finish.columns, predicate), []).append(q)
    keep = F.lit(True)
    for expr, users in tests.items():
        keep = keep & F.when(F.col("q").isin(users), F.coalesce(_column(expr), F.lit(False))).otherwise(True)
    for i, (expr, users) in enumerate(shown(lowered)[0].items()):
        value = _column(expr)
        columns.append((value if len(users) == everybody else F.when(F.col("q").isin(users), value)).alias(f"o{i}"))
    return frame.where((F.col("q") != METRICS_ROW) & keep).select(*columns)
