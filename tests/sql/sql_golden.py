"""Golden cases: blocks of `SQL`, a line `----`, the expected text, separated by lines `====`.

`HEADRACE_UPDATE=1 pytest tests/sql` writes what came out; read the difference before keeping it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

CASES = Path(__file__).parent / "cases"
PRELUDE = """\
CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY 10 SECONDS;
"""


def load(name: str) -> list[tuple[str, str]]:
    blocks = re.split(r"^====\n", (CASES / name).read_text(encoding="utf-8"), flags=re.M)
    pairs = [block.split("\n----\n", 1) for block in blocks if block.strip()]
    return [(pair[0], pair[1].rstrip("\n") if len(pair) > 1 else "") for pair in pairs]


def ids(cases: list[tuple[str, str]]) -> list[str]:
    return [" ".join(sql.split())[:60] for sql, _ in cases]


def check(name: str, sql: str, expected: str, run: Callable[[str], str]) -> None:
    got = run(sql)
    if os.environ.get("HEADRACE_UPDATE"):
        update(name, sql, got)
        return
    assert got == expected


def update(name: str, sql: str, got: str) -> None:
    cases = [(s, got if s == sql else e) for s, e in load(name)]
    (CASES / name).write_text("====\n".join(f"{s}\n----\n{e}\n" for s, e in cases), encoding="utf-8")
