"""A unit that is killed for real, again and again: what it says is what it would have said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

from unit_child import RECORDS, answers

from headrace.serve.store.commits import newest
from headrace.serve.store.manifest import Manifest
from headrace.serve.store.places import LocalPlace

CHILD = Path(__file__).with_name("unit_child.py")
KILLS = int(os.environ.get("HEADRACE_KILLS", "3"))
SEED = int(os.environ.get("HEADRACE_SEED", "1"))


def live(arguments: list[str], answers_before_death: int | None) -> int:
    """Until it has given so many answers. Gives how it ended."""
    unit = subprocess.Popen([sys.executable, str(CHILD), *arguments], stdout=subprocess.PIPE)
    assert unit.stdout is not None
    if answers_before_death is not None:
        unit.stdout.read(answers_before_death)
        unit.kill()
    unit.stdout.read()
    unit.stdout.close()
    return unit.wait()


def offset(folder: Path) -> int:
    found = newest(LocalPlace(str(folder / "payments.card" / "3" / "commits")))
    return 0 if found is None else Manifest.read(found[1], "").offset


def test_a_unit_that_is_killed_again_and_again_answers_as_one_that_is_not(tmp_path):
    random, reached, said = Random(SEED), Counter(), tmp_path / "answers"
    expected = answers(SEED)
    for epoch in range(1, KILLS + 1):
        left = RECORDS - offset(tmp_path / "store")
        live(
            [str(tmp_path / "store"), str(epoch), str(said), str(SEED)],
            random.randrange(1, max(2, min(left, 2 * RECORDS // KILLS))),
        )
        reached["went on"] += offset(tmp_path / "store") > 0
    assert live([str(tmp_path / "store"), str(KILLS + 1), str(said), str(SEED)], None) == 0
    seen: dict[int, str] = {}
    for line in said.read_text().splitlines():
        number, _, answer = line.partition(" ")
        if not answer.endswith("}"):  # the kill came while it was written
            continue
        reached["twice"] += int(number) in seen
        assert answer == seen.setdefault(int(number), answer), f"offset {number} is answered otherwise than before"
    assert [seen[number] for number in range(RECORDS)] == expected
    assert reached["went on"] >= KILLS // 2
    assert reached["twice"]
