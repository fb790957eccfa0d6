"""The commands of `headrace`, each loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # of `bench`, to the benchmark
COMMANDS = {  # name: the module; the function has the command's name
    "run": "run.command",
    "serve": "serve",
    "shell": "shell.command",
    "check": "show",
    "explain": "show",
    "compare": "compare.command",
    "fmt": "fmt",
    "generate": "generate",
    "post": "post",
    "token": "token",
    "demo": "demo.fraud",
    "bench": "bench",
}


def command_line(*names: str) -> typer.Typer:
    """The command line with these commands, or with all. One that is called needs none of what the others import."""
    app = typer.Typer(
        name="headrace",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(headrace)
    for name in names or COMMANDS:
        function = getattr(import_module(f"headrace.cli.{COMMANDS[name]}"), name)
        app.command(context_settings=PASS_ON if name == "bench" else None)(function)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headrace {version('headrace')}")
        raise typer.Exit


def headrace(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Exact continuous queries over event streams that arrive out of order.

    A script declares streams and asks questions about them:

      CREATE STREAM payments (id BIGINT, card STRING, merchant STRING,
                              amount DOUBLE, at TIMESTAMP)
        SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY 10 SECONDS;
      SELECT id, card, COUNT(*) AS n
        FROM payments [RANGE 5 MINUTES] GROUP BY card;

    [bold]To begin[/]
      headrace demo
      headrace generate payments --out payments.csv
      headrace run script.cql
    """
