"""The two ways out: `out` for results, `err` for everything said about them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from headrace.notices import HeadraceWarning


def out() -> Console:
    """Results. Made anew for each command, so that a redirected standard output is respected."""
    return Console(file=sys.stdout, soft_wrap=True, highlight=False)


def err() -> Console:
    return Console(file=sys.stderr, stderr=True, highlight=False)


def say(message: str, style: str = "") -> None:
    """One message, as it is: brackets in it are no markup."""
    err().print(Text(message, style=style), soft_wrap=True)


@contextmanager
def warnings_on(console: Console) -> Iterator[None]:
    """While inside, what Headrace warns of is one line on a console, once, without the place in our code that says so."""
    before = warnings.showwarning
    told: set[str] = set()  # files are looked at before Spark starts, and by the run

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        if issubclass(category, HeadraceWarning):
            if str(message) in told:
                return
            told.add(str(message))
            console.print(Text(f"warning: {message}", style="yellow"), soft_wrap=True)
        else:
            before(message, category, filename, lineno, *rest)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = before


def complain(title: str, message: str, hint: str | None = None, excerpt: str | None = None) -> None:
    """An error: a panel on a terminal, plain lines elsewhere. An excerpt is a line of the script with carets below it."""
    console = err()
    if not console.is_terminal:
        lines = [f"{title}: {message}", *([excerpt] if excerpt else []), *([f"hint: {hint}"] if hint else [])]
        console.print(Text("\n".join(lines)), soft_wrap=True)
        return
    parts = [Text(message)]
    if excerpt:
        parts.append(Text(fit(excerpt, console.width - 4), no_wrap=True, style="cyan"))
    if hint:
        parts.append(Text("\nhint: ", style="bold green").append(hint, style="not bold default"))
    console.print(
        Panel(Group(*parts), title=Text(title, style="bold red"), title_align="left", border_style="red", padding=(0, 1))
    )


def fit(excerpt: str, width: int) -> str:
    """Cut an underlined line so that the carets stay in sight."""
    line, _, carets = excerpt.partition("\n")
    if len(line) <= width:
        return excerpt
    skip = max(0, carets.find("^") - width // 2 + 1)
    shown = [line[skip : skip + width], carets[skip : skip + width]]
    return "\n".join(("…" + shown[0][1:], shown[1])) if skip else "\n".join(shown)
