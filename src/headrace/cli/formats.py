"""Writing generated rows as CSV, JSON lines or parquet, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet


def write(file: BinaryIO, form: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    match form:
        case "csv":
            file.write((",".join(schema.names) + "\n").encode())
            # Generated strings hold nothing that CSV must quote; Arrow refuses if that should ever change.
            plain = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            return _with(pyarrow.csv.CSVWriter(file, schema, write_options=plain), batches)
        case "parquet":
            return _with(pyarrow.parquet.ParquetWriter(file, schema, compression="zstd"), batches)
        case "json":
            rows = 0
            for batch in batches:
                file.writelines(json_lines(batch))
                rows += batch.num_rows
            return rows
    raise AssertionError(f"no writer for {form}")


def _with(writer: Any, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def json_lines(batch: pa.RecordBatch) -> Iterator[bytes]:
    """A line per row, put together by column. Generated strings hold nothing that JSON escapes."""
    pieces: list[Any] = []
    for position, field in enumerate(batch.schema):
        pieces += [f'{"{" if position == 0 else ", "}"{field.name}": ', _json_values(batch.column(position))]
    lines = pc.binary_join_element_wise(*pieces, "}\n", "")
    return (line.encode() for line in lines.to_pylist())


def _json_values(column: pa.Array) -> pa.Array:
    quote = '"' if pa.types.is_string(column.type) or pa.types.is_timestamp(column.type) else ""
    return pc.fill_null(pc.binary_join_element_wise(quote, column.cast(pa.string()), quote, ""), "null")
