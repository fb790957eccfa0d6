"""The task processor (003, 3.3): what runs in a bucket. Admit, ask the step, release; one batch or one event a call."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes
from headrace.plan.time import START_OF_TIME
from headrace.program.outputs import Output
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Clocks, Header
from headrace.runtime.intake import all_true
from headrace.runtime.opening import Opening
from headrace.state.parts import ChunkStore, Handle
from headrace.state.reservoir import CHUNK_ROWS, ChunkCache
from headrace.state.rows import Layout
from headrace.state.tables import Tables
from headrace.steps.kinds import freed_tables, make_step
from headrace.steps.step import Results, Standing, Step, StepParts, Times

if TYPE_CHECKING:
    from headrace.runtime.single import Single

MOVED_AT_ONCE = 64  # final rows for which a step that may wait is moved
TIME_COLUMN = pa.field("_time", pa.timestamp("us", "UTC"))


@dataclass(slots=True)
class Result:
    """What a batch gave: changes per query, and counts."""

    changes: Results = field(default_factory=list)
    late: int = 0  # behind the frontier of their stream
    late_of: dict[int, int] = field(default_factory=dict)  # the same by the number of the source
    missed: int = 0  # of those admitted: behind what has been taken by K-slack


class TaskProcessor:
    """The stage of a plan in one bucket. Holds its state in memory; `headrace.runtime.save` writes and reads it."""

    def __init__(
        self,
        stage: Stage[Any],
        store: ChunkStore,
        cache: ChunkCache | None = None,
        owner: Hashable = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self.stage, self.layout = stage, Layout.of(stage)
        self.clock, self._tables = Clocks(stage), Tables(stage, freed_tables(stage))
        self.cache = cache if cache is not None else ChunkCache()
        self.store = Handle(store)
        self._step: Step = make_step(StepParts(stage, self.layout, self._tables, self.store, self.cache, owner, chunk_rows))
        self._open = Opening(stage, self.layout, self._tables)
        self.single: Single | None = None  # who takes single events, if anybody does
        self._idle = not stage.program.queries  # only late rows are asked for
        self._stands = (START_OF_TIME, START_OF_TIME)  # where the step does: frontier, and end of what is final
        self.begun: dict[str, int] = {}  # queries that were added to a running script say nothing of times up to these
        self.fresh = False  # whether it was made beside others that go on, and still has to be given the rows of tables
        self.since = START_OF_TIME  # how far time was when it began with nothing; it lacks what came before

    # Where single events have been taken since, the step, its tables and the open rows are brought up to date first.
    @property
    def step(self) -> Step:
        self._be_shown()
        return self._step

    @property
    def tables(self) -> Tables:
        self._be_shown()
        return self._tables

    @property
    def open(self) -> Opening:
        self._be_shown()
        return self._open

    def _be_shown(self) -> None:
        if self.single is not None:
            self.single.show()

    def stand_at(self, frontier: int, final_before: int) -> None:
        """The step has been moved up to here."""
        self._stands = (frontier, final_before)

    def attach(self, store: ChunkStore) -> None:
        """Go on with another handle to the same bytes."""
        self.store.store = store

    def process(self, header: Header, arrivals: Arrivals | None) -> Result:
        """Take in a batch (or one event), and give what leaves because of it."""
        if self.single is not None:
            self.single.rest()
        result, clock = Result(), self.clock
        bounds, taken = clock.thresholds(header), clock.taken_before(self.stage.doors)
        frontier, latest = clock.frontier, clock.latest
        clock.advance(header)
        fresh = self._admit(header, arrivals, bounds, taken, result) if arrivals is not None and len(arrivals) else None
        if self._idle:
            return result
        if fresh is None or not self._waits():
            self._stands = (clock.frontier, clock.final_before)
        next_frontier, final_before = self._stands
        times = Times(
            frontier, latest, next_frontier, clock.latest, tuple(c.frontier for c in clock.sources), final_before,
            clock.furthest, clock.last, clock.taken_before(self.stage.doors),
        )  # fmt: skip
        step, opening = self._step, self._open
        turn = opening.turn(fresh, step, times)
        result.changes += self._told(step.turn(turn))
        for columns in step.settle(turn):
            opening.let_go(columns)
        opening.settle(turn, step)
        return result

    def _admit(self, header: Header, arrivals: Arrivals, bounds: np.ndarray, taken: int, result: Result) -> Arrivals:
        """Part the late rows from the others. What comes behind rows that have been taken is late, too."""
        late = arrivals.behind | (arrivals.keys.ts < (bounds if len(bounds) == 1 else bounds[arrivals.segment]))
        result.late = int(np.count_nonzero(late))
        if result.late:
            sources = np.array([s.source for s in header.segments])[arrivals.segment[late]]
            result.late_of = {int(s): int(n) for s, n in zip(*np.unique(sources, return_counts=True), strict=True)}
        if self.stage.doors:
            late |= arrivals.keys.ts < taken
            result.missed = int(np.count_nonzero(late)) - result.late
        if result.late + result.missed == 0:
            return arrivals
        lost = arrivals.take(np.flatnonzero(late))
        result.changes += [self._late_rows(output, lost) for output in self.stage.late]
        return arrivals.take(np.flatnonzero(~late))

    def _late_rows(self, output: Output, rows: Arrivals) -> tuple[str, Changes]:
        """The rows of `late(s)`, with their time."""
        wanted = all_true(rows.inputs, output.masks)
        rows = rows if wanted is None else rows.take(np.flatnonzero(wanted))
        columns = [rows.inputs.column(i) for _, i in output.columns]
        columns.append(pa.array(rows.keys.ts, pa.int64()).cast(TIME_COLUMN.type))
        batch = pa.RecordBatch.from_arrays(columns, [n for n, _ in output.columns] + [TIME_COLUMN.name])
        return output.query, Changes.of(1, rows.keys, batch)

    def _waits(self) -> bool:
        """Whether the step stays where it stands: where nobody hears that rows are final, they move the state many at once.

        It stays no further behind the frontier than that is behind the clock: passes read at most twice as much for it.
        """
        clock = self.clock
        if not self._step.may_wait or clock.frontier - self._stands[0] > clock.latest - clock.frontier:
            return False
        ts = self._open.rows.rows.ts
        return int(ts.searchsorted(clock.final_before)) < min(MOVED_AT_ONCE, len(ts))

    def catch_up(self) -> None:
        """Have the step stand where the frontier is."""
        if self._step.may_wait:
            self.process(Header(0), None)

    def _told(self, changes: Results) -> Results:
        """Without what queries that were added later do not speak of: they have not said it, and do not take it back."""
        if not self.begun:
            return changes
        kept = [(q, c if q not in self.begun else c.take(np.flatnonzero(c.keys.ts > self.begun[q]))) for q, c in changes]
        return [(query, part) for query, part in kept if len(part)]

    def standing(self, query: str) -> Standing:
        clock = self.clock
        return self._step.standing(query, Standing(clock.frontier, clock.final_before, clock.latest, clock.last))
