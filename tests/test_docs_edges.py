"""What the docs promise where they and the engine once disagreed: each sentence, and the case that holds the engine to it.

The cases run with the others (`tests/queries`); here a sentence cannot be lost or turned without its case being looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HELD = (
    ("windows.md", "By time, what is open is told: a tumbling window that has not ended with the rows that it has, a "
     "hopping one until its last row has left it.", "windows/end_of_input", "t1"),
    ("windows.md", "By a field there is one look more, at the next multiple", "windows/end_of_input", "f1"),
    ("windows.md", "By rows there is none: `[SIZE 3]` over four rows tells one window", "windows/end_of_input", "c1"),
    ("disorder.md", "It is in `late(s)`, and in no window but those that go [by arrival](windows.md), for which nothing is late.",
     "disorder/late_by_arrival", "l"),
    ("patterns.md", "A row whose key is NULL goes with no other: it is in no match of several events, forbids nothing, and is "
     "forbidden by nothing, so alone before or after a negation it is a match.", "patterns/null_keys_and_negation", None),
    ("patterns.md", "Of those of one time, events of one source, whether it is named itself or selected from, follow one another "
     "by their place in it; those of several sources in the order in which the pattern names them.",
     "patterns/ties_of_one_source", "sb"),
    ("disorder.md", "rows of one time in the order of their place in the source, also when they leave (`DSTREAM`, or a row of an "
     "outer join that met none)", "windows/leaving_in_order", None),
)  # fmt: skip


@pytest.mark.parametrize(
    ("page", "sentence", "case", "table"), HELD, ids=[f"{page}-{case}-{table}" for page, _, case, table in HELD]
)
def test_the_docs_say_what_a_case_holds(page, sentence, case, table):
    said = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert sentence in said
    held = (ROOT / "tests/queries" / f"{case}.case").read_text(encoding="utf-8")
    assert table is None or f"\n---- {table}\n" in held
