"""How fast are patterns beside Flink's MATCH_RECOGNIZE? Two payments of one card within 60 minutes.

Every payment that begins the pattern gives one match, with the next of its card that ends it, if that comes in time: SEQ ..
NEXT MATCH here, `A X*? D` with SKIP TO NEXT ROW there. How many payments begin one is varied, so that the work goes from finding
matches to giving them out.

Headrace is asked in micro-batches of half the rows and of a tenth. Both end, with state saved and results out, more often than
Flink makes a checkpoint (every 10 s); Spark by itself would take all files at once.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from rich.table import Table

from . import command, engine, report
from .payments import Payments, ensure, partitioned, table
from .report import Result, Target
from .rivals import flink_env
from .rivals.spark_native import payments_stream, run_to_end
from .rounds import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MINUTES = 60
MATCHES_PER_EVENT = (0.01, 0.1, 0.3, 1.0)
READS = "spark, rows read and handed to Python"
ENDS_SHARE = 0.2
CHECKED_ROWS = 100_000
FASTER_THAN_FLINK = 5.0
FILES = 10
LONG, SHORT = 5, 1  # files in a micro-batch


@dataclass(frozen=True)
class Question:
    """Which payments begin the pattern, and which end it, by their amount."""

    matches: float  # per event, about
    begins: float  # amounts up to this
    ends: float  # amounts above this

    def condition(self, place: str, ends: bool) -> str:
        return f"{place}.amount {'>' if ends else '<='} {self.ends if ends else self.begins!r}"

    def sql(self, data: Path) -> str:
        conditions = f"a.card = d.card AND {self.condition('a', ends=False)} AND {self.condition('d', ends=True)}"
        return engine.script(
            data, f"""EVENT SEQ(payments a, payments d) NEXT MATCH WHERE {conditions} WITHIN {MINUTES} MINUTES
            RETURN a.card AS card, a.id AS first_id, d.id AS last_id EMIT CHANGES""",
        )  # fmt: skip


def stream(rows: int) -> Payments:
    """36 payments of a card in an hour, and enough hours that windows end."""
    return Payments(rows=rows, files=FILES, cards=max(1, rows // 100), events_per_second=rows / 10_000.0)


def questions(spec: Payments, wanted: tuple[float, ...] = MATCHES_PER_EVENT) -> list[Question]:
    amounts = table(spec)["amount"].to_numpy()
    ends = float(np.quantile(amounts, 1.0 - ENDS_SHARE))
    return [Question(m, float(np.quantile(amounts, min(m, 1.0))), ends) for m in wanted]


def count_matches(spec: Payments, question: Question) -> int:
    """The slow and obvious answer: of each card, the next payment behind one that begins which ends it, if it is in time."""
    rows = table(spec)
    card, at, amount = rows["card"].to_numpy(), rows["at"].cast("int64").to_numpy(), rows["amount"].to_numpy()
    order = np.lexsort((at, card))
    card, at, amount = card[order], at[order], amount[order]
    ends = np.append(np.flatnonzero(amount > question.ends), len(card))
    begins = np.flatnonzero(amount <= question.begins)
    behind = ends[np.searchsorted(ends, begins, side="right")]
    begins, behind = begins[behind < len(card)], behind[behind < len(card)]
    fits = (card[begins] == card[behind]) & (at[behind] - at[begins] <= MINUTES * 60_000_000)
    return int(fits.sum())


def run(log: command.Log, options: argparse.Namespace) -> tuple[list[Result], list[Target], list[Table]]:
    """Both engines in one run, question by question."""
    spec = stream(options.flink_rows // (20 if options.quick else 1))
    asked = questions(spec, options.matches)
    *ours, reads = headrace(log, spec, asked, options.rounds)
    theirs = [] if options.no_flink else flink(log, spec, asked)
    in_long, in_short = ours[: len(asked)], ours[len(asked) :]
    groups = (in_long, in_short, theirs) if theirs else (in_long, in_short)
    results = [*(r for group in zip(*groups, strict=True) for r in group), reads]
    return results, targets(in_long, theirs), [shown(results, spec)]


def headrace(log: command.Log, spec: Payments, asked: list[Question], rounds: int) -> list[Result]:
    """All questions on few rows, to hold their matches against a count by hand; then in turn, in long batches and in short ones.

    Behind them stands what nothing in Python on Spark can exceed: how fast rows are read and handed over.
    """
    spark = engine.session()
    few = stream(CHECKED_ROWS)
    for question in asked:
        check("Headrace", question, few, net_rows(spark, question.sql(ensure(few, command.DATA))))
    runs = [(spec, partial(ask, question, files)) for files in (LONG, SHORT) for question in asked]
    *found, reads = in_turn(log, spark, [*runs, (spec, only_read)], rounds)
    spark.stop()
    return [*(with_matches(log, result, spec, question) for result, question in zip(found, asked * 2, strict=True)), reads]


def only_read(spark: SparkSession, data: Path) -> Result:
    """The columns that the questions need, looked at by nobody."""
    needed = payments_stream(spark, data, LONG).select("id", "card", "amount", "at")
    return run_to_end(READS, needed.mapInArrow(drop, "id BIGINT"), "append")


def drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    return iter(())


def ask(question: Question, files: int, spark: SparkSession, data: Path) -> Result:
    """One question, from start to end."""
    name = f"headrace, {question.matches:g} a payment, {FILES // files} batches"
    return run_to_end(name, engine.results(spark, question.sql(data), files=files), "append", files=files)


def net_rows(spark: SparkSession, sql: str) -> int:
    """How many results stand at the end: those that came, less those that were taken back."""
    found: list[int] = []

    def add(batch: DataFrame, _: int) -> None:
        found.append(int(batch.selectExpr("COALESCE(SUM(IF(_op = '-', -1, 1)), 0) AS n").first()["n"]))  # type: ignore[index]

    with tempfile.TemporaryDirectory(prefix="headrace-check-") as checkpoint:
        frame = engine.results(spark, sql)
        writer = frame.writeStream.foreachBatch(add).option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()
    return sum(found)


def flink(log: command.Log, spec: Payments, asked: list[Question]) -> list[Result]:
    """The same questions in a JVM of its own each, results dropped; once on few rows with results kept, to be counted."""
    try:
        env = flink_env.ensure()
        return [flink_once(log, env, spec, question) for question in asked]
    except flink_env.FlinkUnavailable as why:
        log.say(f"[yellow]without Flink:[/] {why}")
        return []


def flink_once(log: command.Log, env: flink_env.FlinkEnv, spec: Payments, question: Question) -> Result:
    few = stream(CHECKED_ROWS)
    with tempfile.TemporaryDirectory(prefix="flink-matches-") as output:
        flink_env.run(env, "flink_match.py", arguments_of(few, question) | {"output": output})
        found = sum(pq.ParquetFile(path).metadata.num_rows for path in Path(output).rglob("*") if path.is_file())
    check("Flink", question, few, found)
    printed = flink_env.run(env, "flink_match.py", arguments_of(spec, question))
    return with_matches(log, report.from_flink(f"flink, {question.matches:g} a payment", printed), spec, question)


def arguments_of(spec: Payments, question: Question) -> dict[str, object]:
    begins, ends = question.condition("A", ends=False), question.condition("D", ends=True)
    return {"data": partitioned(ensure(spec, command.DATA)), "minutes": MINUTES, "begins": begins, "ends": ends}


def check(who: str, question: Question, spec: Payments, found: int) -> None:
    wanted = count_matches(spec, question)
    if found != wanted:
        raise SystemExit(f"{who} found {found:,} matches, a count by hand {wanted:,} ({question})")


def with_matches(log: command.Log, result: Result, spec: Payments, question: Question) -> Result:
    done = replace(result, details={**result.details, "matches": count_matches(spec, question), "asked": question.matches})
    log.say(f"{done.name}: {done.events_per_second:,.0f} events/s, {done.details['matches']:,} matches")
    return done


def targets(in_long: list[Result], theirs: list[Result]) -> list[Target]:
    pairs = zip(in_long, theirs, strict=True) if theirs else ()
    return [
        Target(f"Flink's MATCH_RECOGNIZE, {a.details['asked']:g} matches a payment", a.events_per_second / b.events_per_second,
               FASTER_THAN_FLINK)
        for a, b in pairs
    ]  # fmt: skip


def shown(results: list[Result], spec: Payments) -> Table:
    flinks = {r.details["asked"]: r.events_per_second for r in results if r.name.startswith("flink")}
    out = Table(title=f"two payments of a card within {MINUTES} minutes; {spec.rows:,} payments, {spec.cards:,} cards")
    out.add_column("")
    for heading in ("matches", "seconds", "events/s", "by Flink", "matches/s", "a batch, ms", "with start-up: events/s"):
        out.add_column(heading, justify="right")
    for r in results:
        rival, total, batches = flinks.get(r.details.get("asked")), r.details.get("total_seconds"), r.details.get("batch_ms")
        matches = r.details.get("matches", 0)
        out.add_row(
            r.name, f"{matches:,}", f"{r.seconds:.1f}", f"{r.events_per_second:,.0f}",
            f"{r.events_per_second / rival:.1f} x" if rival else "", f"{matches / r.seconds:,.0f}",
            f"{np.median(batches):,.0f}" if batches else "", f"{r.rows / total:,.0f}" if total else "",
        )  # fmt: skip
    return out
