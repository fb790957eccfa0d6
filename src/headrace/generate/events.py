"""Any rows of a generated stream, cut out of its blocks."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from headrace.errors import QueryError, unknown
from headrace.generate import payments, rfid, sequence, ticks
from headrace.generate.draws import BLOCK
from headrace.generate.options import Options
from headrace.plan.arrow import arrow_schema
from headrace.plan.schema import Schema

KINDS = {"payments": payments, "rfid": rfid, "ticks": ticks, "sequence": sequence}
SCHEMAS: dict[str, Schema] = {kind: module.SCHEMA for kind, module in KINDS.items()}


def events(kind: str, options: Options, first_row: int, n_rows: int) -> pa.RecordBatch:
    """Rows [first_row, first_row + n_rows) in arrival order; fewer where `options.rows` ends the stream.

    The same rows come back however the range is cut:

    >>> from headrace.generate import Options
    >>> whole = events("ticks", Options(), 0, 10)
    >>> whole.slice(4, 3).equals(events("ticks", Options(), 4, 3))
    True
    """
    if kind not in SCHEMAS:
        raise QueryError(unknown("generator", kind, SCHEMAS))
    if first_row < 0 or n_rows < 0:
        raise ValueError(f"rows {first_row} to {first_row + n_rows} do not exist")
    end = first_row + n_rows
    if options.rows is not None:
        end = min(end, options.rows)
    parts = []
    for number in range(first_row // BLOCK, -(-end // BLOCK)):
        begin = max(first_row - number * BLOCK, 0)
        parts.append(_block(kind, options, number).slice(begin, min(end - number * BLOCK, BLOCK) - begin))
    if end <= first_row or not parts:
        return pa.RecordBatch.from_pylist([], schema=arrow_schema(SCHEMAS[kind]))
    if len(parts) == 1:
        return parts[0]
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


# A source that asks for a few rows at a time would otherwise make a whole block for each request.
@lru_cache(maxsize=8)
def _block(kind: str, options: Options, number: int) -> pa.RecordBatch:
    return KINDS[kind].block(options, number)
