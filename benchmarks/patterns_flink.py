"""How fast are patterns beside Flink's MATCH_RECOGNIZE? Payments of one card within 60 minutes (`patterns_questions.py`).

Headrace is asked in micro-batches of half the rows and of a tenth. Both end, with state saved and results out, more often than
Flink makes a checkpoint (every 10 s); Spark by itself would take all files at once.

Both engines are asked *cold*, the first job of a new JVM, and *warm*, in a JVM that has had the same job before. Both are timed
from the job's start to its end. The matches of both are held against those by hand, row by row, before anything is timed. What
was measured is written after every run; `--resume` goes on from there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from rich.table import Table

from . import command, engine, report
from .patterns_questions import MATCHES_PER_EVENT, Question, difference, in_order, questions, stream
from .patterns_spark import all_rows, signs
from .payments import Payments, ensure, partitioned
from .report import NotMeasured, Result, Target
from .rivals import flink_env
from .rivals.spark_native import payments_stream, run_to_end
from .rounds import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["MATCHES_PER_EVENT", "run"]

READS = "spark, rows read and handed to Python"
CHECKED_ROWS, QUICK_ROWS = 100_000, 4_000
FASTER_THAN_FLINK = 5.0
WARM, COLD = "warm", "cold"


@dataclass(frozen=True)
class Size:
    """How much is asked, and how often."""

    rows: int
    checked: int
    rounds: int
    files: int = 10
    batches: tuple[int, int] = (5, 1)  # files in a long micro-batch, and in a short one
    quick: bool = False

    def spec(self, question: Question) -> Payments:
        return stream(self.rows, self.files, question.late)

    def timed(self, asked: list[Question]) -> list[Question]:
        """The questions that are timed; quickly, the first. The matches of all of them are looked at."""
        return asked[:1] if self.quick else asked

    @property
    def whos(self) -> list[str]:
        return [f"{self.files // n} batches" for n in self.batches]

    def name(self, question: Question, files: int) -> str:
        return f"headrace, {question.name}, {self.files // files} batches"

    @staticmethod
    def of(options: argparse.Namespace) -> Size:
        if options.quick:
            return Size(QUICK_ROWS, QUICK_ROWS, 1, files=2, batches=(2, 1), quick=True)
        return Size(options.flink_rows, CHECKED_ROWS, options.rounds)


class Progress:
    """What was measured so far, in a file."""

    def __init__(self, path: Path, about: dict[str, Any], resume: bool) -> None:
        self.path, self.about = path, about
        known = json.loads(path.read_text(encoding="utf-8")) if resume and path.exists() else {}
        self.found: dict[str, dict[str, Any]] = known.get("found", {}) if known.get("about") == about else {}

    def get(self, key: str, measure: Callable[[], Result]) -> Result:
        """A measurement, made if it is not there."""
        if key not in self.found:
            result = measure()
            self.found[key] = {"name": result.name, "rows": result.rows, "seconds": result.seconds, "details": result.details}
            self._write()
        return Result(**self.found[key])

    def note(self, key: str) -> None:
        """That something was seen to be right."""
        self.found[key] = {}
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"about": self.about, "found": self.found}, indent=2) + "\n", encoding="utf-8")


def run(log: command.Log, options: argparse.Namespace) -> tuple[list[Result], list[Target], list[Table]]:
    """Both engines in one run, question by question."""
    size = Size.of(options)
    rates = options.matches[:1] if options.quick else options.matches
    asked = questions(stream(size.rows, size.files), rates)
    about = {"rows": size.rows, "rounds": size.rounds, "questions": [repr(q) for q in asked]}
    progress = Progress(command.file_for(options, "json").with_name("patterns-flink-runs.json"), about, options.resume)
    results = headrace(log, progress, size, asked)
    if not options.no_flink:
        results += flink(log, progress, size, asked)
    timed = size.timed(asked)
    return results, targets(results, timed, size), [shown(results, timed, size)]


def headrace(log: command.Log, progress: Progress, size: Size, asked: list[Question]) -> list[Result]:
    """All questions on few rows, held against matches by hand; then cold, each in a process of its own; then in turn, warm.

    Behind them stands what nothing in Python on Spark can exceed: how fast rows are read and handed over.
    """
    plan = [(question, files) for files in size.batches for question in size.timed(asked)]
    cold = [progress.get(f"cold {size.name(q, f)}", partial(ask_cold, log, size, q, f)) for q, f in plan]
    keys = [*(f"warm {size.name(q, f)}" for q, f in plan), READS]
    if any(key not in progress.found for key in keys):
        for key, result in zip(keys, warm_runs(log, size, asked, plan), strict=True):
            progress.get(key, lambda result=result: result)  # type: ignore[misc]
    warm = [Result(**progress.found[key]) for key in keys]
    return [*cold, *warm]


def warm_runs(log: command.Log, size: Size, asked: list[Question], plan: list[tuple[Question, int]]) -> list[Result]:
    spark = engine.session()
    for question in asked:
        few = stream(size.checked, 2, question.late)
        check("Headrace", question, few, standing(spark, question, question.headrace(ensure(few, command.DATA))))
    runs = [(size.spec(q), partial(ask, size, q, files)) for q, files in plan]
    reading = partial(only_read, size.batches[0])
    *found, reads = in_turn(log, spark, [*runs, (stream(size.rows, size.files), reading)], size.rounds, size.quick)
    spark.stop()
    labelled = [labelled_as(WARM, r, size, q) for r, (q, _) in zip(found, plan, strict=True)]
    return [*labelled, reads]


def ask_cold(log: command.Log, size: Size, question: Question, files: int) -> Result:
    """The first query of a new process, and so of a new JVM; quickly, of this one."""
    data = ensure(size.spec(question), command.DATA)
    if size.quick:
        result = first_query(size, question, files, data)
    else:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            result = pool.submit(first_query, size, question, files, data).result()
    log.say(f"{result.name}, cold: {result.events_per_second:,.0f} events/s")
    return labelled_as(COLD, result, size, question)


def first_query(size: Size, question: Question, files: int, data: Path) -> Result:
    spark = engine.session()
    result = ask(size, question, files, spark, data)
    spark.stop()
    return result


def only_read(files: int, spark: SparkSession, data: Path) -> Result:
    """The columns that the questions need, looked at by nobody."""
    needed = payments_stream(spark, data, files).select("id", "card", "amount", "at")
    return run_to_end(READS, needed.mapInArrow(drop, "id BIGINT"), "append")


def drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    return iter(())


def ask(size: Size, question: Question, files: int, spark: SparkSession, data: Path) -> Result:
    """One question, from start to end."""
    frame = engine.results(spark, question.headrace(data), files=files)
    return run_to_end(size.name(question, files), frame, "append", batches_of=f"{size.files // files} batches")


def standing(spark: SparkSession, question: Question, sql: str) -> np.ndarray:
    """The matches that stand when the input has ended: those that came, less those that were taken back."""
    parts = [event for event in all_rows(spark, sql) if event.rows.num_rows]
    if not parts:
        return np.zeros((0, len(question.columns)), np.int64)
    rows = np.concatenate([np.column_stack([e.rows.column(c).to_numpy() for c in question.columns]) for e in parts])
    every, which = np.unique(rows, axis=0, return_inverse=True)
    left = np.bincount(which.reshape(-1), weights=np.concatenate([signs(e) for e in parts])).astype(np.int64)
    if ((left < 0) | (left > 1)).any():
        raise NotMeasured(f"{question.name}: a match came twice, or was taken back without being there")
    return np.asarray(every[left == 1])


def flink(log: command.Log, progress: Progress, size: Size, asked: list[Question]) -> list[Result]:
    """The same questions in a JVM of its own each, results dropped: once cold, and once more in the same JVM."""
    try:
        env = flink_env.ensure()
        out = []
        for question in asked:
            seen = f"flink's matches, {question.name}"
            if seen not in progress.found:
                check_flink(env, size, question)
                progress.note(seen)
        for question in size.timed(asked):
            both = progress.get(f"flink {question.name}", partial(flink_once, log, env, size, question))
            warm = [float(s) for s in both.details["warm_seconds"]]
            out.append(labelled_as(COLD, both, size, question))
            out.append(labelled_as(WARM, replace(both, seconds=float(np.median(warm))), size, question))
        return out
    except flink_env.FlinkUnavailable as why:
        log.say(f"[yellow]without Flink:[/] {why}")
        return []


def check_flink(env: flink_env.FlinkEnv, size: Size, question: Question) -> None:
    """On few rows with results kept, which are held against those by hand."""
    few = stream(size.checked, 2, question.late)
    with tempfile.TemporaryDirectory(prefix="flink-matches-") as output:
        flink_env.run(env, "flink_match.py", flink_arguments(few, question) | {"output": output})
        check("Flink", question, few, written(Path(output), question))


def flink_once(log: command.Log, env: flink_env.FlinkEnv, size: Size, question: Question) -> Result:
    """Twice in one JVM: cold, and warm."""
    printed = flink_env.run(env, "flink_match.py", flink_arguments(size.spec(question), question) | {"repeat": 2}, timeout=3600.0)
    result = report.from_flink(f"flink, {question.name}", printed)
    log.say(f"{result.name}: cold {result.seconds:.1f} s, warm {result.details['warm_seconds']}")
    return result


def flink_arguments(spec: Payments, question: Question) -> dict[str, object]:
    return {"data": partitioned(ensure(spec, command.DATA)), **question.flink()}


def written(output: Path, question: Question) -> np.ndarray:
    """The matches that Flink wrote."""
    parts = [pq.read_table(path) for path in sorted(output.rglob("*")) if path.is_file()]
    rows = [np.column_stack([part[c].to_numpy() for c in question.columns]) for part in parts if part.num_rows]
    return np.concatenate(rows) if rows else np.zeros((0, len(question.columns)), np.int64)


def check(who: str, question: Question, spec: Payments, found: np.ndarray) -> None:
    wrong = difference(in_order(found), question.by_hand(spec))
    if wrong is not None:
        raise SystemExit(f"{who}, {question.name}: {wrong}")


def labelled_as(state: str, result: Result, size: Size, question: Question) -> Result:
    matches = len(question.by_hand(size.spec(question)))
    return replace(result, details={**result.details, "matches": matches, "asked": question.name, "state": state})


def rates(results: list[Result], question: Question) -> dict[tuple[str, str], float]:
    """Events/s by (state, who): flink, or headrace in so many batches."""
    out = {}
    for r in results:
        if r.details.get("asked") == question.name:
            out[r.details["state"], r.details.get("batches_of", "flink")] = r.events_per_second
    return out


def targets(results: list[Result], asked: list[Question], size: Size) -> list[Target]:
    """Warm against warm and cold against cold, in long micro-batches and in short ones."""
    out = []
    for question in asked:
        rate = rates(results, question)
        for state in (WARM, COLD):
            for who in size.whos:
                if (state, "flink") in rate:
                    faster = rate[state, who] / rate[state, "flink"]
                    out.append(
                        Target(f"Flink's MATCH_RECOGNIZE, {question.name}, {who}, both {state}", faster, FASTER_THAN_FLINK)
                    )
    return out


def shown(results: list[Result], asked: list[Question], size: Size) -> Table:
    out = Table(title=f"payments of a card within 60 minutes; {size.rows:,} payments, {size.rows // 100:,} cards; events/s")
    out.add_column("")
    whos = size.whos
    for heading in ("matches", "", "Flink", *(h for who in whos for h in (who, "Headrace is"))):
        out.add_column(heading, justify="right")
    for question in asked:
        rate = rates(results, question)
        matches = next(r.details["matches"] for r in results if r.details.get("asked") == question.name)
        for state in (WARM, COLD):
            rival = rate.get((state, "flink"))
            cells = [
                c for who in whos for c in (f"{rate[state, who]:,.0f}", f"{rate[state, who] / rival:.1f} x" if rival else "")
            ]
            name = (question.name, f"{matches:,}") if state == WARM else ("", "")
            out.add_row(*name, state, f"{rival:,.0f}" if rival else "", *cells, end_section=state == COLD)
    reads = next(r for r in results if r.name == READS)
    out.caption = f"{READS}: {reads.events_per_second:,.0f} events/s in {whos[0]}"
    return out
