"""`headrace check` and `headrace explain`: look at a script without running it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from headrace.cli.consoles import out
from headrace.cli.failures import reported
from headrace.cli.scripts import load, read
from headrace.plan.nodes import state_bound

Script = Annotated[str, typer.Argument(help="The script; - reads it from standard input.", metavar="SCRIPT")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="A traceback if it fails.")]


def check(
    script: Script,
    data: Annotated[bool, typer.Option("--data", help="Open the files as well: what they are, and whether they fit.")] = False,
    verbose: Verbose = False,
) -> None:
    """Check a script without starting Spark: names, types, windows, bounds.

    Prints what every query gives, where it goes and how much state it keeps. Exit code 2 if it could not run.
    With --data its files are opened: formats, headers, columns and types of all of them, and the first rows of
    text. Exit code 1 if they are not what the script declares.

    [bold]Examples[/]
      headrace check examples/fraud.cql
      headrace check examples/fraud.cql --data
    """
    with reported(verbose):
        plan = load(script)
        console = out()
        for query in plan.queries:
            console.print(Text(query.name, style="bold cyan"))
            console.print(Text(f"  columns {str(query.node.schema).strip('()')}"))
            console.print(Text(f"  emit    {query.emit.value}"))
            console.print(Text(f"  into    {query.sink}"))
            console.print(Text(f"  state   {state_bound(query.node)}"))
        if data:
            from headrace.cli.data import show_data

            show_data(plan)
        console.print(Text(f"ok: {count(len(plan.queries), 'query', 'queries')} over {count(len(plan.streams), 'stream')}"))


def explain(
    script: Script,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile", "-p", metavar="NAME", help="How it behaves under a profile; several, or `all`, to see how they differ."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", "-c", metavar="DIR", help="What becomes of the state that is kept there.")
    ] = None,
    buckets: Annotated[
        int | None, typer.Option("--buckets", min=1, metavar="N", help="With --checkpoint: as a run with so many parts would.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Show how a script will run: the plan, what each rule did to it, the stages, and the operators with their shared parts.

    With --profile, say in words how each query behaves as another engine
    would run it: what it reacts to, when a window is told, what is in it, and
    in which order rows count. A query that has a WITH (..) of its own keeps it.
    Profiles are headrace (the default), flink, oracle-cep, coral8, stream,
    streambase and spark. [bold]headrace compare[/] runs a script under several.

    With --checkpoint, say beforehand what a run would do with the state in a
    directory: which queries go on, which begin and whether they are complete,
    what goes, and what would be refused. Nothing is changed.

    [bold]Examples[/]
      headrace explain examples/fraud.cql
      headrace explain script.cql --profile flink,oracle-cep
      headrace explain script.cql --profile all
      headrace explain script.cql --checkpoint out/state
    """
    with reported(verbose):
        if profile:
            from headrace.cli.compare.profiles import chosen, explain_profiles

            names = chosen(profile)
            out().print(Text(explain_profiles(*read(script), names)))
            return
        plan = load(script)
        if checkpoint is not None:
            from headrace.spark.generations.foreseen import foreseen

            out().print(Text("\n".join(foreseen(plan, checkpoint, buckets))))
            return
        from headrace.stages.explain import explain_script

        out().print(Text(explain_script(plan)))


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 query`, `2 queries`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
