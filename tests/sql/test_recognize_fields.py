"""Fields of structs in MATCH_RECOGNIZE: the symbol stands in front of all other parts of a name."""

from __future__ import annotations

import pytest

from headrace.sql import SqlError, parse_script

STREAM = """CREATE STREAM r (v INT, f STRING, s STRUCT<f: INT, g: STRUCT<h: INT>>, at TIMESTAMP)
  SOURCE FILE('r.csv') TIMESTAMP BY at DELAY 0;
"""
DEPENDS = "C depends on which row is taken for B, and only the first that fits is tried"


def plan(define: str, by: str = "f"):
    text = f"""SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY {by} ORDER BY at MEASURES C.v AS v AFTER MATCH SKIP TO NEXT ROW
      PATTERN (A X*? B Y*? C) WITHIN 1 HOUR DEFINE B AS B.v > 10, {define})"""
    return parse_script(STREAM + text).queries[0].node


@pytest.mark.parametrize("of_b", ["B.v", "B.s.f", "b.s.g.h", "`B`.s.f", "B.s.f + 1", "ABS(B.s.f)", "FIRST(B.s.f)"])
def test_no_condition_depends_on_a_row_that_could_be_another(of_b):
    with pytest.raises(SqlError, match=DEPENDS.replace("B,", "[Bb],")):
        plan(f"C AS C.v > 100 AND C.s.f > {of_b}")


@pytest.mark.parametrize("define", ["C AS C.s.f > A.s.f", "C AS s.f > A.s.g.h", "C AS C.s.g.h > 3"])
def test_conditions_on_a_row_itself_and_on_the_first(define):
    assert plan(define).schema.names == ("f", "v")


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        ("f", "A_f"),
        ("r.f", "A_f"),
        ("s.f", "(A_s).f"),
        ("r.s.f", "(A_s).f"),
        ("s.g.h", "(A_s).g.h"),
        ("ABS(s.f)", "ABS((A_s).f)"),
    ],
)
def test_the_key_that_is_shown_is_the_one_that_parts_the_rows(by, shown):
    """A column f and a field f are two things."""
    node = plan("C AS C.v > 3", by)
    name, value = node.items[0]
    assert (name, value.sql) == (by if "(" in by else by.split(".")[-1], shown)
    keys = [[term.sql.replace("((A_s))", "(A_s)") for term in terms] for terms in node.input.keys]
    assert any(shown in terms for terms in keys)
