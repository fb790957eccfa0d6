"""`headrace token`: who may speak to a deployment that is served."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.consoles import say
from headrace.cli.failures import reported
from headrace.errors import QueryError
from headrace.serve.http.tokens import SCOPES, add_token, read_tokens, remove_token

Action = Enum("Action", {action: action for action in ("add", "list", "remove")}, type=str)  # type: ignore[misc]
Scope = Enum("Scope", {scope: scope for scope in SCOPES}, type=str)  # type: ignore[misc]


def token(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    name: Annotated[str | None, typer.Argument(help="Whose token it is.")] = None,
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may do; may be given several times.")] = None,
    tokens: Annotated[Path, typer.Option(help="The file with the hashes of all tokens.")] = Path("tokens.json"),
) -> None:
    """Make, list and remove the tokens of a deployment that is served.

    A token is printed once, when it is made; the file has its hash only. A front end that runs sees within seconds what changed.

    [bold]read[/]   queries, metrics and pages
    [bold]post[/]   events
    [bold]admin[/]  everything

    [bold]Examples[/]
      headrace token add checkout --scope post
      headrace token list
      headrace token remove checkout
    """
    with reported():
        match action.value, name:
            case "add", str():
                text = add_token(tokens, name, [s.value for s in scope or []])
                say(f"the token of {name}; it is not shown again:")
                print(text)
            case "remove", str():
                remove_token(tokens, name)
                say(f"{name} has no token any more")
            case "list", None:
                for one in read_tokens(tokens):
                    print(f"{one.name}\t{' '.join(sorted(one.scopes))}\t{one.made}")
            case "list", _:
                raise QueryError("list takes no name")
            case _:
                raise QueryError(f"{action.value} takes the name of a token")
