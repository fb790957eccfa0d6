"""The figures as pictures, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Points = list[dict[str, Any]]

LABELS = {
    "wait_units": "latency, time units",
    "busy_ms": "latency back to back, ms",
    "queued_ms": "latency at one speed, ms",
    "compensations": "compensation tuples",
    "execution_us": "execution time per event, µs",
    "stored": "events stored, mean",
    "rows_per_second": "rows/s",
}
LATENCIES = ("wait_units", "busy_ms", "queued_ms")


def panels(details: dict[str, Any]) -> tuple[str, ...]:
    """What is y: the metrics that are named, or the readings of latency that are not all zero."""
    if isinstance(details["metric"], list):
        return tuple(details["metric"])
    if details["metric"] != "latency":
        return (details["metric"],)
    every = [point for line in details["lines"].values() for point in line]
    return tuple(m for m in LATENCIES if any(point[m] for point in every))


def picture_name(details: dict[str, Any]) -> str:
    """`patterns-04.png`"""
    number = details["figure"]
    return f"patterns-{number:02d}.png" if isinstance(number, int) else f"patterns-{number}.png"


def save_figure(details: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure as Picture

    shown = panels(details)
    picture = Picture(figsize=(4.6 * len(shown) + 0.6, 3.6), layout="constrained")
    for axes, metric in zip(picture.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for name, points in details["lines"].items():
            known = [p for p in points if p[metric] is not None]
            if not known:
                continue
            x = [p["x"] for p in known]
            (drawn,) = axes.plot(x, [p[metric] for p in known], marker="o", label=name)
            if all(metric in p.get("spread", {}) for p in known):  # from the least to the most of the seeds
                low, high = zip(*(p["spread"][metric] for p in known), strict=True)
                axes.fill_between(x, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
        axes.set_xlabel(details["x"])
        axes.set_ylabel(LABELS[metric])
        axes.set_ylim(bottom=0)
        axes.set_xscale(details.get("scale", "linear"))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    number = f"Figure {details['figure']}: " if isinstance(details["figure"], int) else ""
    picture.suptitle(number + details["title"], fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=90)
