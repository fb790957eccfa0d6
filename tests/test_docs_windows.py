"""The tables of docs/windows.md that say what profiles do: each cell is computed."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.plan.profiles import PROFILES
from headrace.plan.query import Emit, Script
from headrace.sql import parse_script
from headrace.sql.errors import CannotRun
from headrace.testing.engine import Arrival, Batch
from headrace.testing.local import LocalEngine

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "windows.md").read_text(encoding="utf-8")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EXAMPLES = (1, 2, 3)


def table(head: str) -> dict[str, list[str]]:
    """The rows of the table whose first line begins like this, by their first cell."""
    lines = PAGE.split(f"\n| {head}", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def script_of(number: int) -> str:
    return re.search(rf"^```sql file=example_{number}\.cql\n(.*?)^```", PAGE, re.M | re.S)[1]


def rows_of(number: int) -> list[tuple[int, float]]:
    return [(int(a), float(v)) for a, v in re.findall(r"\((\d+), (\d+)\)", table("example | rows")[str(number)][0])]


def outcome(number: int, profile: str) -> str:
    """What leaves before the input ends; what leaves then, behind a semicolon. Nothing waits: the input is in order."""
    try:
        given = parse_script(script_of(number).replace("DELAY 1 SECOND", "DELAY 0"), profile=profile)
    except CannotRun:
        return "cannot"
    script = Script(tuple(replace(q, emit=Emit.FINAL_IN_ORDER) for q in given.queries), given.streams)
    engine = LocalEngine(script, buckets=1)
    arrivals = [Arrival((EPOCH + dt.timedelta(seconds=at), value)) for at, value in rows_of(number)]
    (before,) = engine.push(Batch(0, {"s": arrivals})).values()
    (after,) = engine.finish(0).values()
    return " ; ".join(", ".join(f"{change.row[0]:g}" for change in part) for part in (before, after) if part)


@pytest.mark.parametrize("profile", PROFILES)
def test_what_profiles_make_of_the_examples(profile):
    assert table("under | example 1")[profile] == [outcome(number, profile) for number in EXAMPLES]


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_files_are_the_input_that_is_shown(number):
    found = re.search(rf"^<!-- file example_{number}\.csv\n(.*?)^-->", PAGE, re.M | re.S)[1]
    lines = [f"1970-01-01 00:00:{at:02}Z,{value:g}" for at, value in rows_of(number)]
    assert found.splitlines() == ["at,value", *lines]


def test_profiles_are_told_in_their_own_words():
    assert {name: words for name, (words,) in table("profile | |").items()} == {p.name: p.words for p in PROFILES.values()}


@pytest.mark.parametrize(
    ("number", "profile", "printed"),
    [
        (1, "oracle-cep", "20, 50"), (1, "flink", "15, 40"),
        (2, "oracle-cep", "10, 15, 20"), (2, "coral8", "10, 15, 20"), (2, "flink", "10, 15, 15, 15, 15, 20"),
        (3, "oracle-cep", "20, 30, 70, 80"), (3, "flink", "10, 20, 30, 40, 50, 60, 70, 80"),
        (3, "coral8", "10, 20, 30, 40, 50, 60, 70, 80"),
    ],
)  # fmt: skip
def test_what_the_thesis_prints_comes_first(number, profile, printed):
    assert outcome(number, profile).replace(" ; ", ", ").startswith(printed)


def test_what_engines_can_run():
    said = {name: set(cell.replace("`", "").split(", ")) for name, (cell,) in table("profile | can run").items()}
    assert said.pop("headrace") == {"everything"}
    assert said == {p.name: {a.value for a in p.can} for p in PROFILES.values() if p.name != "headrace"}
