"""The tables and pictures of a page about the experiments, from the JSON of a run. The words of the page are written by hand.

A page has marks: what stands between `<!-- figure 4 -->` and `<!-- /figure 4 -->` is replaced.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rich.table import Table

from .patterns_plots import LABELS, panels, picture_name, save_figure

PICTURES = "pictures"


def shown(details: dict[str, Any]) -> Table:
    """A figure as a table for the terminal."""
    headings, rows = grid(details)
    out = Table(title=f"figure {details['figure']}: {details['title']}")
    for heading in headings:
        out.add_column(heading, justify="right")
    for row in rows:
        out.add_row(*row)
    return out


def grid(details: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A row for each x, a column for each line and reading."""
    lines, metrics = details["lines"], panels(details)
    headings = [details["x"], *(f"{name}: {LABELS[m]}" if len(metrics) > 1 else name for m in metrics for name in lines)]
    places = sorted({point["x"] for line in lines.values() for point in line})
    values = {(name, p["x"], m): p[m] for name, line in lines.items() for p in line for m in metrics}
    return headings, [[f"{x:g}", *(_cell(values.get((name, x, m))) for m in metrics for name in lines)] for x in places]


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"


def write(results: Path, page: Path) -> None:
    """Fill in what was measured, and leave a picture for each figure in a folder beside the page."""
    document = json.loads(results.read_text(encoding="utf-8"))
    events = int(document["machine"]["arguments"]["events"])
    text = fill(page.read_text(encoding="utf-8"), "machine", machine_line(document["machine"]))
    for details in (r["details"] for r in document["results"] if "figure" in r["details"]):
        picture = page.parent / PICTURES / picture_name(details)
        save_figure(details, picture)
        each = f"; {events:,} rows in each run" if isinstance(details["figure"], int) else ""
        text = fill(text, f"figure {details['figure']}", block(details, f"{PICTURES}/{picture.name}", each))
    page.write_text(text, encoding="utf-8")


def fill(text: str, mark: str, body: str) -> str:
    """Put a body between the two marks of a name."""
    found = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.S)
    if not found.search(text):
        raise ValueError(f"the page has no place for {mark}: <!-- {mark} --> and <!-- /{mark} -->")
    return found.sub(lambda m: f"{m[1]}\n{body}\n\n{m[2]}", text)


def machine_line(machine: dict[str, Any]) -> str:
    size = f"{machine['cores']} cores, {machine['memory_gib']:g} GiB"
    return f"Measured on {machine['cpu']}, {size}; {machine['load_before']:.0f} other processes wanted to run when it began."


def block(details: dict[str, Any], picture: str, each: str) -> str:
    """The picture of a figure and its numbers."""
    headings, rows = grid(details)
    lines = [
        f"![{details['title']}]({picture})",
        "",
        f"y is {', '.join(LABELS[m] for m in panels(details))}{each}.",
        "",
    ]
    lines += ["| " + " | ".join(cells) + " |" for cells in (headings, ["---:"] * len(headings), *rows)]
    return "\n".join(lines)
