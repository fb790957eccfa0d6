"""What `headrace explain` says, word for word: a script and its text stand side by side in `explain/`.

`HEADRACE_UPDATE=1 pytest tests/stages/test_explain.py` writes what came out; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.sql import parse_script
from headrace.stages.explain import explain_script

SCRIPTS = sorted((Path(__file__).parent / "explain").glob("*.cql"))


def explained(text: str) -> str:
    return explain_script(parse_script(text))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_explain_says_how_a_script_runs(path):
    got = explained(path.read_text(encoding="utf-8")) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("HEADRACE_UPDATE"):
        golden.write_text(got, encoding="utf-8")
    assert got == golden.read_text(encoding="utf-8")


def test_what_is_shared_is_said_once():
    text = explained((Path(__file__).parent / "explain" / "shared.cql").read_text(encoding="utf-8"))
    assert text.count("exact sum of amount") == 1
    assert "5 minutes ago: rows enter [RANGE 1 HOUR LAG 5 MINUTES], leave [RANGE 5 MINUTES]" in text
    assert text.count("\nstage ") == 1


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "examples").glob("*.cql")), ids=lambda p: p.name)
def test_examples_are_explained(path):
    assert "on Spark:" in explained(path.read_text(encoding="utf-8"))
