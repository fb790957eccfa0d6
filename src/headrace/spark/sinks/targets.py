"""Where the rows of each query go, as the sink understands it."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from headrace.errors import OutputError, QueryError
from headrace.plan.query import ConsoleSink, FileSink, Script, StreamSink, TableSink
from headrace.spark.plan import has_op, shown
from headrace.spark.sinks.signs import judge
from headrace.spark.sinks.sink import Target
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.lock import NAME
from headrace.spark.storage.storage import LOCAL, absolute, is_local, join, read_facts
from headrace.stages.lower import Finish, Lowered
from headrace.state.codec import FORMAT


def targets_of(spark: SparkSession, lowered: Lowered, facts: Checkpoint, *, follow: bool) -> list[Target]:
    """One target per query. What has no place of its own is shown: it goes by way of files under the checkpoint."""
    places = shown(lowered)[1]
    targets = []
    for number, finish in enumerate(lowered.finishes):
        columns, query = tuple(n for n, _ in finish.items), finish.query
        name = lowered.called.get(query.name, query.name)
        target = Target(number, "", "parquet", columns, places[number], has_op(finish), query.emit.ordered, name, facts.id)
        match query.sink:
            case FileSink() as sink:
                target = _into(target, sink)
            case TableSink(name=name):
                target = replace(target, path=_table(spark, name, finish))
            case ConsoleSink() | StreamSink():
                target = replace(target, path=join(facts.path, "console", str(number)), format="arrow", owner="")
        _check_ends(target, follow=follow)
        targets.append(target)
    return targets


def _into(target: Target, sink: FileSink) -> Target:
    return replace(target, path=absolute(sink.path), format=sink.format, single=sink.single, compression=sink.compression)


def _check_ends(target: Target, *, follow: bool) -> None:
    if follow and target.single and (not target.grows or not is_local(target.path)):
        why = f"a {target.format} file cannot grow" if not target.grows else "a file can grow only on a local disk"
        raise QueryError(
            f"{target.path!r} would be written when the input ends, and with --follow it never does: {why}",
            hint=f"write '{target.path}/' for a directory that gets files with every batch"
            + (", or end it in .csv or .jsonl" if not target.grows else ""),
        )


def check_outputs(script: Script, checkpoint: str | None, *, follow: bool, overwrite: bool) -> None:
    """Refuse outputs on this machine that belong to others: before Spark starts, so that who is refused is refused at once."""
    stored = read_facts(LOCAL, join(absolute(checkpoint), NAME)) if checkpoint is not None and is_local(checkpoint) else None
    if checkpoint is not None and not is_local(checkpoint):
        return  # whose they are is known when it can be read
    facts = Checkpoint("", FORMAT, "", 0, id=(stored or {}).get("id", "new"), adopts=stored is not None and "id" not in stored)
    for query in script.queries:
        if isinstance(query.sink, FileSink) and is_local(query.sink.path):
            target = _into(Target(0, "", "", (), (), False, False, query.name, facts.id), query.sink)
            _check_ends(target, follow=follow)
            judge(target, facts, overwrite=overwrite, storage=LOCAL)


def arrow_schema(target: Target, wide: StructType) -> pa.Schema:
    fields = [pa.field("_op", pa.string())] if target.op else []
    of = {field.name: field.dataType for field in wide.fields}
    for name, place in zip(target.columns, target.places, strict=True):
        fields.append(pa.field(name, to_arrow_type(of[f"o{place}"], timezone="UTC")))
    return pa.schema(fields)


def refresh_tables(spark: SparkSession, lowered: Lowered) -> None:
    """Have the session look again which files tables have."""
    for finish in lowered.finishes:
        if isinstance(finish.query.sink, TableSink):
            spark.catalog.refreshTable(finish.query.sink.name)


def _table(spark: SparkSession, name: str, finish: Finish) -> str:
    """The directory of a Spark table, which is made if it does not exist."""
    fields = ", ".join(f"`{f.name}` {f.type}" for f in finish.query.node.schema.fields)
    op = "`_op` STRING, " if has_op(finish) else ""
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({op}{fields}) USING parquet")
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()  # to open the table would have Spark remember its files
    rows = {r["col_name"]: r["data_type"] for r in described}
    if rows.get("Provider", "").lower() != "parquet" or "# Partition Information" in rows:
        hint = "name a new table, which is made, or one made with USING parquet and no partitions"
        raise OutputError(f"table {name} is there, and is not a plain table of parquet: {rows.get('Provider')}", hint=hint)
    want = [*(["_op"] if op else []), *finish.query.node.schema.names]
    have = [r["col_name"] for r in takewhile(lambda r: r["col_name"] and not r["col_name"].startswith("#"), described)]
    if [n.lower() for n in want] != [n.lower() for n in have]:
        hint = "name another table"
        raise OutputError(f"table {name} has the columns {', '.join(have)}, and the query gives {', '.join(want)}", hint=hint)
    return absolute(rows["Location"])
