"""Sources as DataFrames ready to be packed: time, place, why a row is rejected, and the inputs of every stage."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import QueryError
from headrace.plan.expr import Expr, all_of, any_of
from headrace.plan.stream import FileSource, FrameSource, Stream
from headrace.plan.time import NO_PROMISE, TABLE_TIME
from headrace.program.stage import AnyStage
from headrace.spark.sources.attempt import attempt, can_fail
from headrace.spark.sources.files import read_files
from headrace.spark.sources.orders import file_order, say_unordered
from headrace.spark.sources.rejects import Reason, Rows, Words, bad_column, failed
from headrace.spark.types import CatalystTypes

MIN_TIME = -62_135_596_800_000_000  # 0001-01-01
MAX_TIME = 253_402_300_799_999_999  # 9999-12-31
TIME = "_ts"  # the column that is the time, also where it is an input
NOW = "_now"  # the time of the batch; not there if nothing depends on it
PROMISE = "_promise"  # up to where no more rows come, by a row that is punctuation; NO_PROMISE for an event


Part = tuple[int, int]  # the number of a stage, and of one of its sources


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source with its computed columns x0, x1, ..; `inputs` names those of every stage it is a source of, in order."""

    frame: DataFrame
    places: str
    inputs: dict[Part, tuple[str, ...]]
    words: Words  # what the numbers in `_bad` mean


def parts_of(stream: str, stages: tuple[AnyStage, ...]) -> list[Part]:
    """Where a stream goes: stage by stage, each source of it that reads the stream."""
    return [(s, i) for s, stage in enumerate(stages) for i, source in enumerate(stage.sources) if source.name == stream]


def prepare(
    spark: SparkSession, stream: Stream, stages: tuple[AnyStage, ...], frame: DataFrame | None, *, streaming: bool,
    options: dict[str, str],
) -> Prepared:  # fmt: skip
    """Read a stream and compute all that its stages need of each row, in the JVM."""
    match stream.source:
        case FileSource() as source:
            rows = read_files(spark, stream, source, streaming=streaming and not stream.static, options=options)
        case FrameSource() as source:
            assert frame is not None
            rows = _from_frame(stream, source, frame)
        case _:
            raise QueryError(f"the source {stream.source} must be turned into files first")
    types = CatalystTypes(spark)
    parts = parts_of(stream.name, stages)
    exprs: list[Expr] = list(dict.fromkeys(i.exprs[source] for s, source in parts for i in stages[s].inputs))
    always = tuple(e for e in (stream.timestamp, stream.punctuation) if e is not None)  # whatever a query asks for
    tried = [e for e in (*exprs, *always) if can_fail(e, stream.schema)]
    names = {e: f"t{i}" for i, e in enumerate(dict.fromkeys(tried))}
    guards = {e: _guarded(e, parts, stages) if e not in always else e for e in names}
    base = rows.frame.select("*", *(attempt(F.expr(guards[e].sql)).alias(n) for e, n in names.items()))

    def value(expr: Expr) -> Column:
        return F.col(f"{names[expr]}.v") if expr in names else F.expr(expr.sql)

    by_arrival = needs_now(stream)
    now = batch_time() if by_arrival else F.lit(0).cast("bigint")
    given = now if stream.timestamp is None else value(stream.timestamp)
    table = F.lit(TABLE_TIME).cast("bigint")
    ts = table if stream.static else now  # NULL also where it does not fit
    if stream.timestamp is not None:
        ts = _micros(stream, "TIMESTAMP BY", stream.timestamp, given, types)
    promise: Column | None = None
    reasons = list(rows.reasons)
    failures = {e: failed(F.col(n).isNull(), f"the expression {e} failed", e, stream.schema) for e, n in names.items()}
    of_events = [failures[e] for e in names if e != stream.punctuation]
    if stream.timestamp is not None:
        of_events.append(_no_time(given, stream.timestamp, stream))
        of_events.append(_absurd("timestamp", _unfit(ts), stream.timestamp, stream))
    if stream.punctuation is not None:
        # Whatever is said of events does not hold for punctuation: its other columns may be NULL, or anything.
        said = value(stream.punctuation)
        promise = _micros(stream, "PUNCTUATED BY", stream.punctuation, said, types)
        reasons += [failures[stream.punctuation]] if stream.punctuation in failures else []
        reasons.append(_absurd("punctuation", said.isNotNull() & _unfit(promise), stream.punctuation, stream))
        of_events = [reason.where(said.isNull()) for reason in of_events]
        ts = F.coalesce(ts, F.lit(0))
    reasons += of_events
    columns = [ts.alias(TIME), bad_column(reasons, rows, stream.schema).alias("_bad")]
    columns += [now.alias(NOW)] if by_arrival else []  # a column costs every row some time on its way to Python
    if promise is not None:
        columns.append(F.coalesce(promise, F.lit(NO_PROMISE)).alias(PROMISE))
    if rows.places != "arrival":
        columns += [F.col("_high"), F.col("_low")]
    # The time itself need not travel twice.
    places_of = {e: f"x{i}" for i, e in enumerate(exprs)}
    if stream.timestamp in places_of and types(stream.timestamp, stream.schema) == "TIMESTAMP":
        places_of[stream.timestamp] = TIME
    columns += [value(e).alias(n) for e, n in places_of.items() if n != TIME]
    inputs = {(s, source): tuple(places_of[i.exprs[source]] for i in stages[s].inputs) for s, source in parts}
    return Prepared(base.select(*columns), rows.places, inputs, Words(tuple(r.text for r in reasons), stream.schema))


