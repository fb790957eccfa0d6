"""`headrace shell`: statements one after the other, from a prompt or from standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.consoles import say
from headrace.cli.failures import FAILED, MISUSED, reported
from headrace.cli.run.command import run_plan
from headrace.cli.run.interrupts import Interrupts

if TYPE_CHECKING:
    from headrace.cli.shell.session import Run
    from headrace.plan.query import Script


def shell(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Queries keep going when the sources have no more rows.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Empty outputs that hold what another run of Headrace wrote.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON lines, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary, only rows and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Spark's own logs, and tracebacks.")] = False,
) -> None:
    """Ask one query after the other; streams stay declared, and Spark stays up.

    A SELECT shows its rows as they come, until its sources end or Ctrl-C.
    Without a terminal, statements are read from standard input, and the first
    one that is wrong ends it.

    [bold]Examples[/]
      headrace shell
      headrace shell --follow
      headrace shell < script.cql | jq .card
    """

    def run(plan: Script) -> bool:
        interrupts = Interrupts()
        interrupts.running = True  # while Spark starts too: a call to it that is torn apart would leave it of no use
        return run_plan(plan, interrupts, None, follow, overwrite=overwrite, json=json, quiet=quiet, verbose=verbose)

    if sys.stdin.isatty():
        _converse(run, verbose)
    else:
        _read(run, verbose)


def _read(run: Run, verbose: bool) -> None:
    from headrace.cli.shell.session import Session, read_statements

    with reported(verbose):
        session = Session(run)
        for text, start in read_statements(sys.stdin):
            if not session.answer(text, start):
                return


def _converse(run: Run, verbose: bool) -> None:
    """What is typed; after an error it goes on."""
    from headrace.cli.shell.prompt import prompt
    from headrace.cli.shell.session import Session

    session = Session(run, told=lambda line: say(line, style="dim"))
    say("statements end in ; and help says more", style="dim")
    for text in prompt(session):
        try:
            with reported(verbose):
                if not session.answer(text):
                    return
        except typer.Exit as failure:
            if failure.exit_code not in (FAILED, MISUSED):
                raise
