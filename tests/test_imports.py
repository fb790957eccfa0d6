"""The shape of the code: who may import whom, as ARCHITECTURE.md draws it, and how long a file may be."""

from __future__ import annotations

import ast
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "headrace"
FILES = sorted(SRC.rglob("*.py"))
MOST_LINES = 450
KINDS = ("rows", "windows", "joins", "patterns")
REGISTERS = "steps/kinds.py"  # the one file that names several kinds of step


def drawn() -> dict[str, set[str]]:
    """What each folder may import: the list in ARCHITECTURE.md."""
    (block,) = re.findall(r"```text\n(\w+ +<-.*?)```", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.S)
    lines = (line.partition("<-") for line in block.splitlines())
    return {folder.strip(): set(below.split()) for folder, _, below in lines}


MAY = drawn()


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


def folders(names: set[str]) -> set[str]:
    """The folders of ours among these modules."""
    parts = (name.split(".") for name in names)
    return {p[1] for p in parts if p[0] == "headrace" and len(p) > 1 and p[1] in MAY}


def offences(source: str, place: tuple[str, ...]) -> list[str]:
    """What a file at `headrace/<place>` imports but may not. `place` ends in the file's name."""
    folder, found = place[0] if len(place) > 1 else "", []
    names = imports(source, ("headrace", *place[:-1]))
    for name in sorted(names):
        top = name.split(".")[0]
        if top == "pyspark" and folder != "spark":
            found.append(f"{name}: only spark/ imports pyspark")
        outside = top != "headrace" and top not in sys.stdlib_module_names
        if folder == "kernels" and outside and top not in ("numpy", "numba", "pyarrow"):
            found.append(f"{name}: kernels/ imports arrays only")
        for below in folders({name}) - {folder} - MAY.get(folder, set(MAY)):
            found.append(f"{name}: {folder}/ may not import {below}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_keep_to_the_drawing(path):
    assert offences(path.read_text(encoding="utf-8"), path.relative_to(SRC).parts) == []


def test_the_drawing_has_the_folders_there_are_and_nothing_that_nobody_imports():
    assert {p.name for p in SRC.iterdir() if p.is_dir() and p.name != "__pycache__"} == set(MAY)
    used = {folder: set() for folder in MAY}
    for path in FILES:
        place = path.relative_to(SRC).parts
        if len(place) > 1:
            used[place[0]] |= folders(imports(path.read_text(encoding="utf-8"), ("headrace", *place[:-1]))) - {place[0]}
    assert used == MAY


def test_no_folder_is_below_itself():
    assert list(TopologicalSorter(MAY).static_order())


def kinds_named(source: str) -> set[str]:
    """The kinds of step that a source text knows: their folders, and their programs."""
    found = re.findall(r"headrace\.(?:steps|program)\.(\w+)", source)
    return {kind for kind in KINDS if kind in found}


@pytest.mark.parametrize("folder", ["steps", "runtime", "exchange"])
def test_no_file_names_two_kinds_of_step(folder):
    several = [p.relative_to(SRC).as_posix() for p in (SRC / folder).rglob("*.py") if len(kinds_named(p.read_text())) > 1]
    assert several == ([REGISTERS] if folder == "steps" else [])


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_files_are_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: split it by what it does"


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


def test_kinds_are_seen():
    assert kinds_named("from headrace.steps.joins.index import a\nfrom headrace.program.patterns import b") == {
        "joins",
        "patterns",
    }
