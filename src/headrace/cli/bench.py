"""`headrace bench`: run a benchmark of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.consoles import out
from headrace.cli.failures import reported
from headrace.errors import QueryError, unknown

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which one; without a name, the list.")] = None,
) -> None:
    """Run a benchmark from benchmarks/ of a checkout; what follows the name is handed on to it.

    [bold]Examples[/]
      headrace bench
      headrace bench sliding --json
    """
    with reported():
        folder = find_folder(Path.cwd(), Path(__file__).resolve().parent)
        known = benchmarks(folder)
        if name is None:
            out().print("\n".join(known), markup=False)
            return
        if name not in known:
            raise QueryError(unknown("benchmark", name, known))
        code = subprocess.run([sys.executable, str(known[name]), *context.args], check=False, cwd=folder.parent).returncode
        raise typer.Exit(code)


def find_folder(*places: Path) -> Path:
    """The nearest `benchmarks/` of a checkout, upwards from any of these places."""
    for place in places:
        for folder in (place, *place.parents):
            if (folder / "benchmarks").is_dir() and (folder / "pyproject.toml").is_file():
                return folder / "benchmarks"
    raise QueryError("there are no benchmarks here", hint="they come with the source: clone the repository and run it there")


def benchmarks(folder: Path) -> dict[str, Path]:
    """Those that can be run: a file each, with a main part."""
    return {p.stem: p for p in sorted(folder.glob("*.py")) if "__main__" in p.read_text(encoding="utf-8")}
