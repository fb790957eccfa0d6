"""The `headrace` command."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.bench import PASS_ON, bench
from headrace.cli.compare import compare
from headrace.cli.demo import demo
from headrace.cli.fmt import fmt
from headrace.cli.generate import generate
from headrace.cli.run import run
from headrace.cli.shell import shell
from headrace.cli.show import check, explain

app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headrace {version('headrace')}")
        raise typer.Exit


@app.callback()
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


app.command()(run)
app.command()(shell)
app.command()(check)
app.command()(explain)
app.command()(compare)
app.command()(fmt)
app.command()(generate)
app.command()(demo)
app.command(context_settings=PASS_ON)(bench)


def main() -> None:
    """Entry point of the `headrace` command."""
    app()


if __name__ == "__main__":
    main()
