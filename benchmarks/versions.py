"""Is this version slower than another? Headrace's own side of `sliding`, `small_batches` and `patterns`, both versions by turns.

The other version is a revision of this repository, checked out into a temporary folder, or any checkout. Every run is a process
of its own, with the engine and the benchmark helpers of its version. Of each pair of runs the ratio counts, new by base, so that
a slow minute of the machine falls on both; the median of the ratios is held against the target. What was measured is written
after every run: `--resume` goes on where a run that was stopped left off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from . import command
from .report import NotMeasured, Result, Target, machine

ROOT = command.HERE.parent
SIDE = command.HERE / "versions_side.py"
RUN_SIDE = "import runpy, sys; runpy.run_path(sys.argv[1])['main'](sys.argv[2:])"
PARTS = ("sliding", "small_batches", "patterns")
AT_LEAST = 0.97
BASE, NEW = "base", "new"


@dataclass(frozen=True)
class Size:
    """How long one run of a part is."""

    rows: int = 0
    rounds: int = 1
    warm_up: float = 0.0
    measured: float = 0.0


SIZES = {
    "sliding": Size(rows=1_250_000, rounds=4, warm_up=45.0),
    "small_batches": Size(warm_up=20.0, measured=20.0),
    "patterns": Size(rows=1_250_000, rounds=4, warm_up=45.0),
}
QUICK = {
    "sliding": Size(rows=4_000),
    "small_batches": Size(measured=2.0),
    "patterns": Size(rows=4_000),
}


@dataclass(frozen=True)
class Measured:
    """One run of one version."""

    part: str
    pair: int
    version: str
    values: dict[str, float]
    cpu_seconds: float


def main(options: argparse.Namespace) -> None:
    log = command.Log()
    path = command.file_for(options, "json")
    with checkout(options.base) as base:
        folders = {BASE: base, NEW: ROOT}
        about = {"base": revision_of(base), "new": revision_of(ROOT), "quick": options.quick}
        runs = resumed(path, about) if options.resume else []
        for part, pair, version in todo(options.parts, options.pairs, runs):
            runs.append(measure(folders[version], part, pair, version, (QUICK if options.quick else SIZES)[part]))
            values = ", ".join(f"{name} {value:,.1f}/s" for name, value in runs[-1].values.items())
            log.say(f"{part}, pair {pair + 1}, {version}: {values}")
            write(path, about, runs)
    found = ratios(runs)
    targets = targets_of(found)
    command.finish(log, options, results_of(runs), targets, shown(found, about), more={"about": about, "runs": dicts(runs)})


def todo(parts: Sequence[str], pairs: int, done: Sequence[Measured]) -> Iterator[tuple[str, int, str]]:
    """By turns: who comes first changes from pair to pair."""
    have = {(m.part, m.pair, m.version) for m in done}
    for part in parts:
        for pair in range(pairs):
            for version in (BASE, NEW) if pair % 2 == 0 else (NEW, BASE):
                if (part, pair, version) not in have:
                    yield part, pair, version


def measure(folder: Path, part: str, pair: int, version: str, size: Size) -> Measured:
    """In a new process that sees only that version."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(folder)))}
    words = [part, "--data", str(command.DATA)]
    for name, value in asdict(size).items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(
        [sys.executable, "-c", RUN_SIDE, str(SIDE), *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise NotMeasured(f"{part} of {version} ({folder}) failed ({done.returncode}):\n{done.stderr[-2000:]}")
    printed = json.loads(lines[-1])
    if Path(printed["headrace"]) != (folder / "src" / "headrace").resolve():
        raise NotMeasured(f"{version} should run {folder}/src, but ran {printed['headrace']}")
    return Measured(part, pair, version, printed["values"], float(printed["cpu_seconds"]))


def ratios(runs: Sequence[Measured]) -> dict[str, list[float]]:
    """Of every measure: new by base, pair by pair. Processor time the other way round, so that more is better everywhere."""
    by_place = {(m.part, m.pair, m.version): m for m in runs}
    out: dict[str, list[float]] = {}
    for (part, pair, version), base in by_place.items():
        new = by_place.get((part, pair, NEW))
        if version != BASE or new is None:
            continue
        if base.values.keys() != new.values.keys():
            raise NotMeasured(f"{part}: {sorted(base.values)} were measured of the base, {sorted(new.values)} of the new version")
        for name, value in base.values.items():
            out.setdefault(f"{part}, {name}", []).append(new.values[name] / value)
        if part != "small_batches":  # which takes as long as it is told to
            out.setdefault(f"{part}, processor time", []).append(base.cpu_seconds / new.cpu_seconds)
    return out


def targets_of(found: Mapping[str, Sequence[float]]) -> list[Target]:
    """Rates count; processor time stands beside them, for a machine that is not idle."""
    rates = {name: values for name, values in found.items() if not name.endswith("processor time")}
    return [Target(f"{name}: new by base, median", statistics.median(values), AT_LEAST) for name, values in rates.items()]


def results_of(runs: Sequence[Measured]) -> list[Result]:
    """For the report: every run, its rates as details."""
    return [Result(f"{m.part}, pair {m.pair + 1}, {m.version}", 1, m.cpu_seconds, dict(m.values)) for m in runs]


def shown(found: Mapping[str, Sequence[float]], about: Mapping[str, Any]) -> Table:
    table = Table(title=f"{about['new']} by {about['base']}: more than 1 is faster")
    table.add_column("")
    for heading in ("median", "least", "most", "pairs", "all"):
        table.add_column(heading, justify="right")
    for name, values in found.items():
        spread = (statistics.median(values), min(values), max(values))
        table.add_row(name, *(f"{v:.3f}" for v in spread), str(len(values)), " ".join(f"{v:.2f}" for v in values))
    return table


@contextmanager
def checkout(base: str) -> Iterator[Path]:
    """A folder as it is, or a revision in a temporary worktree."""
    if Path(base).is_dir():
        yield Path(base).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="headrace-version-") as place:
        folder = Path(place) / "checkout"
        git("worktree", "add", "--detach", str(folder), base)
        try:
            yield folder.resolve()
        finally:
            git("worktree", "remove", "--force", str(folder))


def revision_of(folder: Path) -> str:
    """The commit, with a mark if there is more than it."""
    changed = git("-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return git("-C", str(folder), "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def resumed(path: Path, about: Mapping[str, Any]) -> list[Measured]:
    """What a run before this one measured, of the same versions."""
    if not path.exists():
        return []
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("about") != dict(about):
        raise SystemExit(
            f"{path} has {document.get('about')}, this is {dict(about)}: run without --resume, or give another --json"
        )
    return [Measured(**m) for m in document["runs"]]


def write(path: Path, about: Mapping[str, Any], runs: Sequence[Measured]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), "about": dict(about), "runs": dicts(runs)}
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def dicts(runs: Sequence[Measured]) -> list[dict[str, Any]]:
    return [asdict(m) for m in runs]


def arguments() -> argparse.ArgumentParser:
    options = command.parser("versions", __doc__.splitlines()[0])
    options.add_argument("--base", default="HEAD~1", help="a revision, or the folder of a checkout (default HEAD~1)")
    options.add_argument("--pairs", type=int, default=5)
    command.add_parts(options, PARTS)
    options.add_argument("--resume", action="store_true", help="go on where the last run was stopped")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
