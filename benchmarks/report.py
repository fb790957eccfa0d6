"""Results as JSON, as a table with ratios, and as a picture."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One engine, one question. `seconds` leaves out starting a JVM or a session."""

    name: str
    rows: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def events_per_second(self) -> float:
        return self.rows / self.seconds

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": self.rows,
            "seconds": self.seconds,
            "events_per_second": self.events_per_second,
            "details": self.details,
        }


def from_flink(name: str, printed: Mapping[str, Any]) -> Result:
    """The line a Flink script printed."""
    rest = {k: v for k, v in printed.items() if k not in ("rows", "seconds", "events_per_second")}
    return Result(name, int(printed["rows"]), float(printed["seconds"]), rest)


def machine(flink: str | None = None) -> dict[str, Any]:
    versions = {"python": platform.python_version(), "pyspark": metadata.version("pyspark")}
    if flink is not None:
        versions["flink"] = flink
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "load_before": os.getloadavg()[0],
        "versions": versions,
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else None
    return found.group(1) if found else platform.processor() or platform.machine()


def save_json(results: Sequence[Result], where: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": dict(where), "results": [r.as_dict() for r in results]}
    path.write_text(json.dumps(document, indent=2) + "\n")


def ratio_table(results: Sequence[Result], subject: str, title: str = "") -> Table:
    """How many times as fast `subject` is as each of the others."""
    ours = next(r for r in results if r.name == subject)
    table = Table(title=title)
    table.add_column("")
    for heading in ("rows", "seconds", "events/s", f"{subject} is"):
        table.add_column(heading, justify="right")
    for r in results:
        ratio = "" if r is ours else f"{ours.events_per_second / r.events_per_second:,.2f} x"
        table.add_row(r.name, f"{r.rows:,}", f"{r.seconds:,.1f}", f"{r.events_per_second:,.0f}", ratio)
    return table


def save_bars(results: Sequence[Result], title: str, path: Path) -> None:
    """Events/s on a logarithmic axis: the rivals lie decades apart."""
    figure, axes = _axes(title)
    bars = axes.barh([r.name for r in results], [r.events_per_second for r in results])
    axes.bar_label(bars, labels=[f"{r.events_per_second:,.0f}" for r in results], padding=3)
    axes.set_xscale("log")
    axes.set_xlabel("events/s")
    axes.invert_yaxis()
    axes.margins(x=0.15)
    _save(figure, path)


def save_lines(series: Mapping[str, Sequence[tuple[float, float]]], labels: tuple[str, str], title: str, path: Path) -> None:
    """Figures 5 and 6 of Railgun: one line per engine, (x, y) points, both axes logarithmic."""
    figure, axes = _axes(title)
    for name, points in series.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend()
    _save(figure, path)


def _axes(title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.grid(alpha=0.3)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
