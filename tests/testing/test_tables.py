import datetime as dt
from decimal import Decimal

import pytest

from headrace.errors import DataError
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.testing.engine import Arrival, Batch
from headrace.testing.tables import diff, format_cell, format_table, merge_batches, read_batches, read_rows

ALL = Schema.of(at="TIMESTAMP", s="STRING", i="INT", d="DOUBLE", p="DECIMAL(5, 2)", b="BOOLEAN", day="DATE")
PAIR = Schema.of(at="TIMESTAMP", s="STRING")
UTC = dt.UTC


def test_cells_of_every_type():
    rows = read_rows(
        ALL,
        """
        | at                         | s      | i    | d    | p    | b     | day        |
        |----------------------------|--------|------|------|------|-------|------------|
        | 1.000001                   | word   | -7   | nan  | 1.5  | true  | 1969-12-31 |
        | 12:00:01                   | 'NULL' | NULL | -inf | NULL | false | NULL       |
        | 1969-12-31 23:59:59.999999 | ''     |      | -0.0 | 1.25 |       |            |
        """,
    )
    assert str(rows[0][3]) == "nan"
    assert rows[0][:3] + rows[0][4:] == (
        dt.datetime(1970, 1, 1, 0, 0, 1, 1, UTC), "word", -7, Decimal("1.50"), True, dt.date(1969, 12, 31),
    )  # fmt: skip
    assert rows[1] == (dt.datetime(1970, 1, 1, 12, 0, 1, tzinfo=UTC), "NULL", None, float("-inf"), None, False, None)
    assert rows[2][0] == dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)
    assert rows[2][1:3] == ("", None)
    assert str(rows[2][3]) == "-0.0"
    assert str(read_rows(ALL, format_table(ALL.names, [list(map(format_cell, row)) for row in rows]))) == str(rows)


def test_batches_by_now_with_partitions_and_pauses():
    batches = read_batches(
        "p", PAIR, "| now | at | s | partition |\n| 1 | 0 | a | 1 |\n| 1 | 0 | b |  |\n| 2 | . | . | . |\n| 3 | 2 | c | 0 |"
    )
    assert [(b.now, [(a.values[1], a.partition) for a in b.rows["p"]]) for b in batches] == [
        (SECOND, [("a", 1), ("b", 0)]), (2 * SECOND, []), (3 * SECOND, [("c", 0)]),
    ]  # fmt: skip


def test_batches_by_number_or_one_by_one():
    by_number = read_batches("p", PAIR, "| batch | at | s |\n| 0 | 0 | a |\n| 0 | 1 | b |\n| 4 | 2 | c |")
    assert [(b.now, len(b.rows["p"])) for b in by_number] == [(0, 2), (4 * SECOND, 1)]
    assert [b.now for b in read_batches("p", PAIR, "| at | s |\n| 0 | a |\n| 0 | a |")] == [0, SECOND]


def test_merging_streams():
    a, b = (Batch(t, {name: [Arrival((t, name))]}) for t, name in ((1, "x"), (1, "y")))
    assert merge_batches([a], [b, Batch(0)]) == [Batch(0, {}), Batch(1, {**a.rows, **b.rows})]


def test_changes_and_their_diff():
    a, b, c = read_rows(PAIR, "| at | s |\n| 0 | a |\n| 0 | b |\n| 0 | c |")
    changes = [(-1, (0, "a")), (1, (0, "b"))]
    assert diff(PAIR, [(1, b), (-1, a)], changes) == ""
    lines = diff(PAIR, [(1, b), (1, c)], changes).splitlines()
    assert lines[1] == "| missing    | +   | 1970-01-01 00:00:00 | c |"
    assert lines[2:] == ["| unexpected | -   | 0                   | a |"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("nothing", "no header"),
        ("| at | s |\n| 1 |", "1 cells"),
        ("| att |\n| 1 |", "Did you mean 'at'"),
        ("| at |\n| x |", "not an instant"),
    ],
)
def test_bad_tables(text, match):
    with pytest.raises(DataError, match=match):
        read_rows(PAIR, text)
