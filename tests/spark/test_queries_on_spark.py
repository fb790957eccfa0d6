"""Cases of tests/queries on Spark, batch by batch: those of `cases.txt`, which together have all that any has (`cover.py`).

Some run together as one script: a run costs seconds. Runs differ in the number of buckets, and each is stopped between two of its
batches and started again from its checkpoint. Of a case of many batches, some come together. `HEADRACE_THROUGHOUT=1` runs every
case with every number of buckets, as many batches as the case has, stopped between any two; `HEADRACE_ALONE=1` runs each case by
itself; `HEADRACE_UPDATE=1` writes the list anew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from case_driver import Placed, run_cases, ticks
from cover import Feature, cover, features_of

from headrace.plan.stream import FileSource
from headrace.testing.cases import QueryCase, read_case

FOLDER = Path(__file__).parents[1] / "queries"
TOGETHER = 1 if os.environ.get("HEADRACE_ALONE") else 12
THROUGHOUT = bool(os.environ.get("HEADRACE_THROUGHOUT"))
MOST = sys.maxsize if THROUGHOUT else 3  # batches
BUCKETS = (4, 1, 7, 3, 16)
LIST = Path(__file__).with_name("cases.txt")


def every_file() -> list[Path]:
    """Those that Spark can run."""
    return [path for path in sorted(FOLDER.glob("*/*.case")) if "spark" not in read_case(path).left_out]


FILES = every_file() if THROUGHOUT else [FOLDER / f"{name}.case" for name in LIST.read_text(encoding="utf-8").split()]


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
    done: dict[str, list[Placed]] = {}
    failed: dict[int, Exception] = {}  # what failed once is not waited for again by all others of the group

    def get(name: str) -> list[Placed]:
        group = group_of(name)
        if group in failed:
            pytest.fail(f"the run of the cases that run together failed: {failed[group]}")
        if name not in done:
            try:
                run_group(group)
            except Exception as error:
                failed[group] = error
                raise
        return done[name]

    def run_group(group: int) -> None:
        cases = {name_of(path): read_case(path) for path in GROUPS[group]}
        for buckets, places in ways(group, cases):
            ran = run_cases(spark, cases, tmp_path_factory.mktemp("cases"), buckets, places, MOST)
            for own, placed in ran.items():
                done.setdefault(own, []).append(placed)

    return get


def can_restart(case: QueryCase) -> bool:
    """A socket is read but once, and text files are followed as what grows: how they fall into batches is another thing.

    Nor those that the clock ends, which would let all others wait for its ticks.
    """
    streams = [s for s in case.script.streams if not s.static]
    return all(isinstance(s.source, FileSource) and s.source.format == "parquet" and not ticks(s) for s in streams)


def groups() -> list[list[Path]]:
    """Cases that run together: those that can be restarted, and the others."""
    out = []
    for restarts in (True, False):
        own = [p for p in FILES if can_restart(read_case(p)) == restarts]
        out += [own[i : i + TOGETHER] for i in range(0, len(own), TOGETHER)]
    return out


GROUPS = groups()


def group_of(name: str) -> int:
    return next(i for i, group in enumerate(GROUPS) if name in map(name_of, group))


def ways(group: int, cases: dict[str, QueryCase]) -> list[tuple[int, list[int]]]:
    """Numbers of buckets, and after which batches to restart: one for a group, which all of them together cover, or all of it."""
    longest = min(MOST, max(len(case.batches) for case in cases.values()))
    between = list(range(1, longest)) if all(map(can_restart, cases.values())) else []
    if THROUGHOUT:
        return [(buckets, between) for buckets in BUCKETS]
    return [(BUCKETS[group % len(BUCKETS)], between[group % len(between) :][:1] if between else [])]


def test_the_list_has_all_that_any_case_has():
    """And all that are known to fail on Spark, so that it is seen when one does not any more."""
    features = {name_of(path): features_of(read_case(path).script) for path in every_file()}
    broken = {name_of(path) for path in every_file() if "spark" in read_case(path).broken}
    if os.environ.get("HEADRACE_UPDATE"):
        LIST.write_text("".join(f"{name}\n" for name in sorted({*cover(features), *broken})), encoding="utf-8")
    listed = LIST.read_text(encoding="utf-8").split()
    covered = frozenset[Feature]().union(*(features[name] for name in listed))
    missing = {name: sorted(map(str, own - covered))[:3] for name, own in features.items() if own - covered}
    assert not missing, f"not on Spark; HEADRACE_UPDATE=1 writes the list anew: {missing}"
    assert broken <= set(listed)


@pytest.mark.parametrize("name", parameters())
def test_on_spark(ran, name):
    for placed in ran(name):
        placed.check()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
