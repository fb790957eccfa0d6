"""Rows that a window has by partition are in rings of its own: no other window can be made of them."""

from __future__ import annotations

from headrace.evolution.compare import compare
from headrace.sql import parse_script
from headrace.stages.lower import lower
from headrace.stages.meaning import program_of

STREAM = """CREATE STREAM s (at TIMESTAMP, k STRING) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
SELECT k, COUNT(*) AS n FROM s [ROWS 100{by}] INTO a;"""
ADDED = "\nSELECT COUNT(*) AS n FROM s [ROWS 5] INTO b;"


def lacking(by):
    sql = STREAM.format(by=by)
    return compare(*(program_of(lower(parse_script(text))) for text in (sql, sql + ADDED))).lacking


def test_the_last_rows_of_partitions_are_not_the_last_rows():
    assert lacking(" PARTITIONED BY k") == {"b": ("the last 5 rows; the checkpoint has none",)}
    assert lacking("") == {}
