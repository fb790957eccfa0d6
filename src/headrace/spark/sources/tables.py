"""Tables: read whole before a query starts, packed like rows of a stream, and given to every bucket before its first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.errors import DataError
from headrace.spark.exchange.pack import Packing
from headrace.spark.sources.rejects import REJECTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_table(packing: Packing, packed: DataFrame, cells: dict[int, list[tuple[str, bytes]]]) -> None:
    """Add the cells of a table. A row that cannot be read is an error: nobody would look for it among what is rejected later."""
    for row in packed.collect():
        body = bytes(row["body"])
        if row["label"] == packing.rejected_label:
            batch = pa.ipc.read_record_batch(pa.py_buffer(body), REJECTED)
            raise DataError(
                f"a row of table {packing.stream!r} cannot be read: {batch.column('reason')[0]}",
                where=str(batch.column("row")[0]),
            )
        cells.setdefault(row["label"], []).append((row["head"], body))
