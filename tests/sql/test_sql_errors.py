"""What a wrong script is told: place, underline, what was expected, what exists, what it could have meant."""

from __future__ import annotations

import pytest
from sql_golden import PRELUDE, check, ids, load

from headrace.errors import QueryError
from headrace.sql import SqlError, parse_script

CASES = load("errors.txt")


def message(sql: str) -> str:
    with pytest.raises(SqlError) as caught:
        parse_script(PRELUDE + sql)
    error = caught.value
    assert error.line >= 1
    assert error.column >= 1
    assert isinstance(error, QueryError)
    return str(error)


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=ids(CASES))
def test_error(sql, expected):
    check("errors.txt", sql, expected, message)


@pytest.mark.parametrize("sql", ["", "  \n\t", ";", ";;", "-- nothing", "/* nothing */"])
def test_an_empty_script(sql):
    with pytest.raises(SqlError, match="there is no statement"):
        parse_script(sql)


def test_the_underline_keeps_tabs():
    with pytest.raises(SqlError) as caught:
        parse_script(PRELUDE + "SELECT\tcrd FROM payments")
    assert caught.value.underlined == "  SELECT\tcrd FROM payments\n        \t^^^"


def test_long_lines_are_cut_around_the_place():
    with pytest.raises(SqlError) as caught:
        parse_script(PRELUDE + "SELECT " + "card || " * 100 + "crd FROM payments")
    shown, carets = caught.value.underlined.split("\n")
    assert len(shown) < 200
    assert shown[carets.index("^") :].startswith("crd")
    assert caught.value.column == 808


def test_lines_may_end_as_on_windows():
    with pytest.raises(SqlError) as caught:
        parse_script((PRELUDE + "SELECT card\nFROM nowhere").replace("\n", "\r\n"), name="my.cql")
    assert caught.value.where == "my.cql:4:6"
    assert caught.value.underlined == "  FROM nowhere\n       ^^^^^^^"


def test_characters_outside_ascii_count_as_one():
    with pytest.raises(SqlError) as caught:
        parse_script(PRELUDE + "SELECT 'é😀' AS x, crd FROM payments")
    assert (caught.value.line, caught.value.column) == (3, 19)


def test_deep_nesting_is_refused():
    with pytest.raises(SqlError, match="nested more than"):
        parse_script(PRELUDE + "SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM payments")


def test_long_chains_are_accepted():
    chain = " + ".join(["amount"] * 3000)
    assert parse_script(PRELUDE + f"SELECT {chain} AS x FROM payments").queries
