"""Every case of tests/queries on Spark. Some cases of a folder run together as one script, because a run costs seconds.

`HEADRACE_ALONE=1` runs each case by itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from case_driver import Placed, run_cases

from headrace.testing.cases import check_end, read_case

FOLDER = Path(__file__).parents[1] / "queries"
TOGETHER = 1 if os.environ.get("HEADRACE_ALONE") else 12
FILES = [path for path in sorted(FOLDER.glob("*/*.case")) if "spark" not in read_case(path).left_out]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def parameters() -> list[object]:
    out: list[object] = []
    for path in FILES:
        why = read_case(path).broken.get("spark")
        marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
        out.append(pytest.param(name_of(path), id=name_of(path), marks=marks))
    return out


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """Gives a case that has run, with all those that run together with it."""
    done: dict[str, Placed] = {}

    def get(name: str) -> Placed:
        if name not in done:
            folder = [p for p in FILES if p.parent.name == name.split("/")[0]]
            first = [name_of(p) for p in folder].index(name) // TOGETHER * TOGETHER
            cases = {name_of(p): read_case(p) for p in folder[first : first + TOGETHER]}
            done.update(run_cases(spark, cases, tmp_path_factory.mktemp("cases")))
        return done[name]

    return get


@pytest.mark.parametrize("name", parameters())
def test_on_spark(ran, name):
    placed = ran(name)
    for query in placed.case.script.queries:
        check_end(placed.case, query, placed.rows(query))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
