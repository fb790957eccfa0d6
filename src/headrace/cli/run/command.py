"""`headrace run`: start a script, show its rows and its progress, stop when it ends or is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from headrace.api.handle import Run
from headrace.cli.consoles import say
from headrace.cli.failures import reported
from headrace.cli.run.interrupts import Interrupts
from headrace.cli.run.progress import Progress
from headrace.cli.run.rows import row_printer, show_answers
from headrace.cli.scripts import load
from headrace.plan.query import Script
from headrace.runs.events import ProgressEvent, RowsEvent
from headrace.runs.losses import share_of

POLL_S = 0.2


def run(
    script: Annotated[str, typer.Argument(help="The script to run; - reads it from standard input.", metavar="SCRIPT")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep going when the sources have no more rows.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", "-c", metavar="DIR", help="Keep state here, and resume from it if there is any.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Empty outputs that hold what another run of Headrace wrote.")
    ] = False,
    max_rejected: Annotated[
        str | None,
        typer.Option("--max-rejected", metavar="SHARE", help="Fail if more of a stream's rows are rejected: 0.05, or 5%."),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(
            "--buckets",
            min=1,
            metavar="N",
            help="In how many parts to run stages with a key; another number redistributes the state of a checkpoint.",
        ),
    ] = None,
    from_now: Annotated[
        list[str] | None,
        typer.Option("--from-now", metavar="QUERY", help="Let a query that was added begin with nothing (may be repeated)."),
    ] = None,
    backfill: Annotated[
        list[str] | None,
        typer.Option("--backfill", metavar="QUERY", help="Read the sources again for a query that was added (may be repeated)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary, only rows and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Spark's own logs, and tracebacks.")] = False,
) -> None:
    """Run a script: bounded sources to their end, or on and on with --follow.

    A query without INTO, or INTO a name that nothing reads, prints its rows on
    standard output: a table on a terminal, JSON lines when piped. Under EMIT
    CHANGES every row has an [bold]_op[/]: + is a row, - takes one back. Progress goes
    to standard error.
    Ctrl-C and SIGTERM end cleanly; with --checkpoint the next run goes on
    from there, also with a script that has changed ([bold]headrace explain --checkpoint[/]
    says how). A query that was added and needs rows that are not kept any more is
    refused, filled from its sources (--backfill), or begins with nothing (--from-now).
    Files are opened before anything runs: what is not as declared is told at once.
    Rows that do not fit are rejected, counted, and in [bold]rejected(s)[/] with the reason,
    the file and the line. A run that rejects all rows of a stream fails.

    [bold]Examples[/]
      headrace run examples/fraud.cql
      headrace run examples/fraud.cql | jq .card
      headrace run live.cql --follow --checkpoint state/live
      headrace run counts.cql --overwrite
      headrace run examples/fraud.cql --max-rejected 1%
      headrace run changed.cql --follow --checkpoint state/live --backfill daily

    [bold]Exit code[/]
      0 done, 1 the data or the run failed, 2 the script is wrong,
      130 Ctrl-C, 143 SIGTERM
    """
    with reported(verbose):
        interrupts = Interrupts()
        most = None if max_rejected is None else share_of(max_rejected)
        plan = load(script)
        changed = {"from_now": tuple(from_now or ()), "backfill": tuple(backfill or ())}
        how = {"overwrite": overwrite, "max_rejected": most, "buckets": buckets, **changed}
        if run_plan(plan, interrupts, checkpoint, follow, verbose, json=json, quiet=quiet, **how):
            say(_how_to_resume(script, follow, checkpoint))
            raise interrupts.exception


def run_plan(
    plan: Script, interrupts: Interrupts, checkpoint: str | None, follow: bool, verbose: bool, *, json: bool, quiet: bool,
    **how: Any,
) -> bool:  # fmt: skip
    """Run a script and show what comes out of it; True if Ctrl-C ended it."""
    show_answers(plan, json)
    if plan.answers and not plan.queries:
        return False
    printer = row_printer(plan, json)
    progress = Progress(quiet)
    from headrace.spark.run import start_script

    with interrupts, progress.shown():
        handle = start_script(plan, checkpoint, follow, verbose, **how)
        stopped = follow_run(handle, printer.show, progress, interrupts)
    progress.finish("stopped" if stopped else "")
    return stopped


def run_to_the_end(
    plan: Script, show: Callable[[RowsEvent], None], *, verbose: bool, options: dict[str, str] | None = None
) -> None:
    """Run a script for what comes out of it; if Ctrl-C ends it, nothing of that is to be told."""
    from headrace.spark.run import start_script

    progress = Progress(quiet=False)
    with Interrupts() as interrupts, progress.shown():
        stopped = follow_run(start_script(plan, None, False, verbose, options), show, progress, interrupts)
    if stopped:
        raise interrupts.exception
    progress.finish()


def follow_run(handle: Run, show: Callable[[RowsEvent], None], progress: Progress, interrupts: Interrupts) -> bool:
    """Follow a run to its end; True if Ctrl-C ended it, else what went wrong is raised. It is never left running."""
    interrupts.running = True
    stopped = False
    try:
        while True:
            if interrupts.asked and not stopped:
                stopped = True
                handle.stop()
            finished = handle.done or stopped  # asked first: what is polled after this is all there is
            events = handle.poll(0 if finished else POLL_S)
            for event in events:
                match event:
                    case RowsEvent():
                        with progress.aside():
                            show(event)
                    case ProgressEvent():
                        progress.totals.add(event)
            if finished and not events:
                break
    except KeyboardInterrupt:
        handle.stop()
        return True
    except BaseException:
        handle.stop()
        raise
    if not stopped and handle.error is not None:
        raise handle.error
    return stopped


def _how_to_resume(script: str, follow: bool, checkpoint: str | None) -> str:
    if checkpoint is None:
        return "stopped; without --checkpoint the next run begins anew"
    return f"stopped; go on with: headrace run {script} --checkpoint {checkpoint}" + (" --follow" if follow else "")
