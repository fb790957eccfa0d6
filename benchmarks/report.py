"""Results as JSON, as a table with ratios, and as a picture."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table


class NotMeasured(RuntimeError):
    """A figure that could not be measured. Nought would look like one that was."""


@dataclass(frozen=True)
class Result:
    """One engine, one question. `seconds` leaves out starting a JVM or a session."""

    name: str
    rows: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A rate needs rows and a time; only of a run that was stopped there may be none."""
        if "unfinished_after" not in self.details and not (self.rows > 0 and 0.0 < self.seconds < math.inf):
            raise NotMeasured(f"{self.name}: {self.rows} rows in {self.seconds} s are no measurement")
        for name, value in self.details.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise NotMeasured(f"{self.name}: {name} is {value}")

    @property
    def events_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def steady(self) -> float:
        """Without the first micro-batch; where there are no batches, the same."""
        return float(self.details.get("steady_events_per_second", self.events_per_second))

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": self.rows,
            "seconds": self.seconds,
            "events_per_second": self.events_per_second,
            "details": self.details,
        }


@dataclass(frozen=True)
class Target:
    """A promise: `value` must be at least (or at most) `bound`."""

    name: str
    value: float
    bound: float
    at_least: bool = True
    unit: str = "x"

    def __post_init__(self) -> None:
        if not 0.0 < self.value < math.inf:
            raise NotMeasured(
                f"{self.name}: {self.value} {self.unit} is no measurement, so the target was neither met nor missed"
            )

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "bound": self.bound, "at_least": self.at_least, "met": self.met}


def target_table(targets: Sequence[Target]) -> Table:
    table = Table(title="targets")
    table.add_column("")
    for heading in ("measured", "target", "met"):
        table.add_column(heading, justify="right")
    for t in targets:
        sign, verdict = "≥" if t.at_least else "≤", "[green]yes[/]" if t.met else "[red]NO[/]"
        table.add_row(t.name, f"{t.value:,.2f} {t.unit}", f"{sign} {t.bound:,g} {t.unit}", verdict)
    return table


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


def save_json(
    results: Sequence[Result], where: Mapping[str, Any], path: Path, targets: Sequence[Target] = (),
    more: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": dict(where),
        "targets": [t.as_dict() for t in targets],
        "results": [r.as_dict() for r in results],
        **(more or {}),
    }
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


def unfinished(result: Result) -> str | None:
    """What to say of a run that was stopped."""
    limit = result.details.get("unfinished_after")
    return None if limit is None else f"did not finish in {limit:.0f} s"


def ratio_table(results: Sequence[Result], subject: str, title: str = "") -> Table:
    """How many times as fast `subject` is as each of the others."""
    ours = next(r for r in results if r.name == subject)
    table = Table(title=title)
    table.add_column("")
    for heading in ("rows", "seconds", "events/s", "steady", f"{subject} is", "steady"):
        table.add_column(heading, justify="right")
    for r in results:
        if unfinished(r):
            table.add_row(r.name, f"{r.rows:,}", unfinished(r))
            continue
        rates = (r.events_per_second, r.steady)
        ratios = ("", "") if r is ours else (ours.events_per_second / rates[0], ours.steady / rates[1])
        cells = [x if isinstance(x, str) else f"{x:,.2f} x" for x in ratios]
        table.add_row(r.name, f"{r.rows:,}", f"{r.seconds:,.1f}", *(f"{x:,.0f}" for x in rates), *cells)
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


def save_spread(values: Mapping[str, Sequence[float]], unit: str, title: str, path: Path) -> None:
    """One box per engine: median, quartiles, and what lies outside."""
    figure, axes = _axes(title)
    axes.boxplot(list(values.values()), tick_labels=list(values), orientation="horizontal", showfliers=True)
    axes.set_xlabel(unit)
    axes.set_xlim(left=0)
    axes.invert_yaxis()
    _save(figure, path)


def save_tails(series: Mapping[str, Sequence[tuple[float, float]]], unit: str, title: str, path: Path) -> None:
    """Percentiles, the far ones spread out."""
    figure, axes = _axes(title)
    for name, points in series.items():
        axes.plot([1.0 / (1.0 - p / 100.0) for p, _ in points], [v for _, v in points], marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [50.0, 90.0, 99.0, 99.9, 99.99]
    axes.set_xticks([1.0 / (1.0 - p / 100.0) for p in ticks], [f"{p:g}%" for p in ticks])
    axes.set_ylabel(unit)
    axes.legend()
    _save(figure, path)


def _axes(title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(textwrap.fill(title, 70))
    axes.grid(alpha=0.3)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
