"""Processes that share the files of tests: who comes to a file first runs all of it, so that none waits while there is work left.

Where `HEADRACE_TURNS` names a folder, a process takes a file of tests by making a file of its name there. Those that take longest
come first: else one process would be left with one of them in the end.
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED = os.environ.get("HEADRACE_TURNS")
# On Spark, those of more than 8 seconds.
LONGEST = (
    "tests/spark/test_ended.py", "tests/bench/test_bench_quick.py", "tests/spark/test_generations.py",
    "tests/spark/test_queries_on_spark.py", "tests/spark/test_shaky.py", "tests/spark/test_bad_input.py", "tests/test_docs.py",
    "tests/spark/test_files.py", "tests/spark/test_definitions.py", "tests/spark/test_clock.py", "tests/spark/test_now.py",
    "tests/spark/test_static.py", "tests/spark/test_rows_of_spark.py",
)  # fmt: skip

_ours: dict[str, bool] = {}


def rank(file: str) -> int:
    """Where a file stands among those that take long."""
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def ours(name: str) -> bool:
    """Whether this process runs what goes by this name: it does if it is the first to ask."""
    if name not in _ours:
        _ours[name] = not SHARED or _take(Path(SHARED) / name.replace("/", "-"))
    return _ours[name]


def _take(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
