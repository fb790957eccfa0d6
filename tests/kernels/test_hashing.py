"""Group keys: values that GROUP BY puts together hash alike, others do not, in every type and however a column is cut."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.kernels.keys.hashing import hash_columns
from headrace.oracle.rows import group_value

COLUMNS = [
    pa.array(["a", "b", "", None, "a", "é", "a\0", "ab"]),
    pa.array([0.0, -0.0, float("nan"), None, 1.0, float("inf"), float("-inf"), 1.5]),
    pa.array([0.0, -0.0, float("nan"), None, 1.0, 2.0, -1.0, 1.5], pa.float32()),
    pa.array([0, 1, -1, None, 2**63 - 1, -(2**63), 5, 0], pa.int64()),
    pa.array([0, 1, -1, None, 2**31 - 1, -(2**31), 5, 0], pa.int32()),
    pa.array([True, False, None, True, False, None, True, True]),
    pa.array([None, *map(Decimal, ("1.10", "1.1", "-1.10", "0", "99999999.99", "0.01")), None], pa.decimal128(10, 2)),
    pa.array([None, *map(dt.date.fromisoformat, ("1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31", "1970-01-01")), None]),
]  # fmt: skip


def hashes(*columns: pa.Array) -> list[tuple[int, int]]:
    high, low = hash_columns(list(columns), len(columns[0]))
    return list(zip(np.asarray(high).tolist(), np.asarray(low).tolist(), strict=True))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.type))
def test_equal_where_group_by_says_equal(column):
    found, values = hashes(column), [group_value(v) for v in column.to_pylist()]
    for i in range(len(values)):
        for j in range(len(values)):
            assert (found[i] == found[j]) == (values[i] == values[j]), (column[i], column[j])


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.type))
def test_a_slice_hashes_like_the_whole(column):
    assert hashes(column.slice(3)) == hashes(column)[3:]


def test_columns_do_not_run_into_each_other():
    a, b = pa.array(["ab", "a"]), pa.array(["c", "bc"])
    assert len(set(hashes(a, b))) == 2
    assert hashes(a, b) != hashes(b, a)


def test_no_columns_is_one_group():
    high, low = hash_columns([], 3)
    assert len(set(zip(np.asarray(high).tolist(), np.asarray(low).tolist(), strict=True))) == 1
