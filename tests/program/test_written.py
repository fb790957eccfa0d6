"""Programs as text: all that the scripts of the tests come to is written and read again, and what cannot be is told in words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from headrace.errors import HeadraceError, StateError
from headrace.plan.query import Emit
from headrace.program.script import ScriptProgram
from headrace.program.stage import Stage
from headrace.program.written import read, write
from headrace.stages.lower import lower
from headrace.testing.cases import read_case

CASES = sorted((Path(__file__).parents[1] / "queries").glob("*/*.case"))


@cache
def programs() -> dict[str, ScriptProgram]:
    found = {}
    for path in CASES:
        lowered = lower(read_case(path).script)
        feeds = tuple((f.query.name, str(f.query.node)) for f in lowered.feeds)
        queries = tuple((f.query.name, f.query.emit) for f in lowered.finishes)
        found[path.stem] = ScriptProgram(lowered.stages, 8, feeds, queries, tuple(s.name for s in lowered.streams))
    return found


def test_what_is_written_is_read():
    kinds = set()
    for name, program in programs().items():
        again = read(write(program))
        assert again == program, name
        assert repr(again) == repr(program), name  # state is known again by it
        kinds |= {type(stage.program).__name__ for stage in program.stages}
    assert kinds == {"RowsProgram", "WindowsProgram", "JoinProgram", "PatternProgram"}


def some() -> dict:
    (stage, *_), queries = next(iter(programs().values())).stages, (("q", Emit.FINAL),)
    assert isinstance(stage, Stage)
    return json.loads(write(ScriptProgram((stage,), 2, queries=queries)))


def test_fields_that_are_missing_take_their_default():
    about = some()
    for field in ("sources", "feeds"):
        del about[field]
    del about["stages"][0]["level"]
    assert read(json.dumps(about)).stages[0].level == 1


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("stages", 0, "is"), "Scene", "has a 'Scene'"),
        (("stages", 0, "colour"), "red", r"has Stage\.colour"),
        (("queries", 0, 1, "which"), "SOMETIMES", "has Emit 'SOMETIMES'"),
        (("stages", 0, "name"), ..., "a Stage without name"),
        (("is",), "Stage", "cannot be read|Stage without|Stage.buckets"),
    ],
)
def test_what_is_not_understood_is_told(path, value, words):
    about = some()
    place = about
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(StateError, match=words):
        read(json.dumps(about))


def test_half_a_text_is_told():
    with pytest.raises(HeadraceError, match="cannot be read"):
        read(json.dumps(some())[:-5])
    with pytest.raises(HeadraceError, match="it is none"):
        read("[]")
