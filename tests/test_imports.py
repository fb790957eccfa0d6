"""The shape of the code: who may import whom, and how long a file may be."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "headrace"
FILES = sorted(SRC.rglob("*.py"))
MOST_LINES = 450
LOWER = {"aggregates", "changes", "exchange", "generate", "kernels", "optimize", "oracle", "plan", "program", "runs", "runtime",
         "scalars", "stages", "state", "steps"}  # fmt: skip
FOLDERS = LOWER | {"api", "cli", "files", "spark", "sql", "testing"}

# A folder on the left may not import the folders on the right.
FORBIDDEN = {
    "changes": {"sql", "api", "cli", "spark", "testing"},
    "steps": {"sql", "api", "cli", "spark", "testing"},
    "runtime": {"sql", "api", "cli", "spark", "testing"},
    "oracle": {"runtime", "steps", "state", "aggregates", "kernels"},
    "plan": FOLDERS - {"plan"},
    "files": FOLDERS - {"files", "plan", "kernels"},
    "kernels": FOLDERS - {"kernels"} | {"errors"},
}

# The order of rows that nothing orders is that of a hash. The oracle and the engine must mean the same one.
ALLOWED = {(("oracle", "ties.py"), "headrace.kernels.keys.hashing")}


def imports(source: str, package: tuple[str, ...]) -> set[str]:
    """Dotted names of all modules that a source text imports, wherever in it; relative ones made absolute."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *((node.module,) if node.module else ())))
            found.add(module)
            if module == "headrace":
                found |= {f"headrace.{alias.name}" for alias in node.names}
    return found


def offences(source: str, place: tuple[str, ...]) -> list[str]:
    """What a file at `headrace/<place>` imports but may not. `place` ends in the file's name."""
    folder = place[0] if len(place) > 1 else ""
    found = []
    for name in sorted(imports(source, ("headrace", *place[:-1]))):
        parts = name.split(".")
        if parts[0] == "pyspark" and folder != "spark":
            found.append(f"{name}: only spark/ imports pyspark")
        if parts[0] == "headrace" and len(parts) > 1 and parts[1] in FORBIDDEN.get(folder, ()) and (place, name) not in ALLOWED:
            found.append(f"{name}: {folder}/ may not import {parts[1]}")
        outside = parts[0] != "headrace" and parts[0] not in sys.stdlib_module_names
        if folder == "kernels" and outside and parts[0] not in ("numpy", "numba", "pyarrow"):
            found.append(f"{name}: kernels/ imports arrays only")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_keep_to_the_rules(path):
    assert offences(path.read_text(encoding="utf-8"), path.relative_to(SRC).parts) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_files_are_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: split it by what it does"


def test_folders_of_the_rules_are_the_folders_there_are():
    assert {p.name for p in SRC.iterdir() if p.is_dir() and p.name != "__pycache__"} <= FOLDERS


@pytest.mark.parametrize(
    ("source", "place", "named"),
    [
        ("def f():\n    from pyspark.sql import Row", ("api", "frame.py"), "pyspark.sql"),
        ("import pandas as pd", ("kernels", "rings.py"), "pandas"),
        ("from headrace.plan.expr import Expr", ("kernels", "rings.py"), "headrace.plan.expr"),
        ("from headrace import sql", ("runtime", "clock.py"), "headrace.sql"),
        ("from ..spark import session", ("steps", "window.py"), "headrace.spark"),
        ("if TYPE_CHECKING:\n    import headrace.state.rows", ("oracle", "evaluate.py"), "headrace.state.rows"),
        ("from headrace.changes import Changes", ("plan", "nodes.py"), "headrace.changes"),
    ],
)
def test_an_offence_is_seen(source, place, named):
    assert [o.split(":")[0] for o in offences(source, place)] == [named]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("import pyspark", ("spark", "session.py")),
        ("import numpy as np\nimport math\nfrom headrace.kernels.keys.order import sort", ("kernels", "rings.py")),
        ("from headrace.errors import QueryError", ("plan", "nodes.py")),
    ],
)
def test_what_is_allowed_passes(source, place):
    assert offences(source, place) == []
