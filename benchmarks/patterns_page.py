"""The tables and pictures of a page about the experiments, from the JSON of a run. The words of the page are written by hand.

A page has marks: what stands between `<!-- figure 4 -->` and `<!-- /figure 4 -->` is replaced.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from rich.table import Table

from .patterns_plots import LABELS, panels, picture_name, save_figure

PICTURES = "pictures"
WIDTH = 120


def shown(details: dict[str, Any]) -> Table:
    """A figure as a table for the terminal."""
    out = Table(title=f"figure {details['figure']}: {details['title']}")
    metrics = panels(details)
    out.add_column(details["x"], justify="right")
    for metric in metrics:
        for name in details["lines"]:
            out.add_column(f"{name}: {LABELS[metric]}" if len(metrics) > 1 else name, justify="right")
    grids = [grid(details, metric)[1] for metric in metrics]
    for rows in zip(*grids, strict=True):
        out.add_row(rows[0][0], *(cell for row in rows for cell in row[1:]))
    return out


def grid(details: dict[str, Any], metric: str) -> tuple[list[str], list[list[str]]]:
    """One reading of a figure: a row for each x, a column for each line."""
    lines = details["lines"]
    places = sorted({point["x"] for line in lines.values() for point in line})
    cells = {(name, p["x"]): _cell(p, metric) for name, line in lines.items() for p in line}
    return [details["x"], *lines], [[f"{x:g}", *(cells.get((name, x), "") for name in lines)] for x in places]


def _cell(point: dict[str, Any], metric: str) -> str:
    """The median, and what the seeds lie between."""
    if point[metric] is None:
        return ""
    low, high = point.get("spread", {}).get(metric, (point[metric],) * 2)
    return number(point[metric]) if low == high else f"{number(point[metric])} ({number(low)} to {number(high)})"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def write(results: Path, page: Path) -> None:
    """Fill in what was measured, and leave a picture for each figure in a folder beside the page."""
    document = json.loads(results.read_text(encoding="utf-8"))
    text = fill(page.read_text(encoding="utf-8"), "machine", machine_line(document["machine"]))
    for details in (r["details"] for r in document["results"]):
        if "figure" in details:
            picture = page.parent / PICTURES / picture_name(details)
            save_figure(details, picture)
            text = fill(text, f"figure {details['figure']}", block(details, f"{PICTURES}/{picture.name}"))
        if "departure" in details:
            text = fill(text, f"departure {details['departure']}", departure_block(details))
    page.write_text(text, encoding="utf-8")


def fill(text: str, mark: str, body: str) -> str:
    """Put a body between the two marks of a name."""
    found = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.S)
    if not found.search(text):
        raise ValueError(f"the page has no place for {mark}: <!-- {mark} --> and <!-- /{mark} -->")
    lines = "\n".join(map(wrapped, body.split("\n")))
    return found.sub(lambda m: f"{m[1]}\n{lines}\n\n{m[2]}", text)


def wrapped(line: str) -> str:
    """Prose in lines that can be read; rows of tables and pictures as they are."""
    return line if line.startswith(("|", "![")) else textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def machine_line(machine: dict[str, Any]) -> str:
    size = f"{machine['cores']} cores, {machine['memory_gib']:g} GiB"
    return f"Measured on {machine['cpu']}, {size}; {machine['load_before']:.0f} other processes wanted to run when it began."


def block(details: dict[str, Any], picture: str) -> str:
    """The picture of a figure and its numbers."""
    lines = [f"![{details['title']}]({picture})", ""]
    lines += [details["note"], ""] if details.get("note") else []
    for metric in panels(details):
        lines += [f"{LABELS[metric].capitalize()}{how(details)}:", "", *markdown(*grid(details, metric)), ""]
    return "\n".join(lines[:-1])


def how(details: dict[str, Any]) -> str:
    """How many runs are behind a point."""
    if details.get("seeds", 1) == 1:
        return ""
    return f", the median of {details['seeds']} seeds and what they lie between, {details['events']:,} rows in each run"


def markdown(headings: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (headings, ["---:"] * len(headings), *rows)]


def departure_block(details: dict[str, Any]) -> str:
    """An experiment about something that came out otherwise than in the paper."""
    said = [f"**Asked.** {details['question']} **Tried.** {details['experiment']}", ""]
    table = markdown(details["headings"], details["rows"])
    return "\n".join([*said, *table, "", f"**{details['verdict'].capitalize()}.** {details['because']}"])
