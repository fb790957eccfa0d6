"""Formatting changes how a script looks and nothing else: not what it says, not its comments, and not a second time."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_golden import PRELUDE, check, load

from headrace.sql import SqlError, parse_script
from headrace.sql.errors import Text
from headrace.sql.format import text as formatter
from headrace.sql.format.text import format_script
from headrace.sql.parse.statements import statements
from headrace.sql.parse.tokens import DIALECT, STRINGS, span

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```sql[^\n]*\n(.*?)^```$|^<!-- sql setup\n(.*?)^-->$", re.M | re.S)


def reads(sql: str) -> bool:
    try:
        statements(Text(sql))
    except SqlError:
        return False
    return True


def scripts() -> dict[str, str]:
    """Every script of the repository that can be read, by where it stands."""
    found = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("examples/*.cql"))}
    for page in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]:
        for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            found[f"{page.name}:{match.start()}"] = match[1] or match[2] or ""
    for path in sorted(ROOT.glob("tests/queries/**/*.case")):
        found[f"{path.parent.name}/{path.stem}"] = re.split(r"^---- *\S+ *$", path.read_text(encoding="utf-8"), flags=re.M)[0]
    for name in ("plans.txt", "errors.txt"):
        for number, (sql, _) in enumerate(load(name)):
            found[f"{name}:{number}"] = sql
    return {name: sql for name, sql in found.items() if reads(sql)}


SCRIPTS = scripts()
EVERY = pytest.mark.parametrize("name", SCRIPTS)


def before(name: str) -> str:
    """What a script needs before it to mean something."""
    return PRELUDE if name.startswith(("plans.txt", "errors.txt")) else ""


def meaning(sql: str) -> object:
    """The plan of a script; where names are missing, its tokens without regard to case."""
    try:
        return parse_script(sql)
    except SqlError:
        return words(sql)


def words(sql: str) -> list[str]:
    """Tokens without semicolons; only what is in quotes keeps its case."""
    tokens = [t for t in DIALECT.tokenize(sql) if t.text != ";"]
    return [t.text if t.token_type in STRINGS else t.text.upper() for t in tokens]


def said(sql: str) -> list[str]:
    """What the comments say, in their order."""
    return [comment.strip() for token in DIALECT.tokenize(sql + "\n;") for comment in token.comments]


def verified(sql: str, prelude: str = "") -> str:
    """The formatted script, once all that must hold does."""
    formatted = format_script(sql)
    assert words(formatted) == words(sql)
    assert meaning(prelude + formatted) == meaning(prelude + sql)
    assert said(formatted) == said(sql)
    assert format_script(formatted) == formatted
    return formatted


def test_there_are_scripts():
    assert len(SCRIPTS) > 100
    assert {"examples/fraud.cql", "clauses/having", "plans.txt:0"} <= set(SCRIPTS)


@EVERY
def test_every_script_keeps_its_meaning_and_its_form(name, monkeypatch):
    """No statement is given up: one that would come out with another meaning is left as it is, but that is for the unforeseen."""
    judge, judged = formatter._says_the_same, []
    monkeypatch.setattr(formatter, "_says_the_same", lambda *given: judged.append(judge(*given)) or judged[-1])
    sql = SCRIPTS[name]
    formatted = verified(sql, before(name))
    assert judged or not statements(Text(sql))
    assert all(judged)
    for line in formatted.splitlines():
        bare = re.sub(r"\s*(--|/\*).*|'[^']*'", "", line)
        assert len(bare) <= 100
    if "--" not in sql and "'" not in sql and "/*" not in sql:  # how space was written does not show
        assert format_script(re.sub(r"\s+", "\n\t ", sql)) == formatted


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.cql")), ids=lambda p: p.name)
def test_the_examples_are_in_form(path):
    text = path.read_text(encoding="utf-8")
    assert format_script(text) == text


NOTES = [
    "-- a note\n",
    "/* a note */",
    "\n-- one\n\n-- two\n",
    "/* over\n   lines */\n",
    "{# a note #}",
    "/* one */ /* two */ -- three\n",
]


@given(name=st.sampled_from(sorted(SCRIPTS)), seed=st.integers(0, 2**32))
def test_comments_may_stand_anywhere(name, seed):
    rng, sql = random.Random(seed), SCRIPTS[name]
    tokens = DIALECT.tokenize(sql)
    for token in sorted(rng.sample(tokens, min(len(tokens), rng.randint(1, 4))), key=lambda t: -t.start):
        at = rng.choice([token.start, span(token).end])
        sql = f"{sql[:at]} {rng.choice(NOTES)} {sql[at:]}"
    if reads(sql):
        verified(sql, before(name))


@given(name=st.sampled_from(sorted(SCRIPTS)), seed=st.integers(0, 2**32))
def test_case_may_be_any(name, seed):
    """Quoted text and names are left alone; whatever else changes its case must still be read the same."""
    rng, sql = random.Random(seed), SCRIPTS[name]
    for token in DIALECT.tokenize(SCRIPTS[name]):
        if token.token_type not in STRINGS and rng.random() < 0.3:
            place = slice(token.start, span(token).end)
            sql = sql[: place.start] + rng.choice([str.lower, str.upper, str.title])(sql[place]) + sql[place.stop :]
    if reads(sql):
        verified(sql, before(name))


EXAMPLES = load("format.txt")


@pytest.mark.parametrize(("sql", "expected"), EXAMPLES, ids=[sql.splitlines()[0].strip("- ") for sql, _ in EXAMPLES])
def test_examples(sql, expected):
    check("format.txt", sql, expected, lambda text: verified(text).rstrip("\n"))


@pytest.mark.parametrize(("sql", "expected"), [("", ""), (" \n", ""), ("-- only\n\n-- this", "-- only\n\n-- this\n"), (";;", "")])
def test_nothing_to_format(sql, expected):
    assert format_script(sql) == expected


def test_what_cannot_be_read_is_refused_at_its_place():
    with pytest.raises(SqlError, match=r"x\.cql:2:1: "):
        format_script("SELECT a FROM s;\nSELEC b", "x.cql")


def test_functions_of_the_user_need_not_be_known():
    assert format_script("select Risk( a ) as r from s") == "SELECT Risk(a) AS r FROM s;\n"
