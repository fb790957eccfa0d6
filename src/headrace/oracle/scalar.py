"""Scalar Spark SQL expressions over rows or Arrow batches without Spark: sqlglot translates, DuckDB evaluates, in UTC.

For the oracle and the in-process runtime. What DuckDB does otherwise than Spark and sqlglot does not translate is put right here
where tests need it (a cast to an integer cuts off the fraction); the meaning of an exotic function is settled by Spark alone.
The simplest expressions are read from the columns themselves (`simple.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from headrace.errors import DataError
from headrace.oracle import simple
from headrace.oracle.rows import Row, batch_of_rows, rows_of_batch
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.schema import Schema
from headrace.plan.types import INTEGRAL, base_type

_MOST_BYTES = 20_000  # of a batch whose values are remembered


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One connection for the process; one thread, so that rows come back in the order they went in."""
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute("SET TimeZone = 'UTC'")
    for unit, micros in (("micros", 1), ("millis", 1_000), ("seconds", 1_000_000)):
        connection.execute(f"CREATE MACRO timestamp_{unit}(x) AS make_timestamptz(CAST(x * {micros} AS BIGINT))")
    return connection


def evaluate(exprs: Sequence[Expr], schema: Schema, rows: Sequence[Sequence[Any]]) -> list[Row]:
    if all(e.as_column is not None for e in exprs):
        places = [_place(schema, e) for e in exprs]
        return [tuple(row[i] for i in places) for row in rows]
    if not rows:
        return []
    return rows_of_batch(evaluate_batch(exprs, schema, batch_of_rows(schema, rows)))


def evaluate_batch(
    exprs: Sequence[Expr], schema: Schema, batch: pa.RecordBatch, names: Sequence[str] | None = None
) -> pa.RecordBatch:
    """The values of the expressions as columns c0, c1, .. or of the names given, in the Arrow types of Spark's types."""
    names = list(names) if names is not None else [f"c{i}" for i in range(len(exprs))]
    columns: dict[int, pa.Array] = {}
    computed = []
    for i, expr in enumerate(exprs):
        if expr.as_column is not None:
            columns[i] = batch.column(_place(schema, expr))
        elif (read := simple.reader(expr, schema)) is not None:
            columns[i] = read(batch)
        else:
            computed.append(i)
    if computed:
        found = _run(tuple(exprs[i] for i in computed), schema, batch)
        columns |= dict(zip(computed, found, strict=True))
    if not exprs:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays([columns[i] for i in range(len(exprs))], names=names)


def holds(predicate: Expr | None, schema: Schema, rows: Sequence[Sequence[Any]]) -> list[bool]:
    """For every row, whether the predicate is true; NULL is not."""
    if predicate is None:
        return [True] * len(rows)
    return [value is True for (value,) in evaluate((predicate,), schema, rows)]


def _place(schema: Schema, expr: Expr) -> int:
    name = expr.as_column
    assert name is not None, f"{expr} is not a column"
    return schema.fields.index(schema.field(name))


def _run(exprs: tuple[Expr, ...], schema: Schema, batch: pa.RecordBatch) -> list[pa.Array]:
    if batch.num_columns == 0:  # DuckDB has no tables without columns
        batch = pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.int8())], names=["_"])
    else:
        batch = pa.RecordBatch.from_arrays(batch.columns, names=list(schema.names))
    if batch.nbytes > _MOST_BYTES:
        return _compute(exprs, schema, batch)
    return _known(exprs, schema, _Content(batch, batch.schema, batch.serialize().to_pybytes()))


@dataclass(frozen=True, slots=True)
class _Content:
    """A batch that is the same as any other with the same rows."""

    batch: pa.RecordBatch = field(compare=False)
    schema: pa.Schema
    data: bytes


@lru_cache(maxsize=32_768)
def _known(exprs: tuple[Expr, ...], schema: Schema, rows: _Content) -> list[pa.Array]:
    """A test asks for the same again and again: with other buckets, after restarts, for the oracle."""
    return _compute(exprs, schema, rows.batch)


def _compute(exprs: tuple[Expr, ...], schema: Schema, batch: pa.RecordBatch) -> list[pa.Array]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that rows are copied: a relation would not, but takes twice as long to be bound
            table: pa.Table = _connection().execute(f"SELECT {_select(exprs, schema)} FROM batch").to_arrow_table()
    except duckdb.Error as error:
        raise DataError(f"{', '.join(map(str, exprs))} cannot be evaluated: {error}") from error
    return [_typed(column.combine_chunks(), _kind(expr, schema)) for column, expr in zip(table.columns, exprs, strict=True)]


def _typed(column: pa.Array | pa.ChunkedArray, kind: str) -> pa.Array:
    """As the type that Spark gives it, as far as that is known."""
    if isinstance(column, pa.ChunkedArray):  # no chunk at all
        column = pa.array([], column.type)
    return column if kind == UNKNOWN_TYPE else column.cast(arrow_type(kind))


@lru_cache(maxsize=4096)
def _kind(expr: Expr, schema: Schema) -> str:
    """The type of an expression, asked for again and again."""
    return expr.type_in(schema)


@lru_cache(maxsize=1024)
def _select(exprs: tuple[Expr, ...], schema: Schema) -> str:
    return ", ".join(f"{_cast(expr, schema)} AS c{i}" for i, expr in enumerate(exprs))


def _cast(expr: Expr, schema: Schema) -> str:
    """One expression in DuckDB's dialect, cast to its type so that the result does not depend on DuckDB's rules."""

    def cut(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Cast) and node.to.sql(dialect="spark").upper() in INTEGRAL:
            inner = Expr.of(node.this.sql(dialect="spark")).type_in(schema)
            if base_type(inner) in ("FLOAT", "DOUBLE", "DECIMAL"):
                node.set("this", exp.Trunc(this=node.this))
        return node

    kind = _kind(expr, schema)
    text = expr.tree.transform(cut).sql(dialect="duckdb", identify=True)
    if kind in (UNKNOWN_TYPE, "NULL", "VOID"):
        return f"({text})"
    if arrow_type(kind) == pa.duration("us"):
        return f"epoch_us({text})"  # Arrow does not convert the intervals of DuckDB, which have months beside days and times
    return f"CAST(({text}) AS {exp.DataType.build(kind, dialect='spark').sql(dialect='duckdb')})"