def _guarded(expr: Expr, parts: list[Part], stages: tuple[AnyStage, ...]) -> Expr:
    """An expression that may fail, tried only on the rows that some query uses it for: WHERE guards what stands behind it."""
    uses = []
    for s, source in parts:
        stage = stages[s]
        for index, spec in enumerate(stage.inputs):
            if spec.exprs[source] == expr:
                uses += [all_of(tuple(stage.inputs[m].exprs[source] for m in masks)) for masks in stage.used_where(index)]
    needed = tuple(u for u in uses if u is not None)
    if not uses or len(needed) < len(uses):
        return expr
    return Expr.of(f"CASE WHEN {any_of(tuple(dict.fromkeys(needed)))} THEN {expr} END")


def _unfit(ts: Column) -> Column:
    return ts.isNull() | ~ts.between(MIN_TIME, MAX_TIME)


def _micros(stream: Stream, clause: str, expr: Expr, value: Column, types: CatalystTypes) -> Column:
    kind = types(expr, stream.schema)
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return F.unix_micros(value.cast("timestamp"))
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return F.try_multiply(value.cast("bigint"), F.lit(stream.timestamp_unit).cast("bigint"))
    hint = "give a TIMESTAMP, a DATE or an integer"
    raise QueryError(f"{clause} {expr} is a {kind}", where=f"stream {stream.name!r}", hint=hint)


def _no_time(given: Column, expr: Expr, stream: Stream) -> Reason:
    text = f"the timestamp {expr} is NULL"
    return Reason(given.isNull(), text) if expr.as_column else failed(given.isNull(), text, expr, stream.schema)


def _absurd(what: str, test: Column, expr: Expr, stream: Stream) -> Reason:
    return failed(test, f"the {what} {expr} is outside years 1 to 9999", expr, stream.schema)


def _from_frame(stream: Stream, source: FrameSource, frame: DataFrame) -> Rows:
    columns = [F.col(f"`{n}`") for n in stream.schema.names]
    if source.position is not None:
        high, low = (F.col(f"`{c}`").cast("bigint") for c in source.position)
        return Rows(frame.select(*columns, high.alias("_high"), low.alias("_low")), "given")
    order = file_order(frame)
    if order is None:
        if frame.isStreaming:
            say_unordered(stream)
        return Rows(frame.select(*columns), "arrival")
    places, high, low = order
    return Rows(frame.select(*columns, high.alias("_high"), low.alias("_low")), places)


def needs_now(stream: Stream) -> bool:
    """Whether anything depends on when rows come, not only on what they say."""
    by_clock = any(x is not None for x in (stream.idle, stream.ahead, stream.end_after))
    return not stream.static and (stream.timestamp is None or by_clock)


def batch_time() -> Column:
    """The time of a micro-batch in microseconds, which Spark stores with its offsets: a batch that is run again has the same.

    Spark writes the time into the code it generates, as a number, and would compile and warm up that code anew for every batch.
    It generates none for a sort with a comparison of one's own, so around it the code stays the same.
    """
    return F.array_sort(F.array(F.unix_micros(F.current_timestamp())), lambda a, b: F.lit(0))[0]
