"""The picture of the theft demo: for every book with an alarm, what was said of it, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.demo.fraud_picture import AMBER, BLUE, GREY, INK, RED, minutes
from headrace.cli.demo.scripts import AT_ONCE, SORTED, SURE
from headrace.plan.time import MINUTE

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.cli.demo.theft import Said
    from headrace.cli.demo.theft_data import Reading

MARKS = {
    (AT_ONCE, 1): ("v", RED, "EMIT CHANGES: alarm"),
    (AT_ONCE, -1): ("x", RED, "EMIT CHANGES: apology"),
    (SURE, 1): ("s", BLUE, "EMIT FINAL"),
    (SORTED, 1): ("D", AMBER, "EMIT FINAL IN ORDER USING KSLACK"),
}
LIFT = {AT_ONCE: 0.22, SURE: 0.0, SORTED: -0.22}


def draw(rows: list[Reading], said: list[Said], path: Path) -> None:
    from matplotlib.figure import Figure

    gone = {r.book: r.at for r in rows if r.kind == "exit"}
    books = sorted({s.theft[0] for s in said}, key=lambda book: -gone[book])
    figure = Figure(figsize=(11, 1.2 + 0.55 * len(books)), layout="constrained")
    axes = figure.subplots()
    for y, book in enumerate(books):
        last = max(s.at for s in said if s.theft[0] == book)
        axes.plot([gone[book], last], [y, y], color=GREY, lw=0.8, zorder=0)
        axes.plot(gone[book], y, "o", color=INK, ms=6, label="the book leaves" if y == 0 else None)
    for key, (mark, colour, label) in MARKS.items():
        own = [s for s in said if (s.way, s.sign) == key]
        heights = [books.index(s.theft[0]) + LIFT[s.way] for s in own]
        axes.scatter([s.at for s in own], heights, marker=mark, color=colour, s=46, label=label, zorder=2)
    axes.set_yticks(range(len(books)), books, fontsize=8, color=INK)
    low, high = (int(x) for x in axes.get_xlim())
    minutes(axes, low, high, 5 * MINUTE)
    axes.set_title("Alarms at once, and apologies; alarms that are sure; alarms in order", loc="left", fontsize=11, weight="bold")
    axes.legend(fontsize=8, loc="best")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
