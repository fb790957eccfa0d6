"""Values of every type, there and back: through Arrow, and over the wire."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from headrace.changes.values import column_of, values_of
from headrace.plan.arrow import arrow_type
from headrace.serve.values import wire

VALUES = [
    ("BOOLEAN", True), ("BIGINT", -(2**63)), ("DOUBLE", -0.0), ("FLOAT", 1.5), ("STRING", "é"), ("BINARY", b"\x00\xff"),
    ("DECIMAL(10, 2)", Decimal("-1.50")), ("TIMESTAMP", -1), ("TIMESTAMP_NTZ", 1_500_000), ("DATE", -3),
    ("INTERVAL DAY TO SECOND", 7), ("ARRAY<INT>", [1, None]), ("ARRAY<DECIMAL(5, 1)>", [Decimal("2.5"), None]),
    ("STRUCT<a: INT, b: STRING>", (1, None)), ("STRUCT<a: DECIMAL(5, 1), at: TIMESTAMP>", (Decimal("0.1"), 5)),
    ("MAP<STRING, INT>", {"x": 1, "y": None}), ("MAP<STRING, DECIMAL(5, 1)>", {"x": Decimal("1.0"), "y": None}),
    ("ARRAY<TIMESTAMP>", [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda v: v if isinstance(v, str) else "")
def test_there_and_back(kind, value):
    assert values_of(column_of(arrow_type(kind), [value, None])) == [value, None]
    pack, unpack = wire([kind, kind])
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(list(pack([value, None]))))
    found = unpack(sent)[0]
    assert (tuple(found) if isinstance(value, tuple) else found) == value
    assert unpack(sent)[1] is None
