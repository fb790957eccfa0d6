"""`headrace bench`: run a benchmark of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.consoles import out, say
from headrace.cli.failures import reported
from headrace.errors import QueryError, unknown

ALL = "all"


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which one, or `all`; without a name, the list.")] = None,
) -> None:
    """Run a benchmark from benchmarks/ of a checkout; what follows the name is handed on to it.

    [bold]Examples[/]
      headrace bench
      headrace bench sliding --json sliding.json
      headrace bench sliding --help
      headrace bench all --quick
    """
    with reported():
        folder = find_folder(Path.cwd(), Path(__file__).resolve().parent)
        known = benchmarks(folder)
        if name is None:
            out().print("\n".join(known), markup=False)
            return
        if name != ALL and name not in known:
            raise QueryError(unknown("benchmark", name, [*known, ALL]))
        raise typer.Exit(run_each(folder, list(known) if name == ALL else [name], context.args))


def run_each(folder: Path, names: list[str], arguments: list[str]) -> int:
    """One after the other, also behind one that failed; the exit code of the last one that did."""
    code = 0
    for name in names:
        if len(names) > 1:
            say(f"benchmark {name}", "bold")
        code = run_one(folder, name, arguments) or code
    return code


def run_one(folder: Path, name: str, arguments: list[str]) -> int:
    """In a process of its own, in the directory of the user, so that file names mean what they say."""
    paths = [str(folder.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", f"{folder.name}.{name}", *arguments]
    return subprocess.run(command, check=False, env=environment).returncode


def find_folder(*places: Path) -> Path:
    """The nearest `benchmarks/` of a checkout, upwards from any of these places."""
    for place in places:
        for folder in (place, *place.parents):
            if (folder / "benchmarks").is_dir() and (folder / "pyproject.toml").is_file():
                return folder / "benchmarks"
    raise QueryError("there are no benchmarks here", hint="they come with the source: clone the repository and run it there")


def benchmarks(folder: Path) -> dict[str, Path]:
    return {p.stem: p for p in sorted(folder.glob("*.py")) if "__main__" in p.read_text(encoding="utf-8")}
