"""The hash of one event's key is that of a column with it, for every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.changes.values import column_of
from headrace.kernels.keys.hashing import hash_columns
from headrace.kernels.single import record as r
from headrace.kernels.single.identity import identity_at
from headrace.plan.arrow import arrow_type
from headrace.steps.windows.single.inputs import Inputs, how_it_lies

EPOCH = dt.date(1970, 1, 1)
VALUES = {
    "STRING": ("a", "b", "", None, "a\0", "é", "z\U0001f600", "12345678", "123456789", "x" * 1000),
    "BINARY": (b"", None, b"\0", b"\xff" * 17),
    "DOUBLE": (0.0, -0.0, float("nan"), -float("nan"), None, 1.5, float("inf"), float("-inf"), 5e-324),
    "FLOAT": (0.0, -0.0, float("nan"), None, 1.5, float("-inf")),
    "BIGINT": (0, 1, -1, None, 2**63 - 1, -(2**63)),
    "INT": (0, -1, None, 2**31 - 1, -(2**31)),
    "SMALLINT": (0, -1, None),
    "TINYINT": (0, -1, None),
    "BOOLEAN": (True, False, None),
    "DATE": (0, -1, None, 20_000),
    "TIMESTAMP": (0, -1, None, 2**60),
    "TIMESTAMP_NTZ": (0, -1, None),
    "INTERVAL DAY TO SECOND": (0, -5, None),
    "DECIMAL(10, 2)": (Decimal("1.10"), Decimal("1.1"), Decimal("-1.10"), Decimal(0), None, Decimal("99999999.99")),
    "DECIMAL(38, 0)": (Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(2**64), Decimal(-1), None),
    "DECIMAL(38, 20)": (Decimal("0.00000000000000000001"), Decimal("-123456789012345678.5"), None),
}


def single_hash(types: list[str], values: tuple) -> tuple[int, int]:
    inputs = Inputs(types, range(len(types)))
    record = np.zeros(r.INPUTS + r.INPUT * len(types) + 2 * len(types), np.int64)
    listed = r.INPUTS + r.INPUT * len(types)
    record[listed:] = [word for i in range(len(types)) for word in (inputs.place[i], inputs.lies[i])]
    inputs.put(record.data.cast("B"), (0,) * 7, values)
    record[r.TEXT] = inputs.text.ctypes.data
    return tuple(map(int, identity_at(record.ctypes.data, listed, len(types))))


def column_hash(types: list[str], values: tuple) -> tuple[int, int]:
    columns = [column_of(arrow_type(kind), [value]) for kind, value in zip(types, values, strict=True)]
    high, low = hash_columns(columns, 1)
    return int(high[0]), int(low[0])


@pytest.mark.parametrize("kind", VALUES)
def test_every_type(kind):
    for value in VALUES[kind]:
        assert single_hash([kind], (value,)) == column_hash([kind], (value,)), value


def test_several_columns_together():
    types = list(VALUES)
    for i in range(12):
        values = tuple(VALUES[kind][(i + j) % len(VALUES[kind])] for j, kind in enumerate(types))
        assert single_hash(types, values) == column_hash(types, values)
    assert single_hash([], ()) == column_hash([], ()) or hash_columns([], 1)


def test_types_that_no_words_are_for():
    assert how_it_lies("ARRAY<INT>") is None
    assert pa.types.is_list(arrow_type("ARRAY<INT>"))


def test_a_decimal_with_more_places_than_its_type_is_refused():
    with pytest.raises(ValueError, match="more than 2 decimal places"):
        single_hash(["DECIMAL(10, 2)"], (Decimal("1.105"),))
