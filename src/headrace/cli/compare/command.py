"""`headrace compare`: run a script under several profiles and show what comes out, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

import typer

from headrace.cli.compare.profiles import chosen
from headrace.cli.compare.side_by_side import Output, Row, Shown, as_json_lines, as_tables, side_by_side
from headrace.cli.consoles import say
from headrace.cli.failures import INTERRUPTED, reported
from headrace.cli.run.command import follow_run
from headrace.cli.run.interrupts import Interrupts
from headrace.cli.run.progress import Progress
from headrace.cli.scripts import parse, read
from headrace.cli.show import Script as ScriptArgument
from headrace.cli.show import Verbose
from headrace.errors import QueryError, unknown
from headrace.plan.query import ConsoleSink, Emit, Query, Script
from headrace.runs.events import RowsEvent
from headrace.sql.errors import CannotRun

FORMATS = ("table", "json")
WINDOW_END = "window_end"


def compare(
    script: ScriptArgument,
    profiles: Annotated[
        list[str], typer.Option("--profiles", "-p", metavar="NAMES", help="Two or more, with commas between them, or `all`.")
    ],
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="table, or json: a line for each row of the comparison.")
    ] = "table",
    differences: Annotated[bool, typer.Option("--differences", "-d", help="Only the rows that differ.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
    verbose: Verbose = False,
) -> None:
    r"""Run a script as several engines would, and show their outputs side by side.

    Engines of the CQL family answer the same query differently: they react to
    every event or to the passing of time, tell a window at every slide or only
    when it has changed, and put an event on the edge of a window into this one
    or the next. A profile bundles such choices; [bold]headrace explain --profile[/]
    says them in words. Profiles are headrace, flink, oracle-cep, coral8, stream,
    streambase and spark.

    The average of every 3 seconds, say:

      CREATE STREAM s (at TIMESTAMP, value DOUBLE)
        SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
      SELECT AVG(value) AS avg FROM s \[SIZE 3 SECONDS];

      headrace compare script.cql --profiles flink,oracle-cep

    There is a table for each query, with columns for each profile. Rows that
    are the same stand beside each other; where there is a [bold]window_end[/], only rows
    of the same window do. A row that differs is marked with *.

    The sources are read once, for all profiles. Nothing is written: INTO is
    left out. Rows come as under EMIT FINAL IN ORDER, unless the query says
    EMIT CHANGES. A query with a WITH (..) of its own keeps it.

    [bold]Exit code[/]
      0 done (the same or not), 1 the data or the run failed, 2 the script is wrong
    """
    with reported(verbose):
        if form not in FORMATS:
            raise QueryError(unknown("format", form, FORMATS))
        names = chosen(profiles)
        if len(names) < 2:
            raise QueryError(
                "there is nothing to compare with one profile", hint="--profiles flink,oracle-cep, or --profiles all"
            )
        text, where = read(script)
        scripts, cannot = _able(text, where, names)
        if scripts and not next(iter(scripts.values())).queries:
            raise QueryError("there is no query to compare", where=where, hint="add a SELECT")
        for name, why in cannot.items():
            say(f"under {name} this script cannot run: {why.message} ({why.where})")
        if len(scripts) < 2:
            raise QueryError("there is nothing to compare: fewer than two of these profiles can run this script")
        outputs, stopped = _run(scripts, quiet, verbose)
        shown = [_shown(query, scripts, outputs, differences) for query in next(iter(scripts.values())).queries]
        (as_json_lines if form == "json" else as_tables)(shown, tuple(cannot))
        if stopped:
            say("stopped; these are the rows up to there")
            raise typer.Exit(INTERRUPTED)


def _able(text: str, where: str, names: list[str]) -> tuple[dict[str, Script], dict[str, CannotRun]]:
    """The script under every profile whose engine can run it, and why others cannot."""
    scripts: dict[str, Script] = {}
    cannot: dict[str, CannotRun] = {}
    for name in names:
        try:
            found = parse(text, where, name)
        except CannotRun as error:
            cannot[name] = error
            continue
        except QueryError as error:
            error.message = f"under the profile {name}, {error.message}"
            raise
        said = _says_changes(text, where, name)
        scripts[name] = Script(tuple(_shown_in_order(q, q.name in said) for q in found.queries), found.streams)
    return scripts, cannot


def _says_changes(text: str, where: str, profile: str) -> set[str]:
    """The queries that say EMIT CHANGES, where no word of it means the same: those that become FINAL if that is written there."""
    from headrace.sql.errors import Text
    from headrace.sql.parse.tokens import span, tokenize, words

    tokens, said = tokenize(Text(text)), set()
    for before, token in pairwise(tokens):
        if words(before) == ("EMIT",) and words(token) == ("CHANGES",):
            at = span(token)
            try:
                other = parse(text[: at.start] + "FINAL  " + text[at.end :], where, profile)
            except QueryError:  # one that could never be final stays as it is in any case
                continue
            said |= {q.name for q in other.queries if q.emit is Emit.FINAL}
    return said - {q.name for q in parse(text, where, profile).queries if q.emit is Emit.FINAL}


def _shown_in_order(query: Query, changes: bool) -> Query:
    shown = replace(query, sink=ConsoleSink())
    if changes:
        return shown
    try:
        return replace(shown, emit=Emit.FINAL_IN_ORDER)
    except QueryError:  # over a stream without a bound on disorder there is nothing final
        return shown


def _run(scripts: Mapping[str, Script], quiet: bool, verbose: bool) -> tuple[dict[str, Output], bool]:
    """All of them as one script, so that they see the same rows, as they come; outputs go by `_key`."""
    queries = [replace(q, name=_key(name, q)) for name, script in scripts.items() for q in script.queries]
    streams = dict.fromkeys(s for script in scripts.values() for s in script.streams)
    whole = Script(tuple(queries), tuple(streams))
    outputs = {q.name: Output() for q in queries}

    def collect(event: RowsEvent) -> None:
        outputs[event.query_name].add(event)

    interrupts, progress = Interrupts(), Progress(quiet)
    from headrace.spark.run import start_script

    with interrupts, progress.shown():
        stopped = follow_run(start_script(whole, None, False, verbose), collect, progress, interrupts)
    progress.finish("stopped" if stopped else f"{len(scripts)} profiles")
    return outputs, stopped


def _key(profile: str, query: Query) -> str:
    return f"{query.name}, {profile}"


def _shown(query: Query, scripts: Mapping[str, Script], outputs: Mapping[str, Output], differences: bool) -> Shown:
    columns = tuple(f.name for f in query.node.schema.fields)
    found: dict[str, list[Row]] = {}
    for name in scripts:
        output = outputs[_key(name, query)]
        columns = output.columns or columns
        found[name] = [tuple(row) for row in output.rows]
    end = columns.index(WINDOW_END) if WINDOW_END in columns else None
    return side_by_side(query.name, columns, found, end, only=differences)
