"""One run of an experiment, event by event, in the runtime and without Spark."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.exchange.cells import batch_of, read_cell, write_cells
from headrace.exchange.pack import Placed
from headrace.generate import events
from headrace.oracle.scalar import evaluate_batch
from headrace.plan.arrow import arrow_type
from headrace.plan.time import START_OF_TIME
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Header, Segment
from headrace.runtime.processor import TaskProcessor
from headrace.stages.lower import Lowered, lower
from headrace.testing.local import MemoryStore

from .patterns_metrics import Trace
from .patterns_runs import Run, Strategy, script_of

WARM_UP_ROWS = 1_000
Call = tuple[Header, Arrivals | None]
WARM: set[tuple[Strategy, int, bool]] = set()  # queries that have run in this process


@dataclass
class Feed:
    """The calls of a run: what each row of the stream brings to the one stage there is."""

    run: Run
    lowered: Lowered
    rows: pa.RecordBatch

    def calls(self) -> tuple[np.ndarray, np.ndarray, list[Call]]:
        """Row numbers, arrivals, and calls, in order of arrival."""
        wanted = pc.is_in(self.rows.column("type"), pa.array(list(self.run.types)))
        if self.run.strategy is not Strategy.CONSERVATIVE:  # the others cannot read promises
            wanted = pc.and_(wanted, pc.is_valid(self.rows.column("at")))
        rows = self.rows.filter(wanted)
        arrival = rows.column("arrival").cast(pa.int64()).to_numpy()
        found: dict[int, Call] = {}
        for name in self.run.types:
            own = rows.filter(pc.equal(rows.column("type"), name))
            numbers = own.column("id").to_numpy().tolist()
            found |= dict(zip(numbers, self._calls_of(name, own), strict=True))
        number = rows.column("id").to_numpy()
        return number, arrival, [found[n] for n in number.tolist()]

    def _calls_of(self, name: str, rows: pa.RecordBatch) -> list[Call]:
        """Those of one type: an event, or a promise, which is nothing but a header."""
        event = np.array(pc.is_valid(rows.column("at")))
        arrivals = iter(self._arrivals(name, rows.filter(pa.array(event))))
        source = next(i for i, s in enumerate(self.lowered.stages[0].sources) if s.name == name)
        at, pog, now = (rows.column(c).cast(pa.int64()).to_pylist() for c in ("at", "pog", "arrival"))
        out: list[Call] = []
        for i in range(rows.num_rows):
            if event[i]:
                segment = Segment(0, (0, i), at[i], 1, source)
                out.append((Header(now[i], (segment,)), next(arrivals)))
            else:
                out.append((Header(now[i], (promise(source, i, pog[i]),)), None))
        return out

    def _arrivals(self, name: str, rows: pa.RecordBatch) -> list[Arrivals]:
        """Every event by itself, with the inputs of the stage computed as Spark would, before it is handed over."""
        stage = self.lowered.stages[0]
        source = next(i for i, s in enumerate(stage.sources) if s.name == name)
        stream = next(s for s in self.lowered.streams if s.name == name)
        values = pa.RecordBatch.from_arrays([rows.column(f.name) for f in stream.schema.fields], names=stream.schema.names)
        inputs = evaluate_batch([i.exprs[source] for i in stage.inputs], stream.schema, values)
        typed = batch_of([c.cast(arrow_type(i.type)) for c, i in zip(inputs.columns, stage.inputs, strict=True)], rows.num_rows)
        n, ts = rows.num_rows, rows.column("at").cast(pa.int64()).to_numpy()
        none = np.zeros(n, np.int64)
        placed = Placed(Keys(ts, none, np.arange(n)), none.astype(np.int32), none[:1], [(0, 0)], 0)
        shape, (cell,) = write_cells(stage, typed, (), placed, none.astype(np.bool_), 1)
        every = read_cell(stage, shape, [Segment(0, (0, 0), 0, n, source)], bytes(cell), 0)
        return [every.take(np.array([i])) for i in range(n)]


def promise(source: int, place: int, pog: int) -> Segment:
    """What a header says of a promise."""
    return Segment(0, (0, place), START_OF_TIME, 1, source, promised=pog + 1)


def trace_of(run: Run) -> Trace:
    """Run it; the first of its kind after a short run of the same query, which compiles what is to be compiled."""
    lowered = lower(script_of(run))
    if len(lowered.stages) != 1:
        raise RuntimeError(f"{len(lowered.stages)} stages, where one was expected")
    shape = (run.strategy, run.length, run.disk is None)
    if shape not in WARM:
        drive(lowered, *Feed(run, lowered, events("sequence", run.options, 0, min(WARM_UP_ROWS, run.rows))).calls())
        WARM.add(shape)
    return drive(lowered, *Feed(run, lowered, events("sequence", run.options, 0, run.rows)).calls())


def drive(lowered: Lowered, rows: np.ndarray, arrival: np.ndarray, calls: list[Call]) -> Trace:
    """Call by call; only `process` is timed, by the processor time it takes: what else the machine does is not in it."""
    processor = TaskProcessor(lowered.stages[0], MemoryStore())
    busy, stored, loads = (np.empty(len(calls), np.int64) for _ in range(3))
    given: list[tuple[int, Changes]] = []
    gc.collect()
    gc.disable()
    try:
        for i, (header, arrivals) in enumerate(calls):
            begin = time.thread_time_ns()
            result = processor.process(header, arrivals)
            busy[i] = time.thread_time_ns() - begin
            stored[i], loads[i] = processor.step.stored, processor.step.frames.loads
            given += ((i, changes) for _, changes in result.changes)
            if result.late or result.missed:
                raise RuntimeError(f"row {rows[i]} came too late, though the generator keeps to its bounds")
    finally:
        gc.enable()
    end = processor.process(Header(int(arrival[-1]), ended=True), None)
    given += ((len(calls), changes) for _, changes in end.changes)
    return Trace(rows, arrival, busy, stored, *collected(lowered, given), loaded=np.diff(loads, prepend=0))


def collected(lowered: Lowered, given: list[tuple[int, Changes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every change: the call that gave it, its sign, and the ids of the events."""
    finish = lowered.finishes[0]
    exprs, places = [e for _, e in finish.items], len(finish.items)
    given = [(i, c) for i, c in given if len(c)]
    if not given:
        return np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros((0, places), np.int64)
    call = np.repeat([i for i, _ in given], [len(c) for _, c in given])
    sign = np.concatenate([c.sign for _, c in given])
    every = pa.Table.from_batches([c.rows for _, c in given]).combine_chunks().to_batches()[0]
    shown = evaluate_batch(exprs, finish.columns, every)
    return call, sign, np.column_stack([shown.column(i).to_numpy(zero_copy_only=False) for i in range(places)])
