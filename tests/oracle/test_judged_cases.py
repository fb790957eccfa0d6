"""The `.case` files of windows, joins and cascades against the judge: their outputs were written by the oracle, which must not be
the only one to say so. What the judge cannot say is listed, so that a query does not drop out of this silently."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged import disagreements
from sql_judge import CannotSay, Judge

from headrace.testing.cases import read_case

QUERIES = Path(__file__).parents[1] / "queries"
FOLDERS = ("windows", "windows_of_the_paper", "joins", "cascades", "sharing")
CASES = {f"{path.parent.name}/{path.stem}": path for folder in FOLDERS for path in sorted((QUERIES / folder).glob("*.case"))}
BEYOND = {
    "windows/system": "system time: the arrival of rows is part of the input",
    "windows/where_after_system": "the same",
    "cascades/split_then_merge": "ON .. INSERT and MERGE",
    "cascades/unique_then_merge": "UNIQUE BY and MERGE",
    "sharing/over_different_keys": "OVER: tests/steps/test_over.py asks DuckDB the same text",
    "windows/over": "the same",
    "windows/over_in_order": "the same",
    "sharing/two_streams": "late(s)",
}


@pytest.mark.parametrize("name", [name for name in CASES if name not in BEYOND])
def test_case(name):
    case = read_case(CASES[name])
    unsaid = [sql for sql in Judge(case.sql, {}).unsaid.values() if " WITH (" not in sql and "BATCH BY" not in sql]
    assert not unsaid, "list it in BEYOND, with the reason"
    wrong, same = disagreements(case.sql, case.script, case.batches)
    assert not wrong, "\n".join(wrong)
    assert same, "nothing was compared"


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_beyond_the_judge_is_so_still(name):
    try:
        judge = Judge(read_case(CASES[name]).sql, {})
    except CannotSay:
        return
    assert judge.unsaid
