"""Does an event cost more when the window is longer, if the matches stay the same? In one process, without Spark.

Two payments of one card, the second the next that ends the pattern, which comes within seconds: any window holds it. Or it never
comes: then all that begins a pattern is kept, and the longer the window, the more of it. Or any two, if the second is larger by
so much that none ever is, which only both together tell. Measured is the second half of a stream
that is twice as long as the longest window, so that all of them are full.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from rich.table import Table

from headrace.changes.keys import Keys
from headrace.exchange.cells import batch_of, read_cell, write_cells
from headrace.exchange.pack import Placed, segments_of
from headrace.oracle.scalar import evaluate_batch
from headrace.plan.arrow import arrow_type
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Header, Segment
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.save import save
from headrace.sql import parse_script
from headrace.stages.lower import Lowered, lower
from headrace.steps.patterns.step import PatternStep
from headrace.testing.local import MemoryStore

from . import command, engine
from .payments import Payments, table
from .report import Result, Target

if TYPE_CHECKING:
    from headrace.program.stage import Disorder

MINUTES = (1, 10, 60, 600)
BATCH = 2_000
LATE_SECONDS = 60.0
RUNS = 5
QUICK_ROWS = 4_000
AS_FLAT_AS = 1.5  # 600 times the window: an event costs at most so much more
BY_LOGARITHM = 2.0  # and where values are compared: of 600 times as many, some six more are looked at
MEDIAN_AMOUNT, NO_AMOUNT = 20.09, 1e12
MORE = "d.amount > a.amount + 1e12"


@dataclass(frozen=True)
class Case:
    """How the stream comes, and which payments end the pattern, by their amount."""

    name: str
    late_share: float
    ends: float = NO_AMOUNT
    pattern: str = "SEQ(payments a, payments d) NEXT MATCH"
    between: str = ""

    @property
    def target(self) -> float:
        return BY_LOGARITHM if self.between else AS_FLAT_AS

    @property
    def delay(self) -> float:
        return LATE_SECONDS if self.late_share else 0.0

    def stream(self, rows: int) -> Payments:
        """Few cards, so that a card pays every few seconds and its list of events is long."""
        rate = rows / (2 * 60.0 * max(MINUTES))
        return Payments(
            rows=rows, files=1, cards=max(1, rows // 20_000), events_per_second=rate, late_share=self.late_share,
            late_max_seconds=self.delay,
        )  # fmt: skip


CASES = (
    Case("in order", 0.0, MEDIAN_AMOUNT),
    Case("a fifth late", 0.2, MEDIAN_AMOUNT),
    Case("in vain", 0.0),
    Case("in vain, a fifth late", 0.2),
    Case("never so much more", 0.0, pattern="SEQ(payments a, payments d)", between=MORE),
    Case("never so much more, a fifth late", 0.2, pattern="SEQ(payments a, payments d)", between=MORE),
)


def run(log: command.Log, options: argparse.Namespace) -> tuple[list[Result], list[Target], Table]:
    """Every case with every window; of a few runs the quickest, because other programs can only slow one down."""
    rows, minutes, runs = (QUICK_ROWS, MINUTES[::3], 1) if options.quick else (options.window_rows, MINUTES, RUNS)
    results: list[Result] = []
    targets = []
    for case in CASES:
        spec = case.stream(rows)
        found = best(case, table(spec), minutes, runs)
        for r in found:
            log.say(f"{r.name}: {r.seconds / r.rows * 1e6:,.2f} us an event, {r.details['matches']:,} matches")
        results += found
        cost = found[-1].seconds / found[0].seconds
        targets.append(Target(f"{max(MINUTES)} against {min(MINUTES)} minutes, {case.name}", cost, case.target, at_least=False))
    return results, targets, shown(results)


def best(case: Case, rows: pa.Table, every: Sequence[int], times: int) -> list[Result]:
    """All windows in turn, a few times, so that what else the machine does falls on all of them."""
    rounds = [[once(case, minutes, rows) for minutes in every] for _ in range(times)]
    return [min(runs, key=lambda r: r.seconds) for runs in zip(*rounds, strict=True)]


def once(case: Case, minutes: int, rows: pa.Table) -> Result:
    return drive(case, minutes, lower(parse_script(script(case, minutes))), rows)


def script(case: Case, minutes: int) -> str:
    compared = case.between or f"a.amount <= {MEDIAN_AMOUNT} AND d.amount > {case.ends!r}"
    return engine.script(
        Path("payments"), f"""EVENT {case.pattern} WHERE a.card = d.card AND {compared} WITHIN {minutes} MINUTES
        RETURN a.card AS card, a.id AS first_id, d.id AS last_id EMIT CHANGES""", case.delay,
    )  # fmt: skip


def drive(case: Case, minutes: int, lowered: Lowered, rows: pa.Table) -> Result:
    """Batch by batch, state saved after each as Spark would have it; timed by the processor time of this thread."""
    store = MemoryStore()
    processor = TaskProcessor(lowered.stages[0], store)
    calls = batches(lowered, rows)
    seconds, counted, matches = 0.0, 0, 0
    gc.collect()
    for i, (header, arrivals) in enumerate(calls):
        begin = time.thread_time()
        result = processor.process(header, arrivals)
        save(processor, store)
        if i >= len(calls) // 2:
            seconds, counted = seconds + time.thread_time() - begin, counted + len(arrivals)
        matches += sum(int(changes.sign.sum()) for _, changes in result.changes)
    if result.late:
        raise RuntimeError("rows came too late, though the generator keeps to its bounds")
    assert isinstance(processor.step, PatternStep)
    details = {"matches": matches, "minutes": minutes, "case": case.name, "stored": processor.step.stored}
    return Result(f"{minutes} minutes, {case.name}", counted, seconds, details)


def batches(lowered: Lowered, rows: pa.Table) -> list[tuple[Header, Arrivals]]:
    """What a bucket is given: inputs computed, rows that fit no place left out."""
    (stage,), (stream,) = lowered.stages, lowered.streams
    out = []
    for start in range(0, rows.num_rows, BATCH):
        some = rows.slice(start, BATCH).combine_chunks().to_batches()[0]
        found = evaluate_batch([i.exprs[0] for i in stage.inputs], stream.schema, some)
        inputs = batch_of([c.cast(arrow_type(i.type)) for c, i in zip(found.columns, stage.inputs, strict=True)], some.num_rows)
        placed, segments, behind = place(some, start, stage.sources[0].disorder)
        shape, (cell,) = write_cells(stage, inputs, (), placed, behind, 1)
        out.append((Header(0, tuple(segments)), read_cell(stage, shape, segments, bytes(cell), 0)))
    return out


def place(rows: pa.RecordBatch, start: int, disorder: Disorder) -> tuple[Placed, list[Segment], np.ndarray]:
    n = rows.num_rows
    none = np.zeros(n, np.int64)
    ts = rows.column("at").cast(pa.int64()).to_numpy()
    placed = Placed(Keys(ts, none, np.arange(start, start + n)), none.astype(np.int32), none[:1], [(0, start)], 0)
    return placed, *segments_of(placed, disorder)


def shown(results: list[Result]) -> Table:
    out = Table(title="what an event costs against WITHIN; the matches are the same")
    out.add_column("")
    for heading in ("matches", "events kept", "us an event"):
        out.add_column(heading, justify="right")
    for r in results:
        out.add_row(r.name, f"{r.details['matches']:,}", f"{r.details['stored']:,}", f"{r.seconds / r.rows * 1e6:,.2f}")
    return out
