"""The picture of the demo: the windows that miss the attack, and the one that does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.demo.fraud_data import EDGE, HOP, LATE, LIMIT, WINDOW, wall
from headrace.plan.time import MINUTE

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from headrace.cli.demo.fraud_data import Payment

INK, GREY, BLUE, RED, AMBER = "#1f2933", "#9aa5b1", "#1d6fb8", "#c62828", "#d98200"


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found: the alerts of Headrace as (card, time, count), and the windows of Spark as (start, card, count)."""

    payments: list[Payment]
    alerts: list[tuple[str, int, int]]
    hops: list[tuple[int, str, int]]

    def of(self, card: str) -> list[Payment]:
        return sorted((p for p in self.payments if p.card == card), key=lambda p: p.at)

    def alert(self, card: str) -> tuple[int, int] | None:
        """Time and count of the first alert of a card."""
        return next(((at, n) for c, at, n in sorted(self.alerts, key=lambda a: a[1]) if c == card), None)

    def fullest(self, card: str) -> int:
        """The most payments of a card that any hopping window holds."""
        return max((n for _, c, n in self.hops if c == card), default=0)


def draw(facts: Facts, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 7.6), height_ratios=(3.2, 1.2), layout="constrained")
    try:
        _edge(top, facts)
        _late(bottom, facts)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    finally:
        plt.close(figure)


def _edge(axes: Axes, facts: Facts) -> None:
    """Figure 1 of the paper: five payments, the hopping windows round them, and the window that ends with the fifth."""
    paid = facts.of(EDGE)
    first, last = paid[0].at, paid[-1].at
    windows = sorted((start, n) for start, card, n in facts.hops if card == EDGE and start + WINDOW > first)
    y = 0.0
    for start, n in windows:
        y -= 1
        _bar(axes, start, start + WINDOW, y, GREY, f"{n}", bold=n == max(n for _, n in windows))
    axes.text(
        windows[0][0] - 8e6 if windows else first, y / 2 - 0.5, "hopping windows\nof Spark", ha="right", va="center", color=INK
    )
    y -= 1.5
    _exact(axes, facts.alert(EDGE), y, f"  > {LIMIT}: block")
    for number, p in enumerate(paid, 1):
        axes.plot([p.at, p.at], [0.6, y - 0.5], color=BLUE, lw=0.9, ls=":", zorder=0)
        axes.plot(p.at, 0.6, "o", color=BLUE, ms=9)
        axes.text(p.at, 1.05, f"{number}\n{wall(p.at)}", ha="center", va="bottom", color=INK, fontsize=9)
    axes.text(first - 20e6, 0.6, f"payments of {EDGE}", ha="right", va="center", color=BLUE)
    title = f"{len(paid)} payments in {_span(last - first)}; the fullest of Spark's windows holds {facts.fullest(EDGE)}"
    _dress(axes, first - WINDOW - MINUTE, last + WINDOW, y - 1, 2.4, title)


def _late(axes: Axes, facts: Facts) -> None:
    """A payment that arrives after those that followed it."""
    paid = facts.of(LATE)
    for p in paid:
        late = p.arrival > p.at
        axes.plot(p.at, 1, "o", color=AMBER if late else BLUE, ms=9)
        if late:
            arrow = {"arrowstyle": "->", "color": AMBER, "connectionstyle": "arc3,rad=-0.35", "lw": 1.4}
            axes.annotate("", xy=(p.arrival, 1.05), xytext=(p.at, 1.15), arrowprops=arrow)
            axes.text(
                p.arrival, 0.85, f"arrives {_span(p.arrival - p.at)}\nlater", ha="center", va="top", color=AMBER, fontsize=9
            )
    _exact(axes, facts.alert(LATE), 0, ", the late one counted")
    axes.text(paid[0].at - 20e6, 1, f"payments of {LATE}", ha="right", va="center", color=BLUE)
    _dress(axes, paid[0].at - WINDOW - MINUTE, paid[-1].at + WINDOW, -0.7, 1.9, "Late, and still in its place")


def _exact(axes: Axes, alert: tuple[int, int] | None, y: float, words: str) -> None:
    """The window that ends with an alert, and how many payments are in it."""
    if alert:
        at, n = alert
        _bar(axes, at - WINDOW, at, y, RED, f"{n}{words}", bold=True)
        axes.text(at - WINDOW - 8e6, y, "exact window\nof Headrace", ha="right", va="center", color=RED, weight="bold")


def _bar(axes: Axes, start: int, end: int, y: float, colour: str, text: str, bold: bool) -> None:
    axes.barh(y, end - start, left=start, height=0.62, color=colour, alpha=0.85 if bold else 0.4)
    axes.text(end - 6e6, y, text, ha="right", va="center", color="white" if bold else INK, weight="bold" if bold else "normal")


def _dress(axes: Axes, left: int, right: int, low: float, high: float, title: str) -> None:
    axes.set_title(title, loc="left", color=INK, fontsize=11, weight="bold")
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.set_yticks([])
    minutes(axes, left, right, HOP)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def minutes(axes: Axes, left: int, right: int, every: int) -> None:
    """The time of day along an axis of microseconds."""
    ticks = range(-(-left // every) * every, right, every)
    axes.set_xticks(list(ticks), [wall(t, "%H:%M") for t in ticks], fontsize=8, color=INK)
    axes.grid(axis="x", color="#e4e7eb", lw=0.8, zorder=-1)


def _span(micros: int) -> str:
    minutes, seconds = divmod(micros // 1_000_000, 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
