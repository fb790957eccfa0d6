"""`headrace fmt`: put scripts in their one form."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.consoles import say
from headrace.cli.failures import FAILED, reported
from headrace.cli.scripts import read
from headrace.cli.show import Verbose, count
from headrace.errors import QueryError

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Formatted:
    """A script as it is and as it should be."""

    path: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """What would change, as `diff -u` shows it."""
        lines = unified_diff(
            self.before.splitlines(), self.after.splitlines(), self.path, f"{self.path} (formatted)", lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def fmt(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Scripts, or folders with scripts (.cql); - is standard input. Without any, this folder.", metavar="FILES"
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 1 if something would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; show what would change.")] = False,
    verbose: Verbose = False,
) -> None:
    """Format scripts in place: keywords in capitals, a line for each clause.

    Comments stay, and so does what a script says: every statement is read
    again before it is written. If one script cannot be read, none is changed.

    [bold]Examples[/]
      headrace fmt
      headrace fmt --check examples/
      headrace fmt - < script.cql

    [bold]Exit code[/]
      0 done, 1 --check found something to do, 2 a script is wrong
    """
    with reported(verbose):
        found = [_format(path) for path in _scripts(files or ["."])]
        for script in found:
            if diff:
                sys.stdout.write(script.diff())
            elif script.path == STDIN and not check:
                sys.stdout.write(script.after)
            elif script.changed and not check:
                Path(script.path).write_text(script.after, encoding="utf-8")
        changed = [script.path for script in found if script.changed]
        if files != [STDIN] or check:
            _tell(changed, len(found), planned=check or diff)
        if check and changed:
            raise typer.Exit(FAILED)


def _scripts(paths: list[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            found.append(path)
            continue
        inside = sorted(str(p) for p in Path(path).rglob("*.cql"))
        if not inside:
            raise QueryError("there are no scripts in this folder", where=path, hint="scripts end in .cql; any file can be named")
        found += inside
    return list(dict.fromkeys(found))


def _format(path: str) -> Formatted:
    from headrace.sql.format.text import format_script

    text, name = read(path)
    return Formatted(path, text, format_script(text, name))


def _tell(changed: list[str], total: int, *, planned: bool) -> None:
    done = "would change" if planned else "formatted"
    rest = count(total - len(changed), "script is", "scripts are") + " in form"
    say("; ".join([f"{done}: {', '.join(changed)}"] * bool(changed) + [rest] * (total > len(changed))), style="dim")
