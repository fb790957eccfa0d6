"""Replies are byte for byte what `headrace run` prints."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.run.rows import JsonLines
from headrace.oracle.rows import array_of
from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.runs.events import RowsEvent
from headrace.serve.replies import writer

INSTANTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
VALUES = {
    "BOOLEAN": st.booleans(), "TINYINT": st.integers(-128, 127), "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32), "DOUBLE": st.floats(), "STRING": st.text(), "BINARY": st.binary(max_size=5),
    "DECIMAL(10, 2)": st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2)), "DATE": st.integers(-719_162, 2_932_896),
    "TIMESTAMP": INSTANTS, "TIMESTAMP_NTZ": INSTANTS, "INTERVAL DAY TO SECOND": st.integers(-(10**17), 10**17),
    "ARRAY<STRING>": st.lists(st.none() | st.text(max_size=3), max_size=3),
    "STRUCT<a: INT, b: DOUBLE>": st.tuples(st.none() | st.integers(-5, 5), st.floats()),
    "MAP<STRING, BIGINT>": st.dictionaries(st.text(max_size=3), st.none() | st.integers(-5, 5), max_size=3),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_every_type_is_written_as_a_run_prints_it(kind, capsys):
    schema, arrow = Schema.of(**{'na"me': kind}), arrow_type(kind)

    @given(st.none() | VALUES[kind])
    def holds(value):
        array = pa.array([_for_arrow(value, arrow)], arrow) if not _is_time(arrow) else _times(value, arrow)
        JsonLines(several=False).show(RowsEvent("q", ('na"me',), pa.RecordBatch.from_arrays([array], ['na"me'])))
        assert writer(schema)((value,)) + "\n" == capsys.readouterr().out

    holds()


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)


def _times(value, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return array_of(kind, [value])
    return pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64()).view(kind)


def _for_arrow(value, kind: pa.DataType):
    if value is not None and pa.types.is_struct(kind):
        return dict(zip(kind.names, value, strict=True))
    return list(value.items()) if value is not None and pa.types.is_map(kind) else value
