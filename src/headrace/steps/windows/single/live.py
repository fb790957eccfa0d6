"""The windows of one stage in one bucket, one event a call."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.queue import QueueTally
from headrace.aggregates.sums import MomentsTally, SumTally
from headrace.changes.values import column_of
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.single import record as r
from headrace.kernels.single.event import event
from headrace.plan.arrow import arrow_type
from headrace.state.tables import ValueTable
from headrace.steps.shown import carried
from headrace.steps.step import Live, Said
from headrace.steps.windows.single.record import Record
from headrace.steps.windows.single.runs import OpenBuffers, Runs
from headrace.steps.windows.single.shown import Shown

if TYPE_CHECKING:
    from headrace.state.open_rows import OpenRows
    from headrace.steps.windows.step import WindowsStep

_TIME = struct.Struct("=7q")


class LiveWindows(Live):
    """Between `begin` and `put_back` the state of the step lies with a record, in the arrays in which the step has it."""

    def __init__(self, step: WindowsStep) -> None:
        self.step, self.stage, self.tables = step, step.stage, step.tables
        step.evaluator.grow()
        self.record = Record(step)
        self.head = self.record.at.data
        self.runs = Runs(self.record, step.reservoir)
        self._carried = carried(self.stage)
        self.open = OpenBuffers(self.record, self.runs, self._carried)
        self.shown = [Shown.of(self.stage, o, self._carried, self.tables) for o in self.stage.program.outputs]
        self._bits = [(i, 1 << bit) for bit, i in enumerate(self.record.masks)]
        self._edges = [int(self.record.at[r.EDGES]) + i * r.EDGE + r.E_ROW for i in range(len(self.stage.program.edges))]
        self._values: tuple[Any, ...] = ()
        self.asked = [0] * (r.CARRY + 1)  # how often what was lacking
        self._give = {
            r.MORE_KEYS: self._more_keys, r.NEW_VALUE: self._new_value, r.MORE_ROWS: self.open.grow, r.A_CHUNK: self._a_chunk,
            r.A_SEAL: self._seal, r.MORE_LIMBS: self._more_limbs, r.MORE_NODES: self._more_nodes, r.MORE_OUT: self._more_out,
            r.MORE_WORK: lambda: self._more("WORK"), r.MORE_MATCHES: lambda: self._more("MATCHES"),
            r.MORE_NOW: lambda: self._more("NOW"), r.CARRY: self._carry,
        }  # fmt: skip

    # ---- taking over, and giving back -----------------------------------------------------------------------------

    def begin(self, open_: OpenRows) -> None:
        evaluator, head = self.step.evaluator, self.head
        self.step.grow()
        self.record.tables()
        self.record.tallies()
        head[r.PHASE], head[r.SAID], head[r.TARGET], head[r.FIRST] = 0, -1, evaluator.moved_to, evaluator.next_row
        for at, row in zip(self._edges, evaluator.edges.values(), strict=True):
            head[at] = row
        self.runs.begin()
        self.open.begin(open_)

    def put_back(self) -> OpenRows:
        evaluator, head = self.step.evaluator, self.head
        self.record.put_back_tables()
        self.runs.put_back()
        self._carry()
        evaluator.moved_to = head[r.TARGET]
        evaluator.edges = {offset: head[at] for offset, at in zip(evaluator.edges, self._edges, strict=True)}
        if not evaluator.stores_rows:
            evaluator.numbered = head[r.FIRST]
        return self.open.rows()

    # ---- an event -------------------------------------------------------------------------------------------------

    def put(self, ts: int, high: int, low: int, values: tuple[Any, ...]) -> None:
        truth = 0
        for i, bit in self._bits:
            if values[i]:
                truth |= bit
        self._values = values
        if self.record.inputs.put(self.record.bytes, (ts, high, low, truth, 1, 0, 0), values):
            self.record.text()

    def pass_time(self, frontier: int, final_before: int) -> list[Said]:
        _TIME.pack_into(self.record.bytes, 8 * r.TS, 0, 0, 0, 0, 0, frontier, final_before)
        return self._take()

    def take(self, frontier: int, final_before: int) -> list[Said]:
        self.head[r.FRONTIER], self.head[r.BEFORE] = frontier, final_before
        return self._take()

    def _take(self) -> list[Said]:
        head, place, carry = self.head, self.record.place, self.open.carry
        while (asked := event(place)) != r.DONE:
            self.asked[asked] += 1
            self._give[asked]()
        if head[r.COMES]:
            values = self._values
            carry.insert(head[r.PLACE] - head[r.BEGIN], tuple([values[i] for i in self._carried]))
        said = self._said(head[r.OUT_USED]) if head[r.OUT_USED] else []
        if head[r.LEFT]:
            del carry[: head[r.LEFT]]
        if head[r.NEEDED] >= self.runs.needless:
            self.runs.drop(head[r.NEEDED])
        if self.runs.crowded:
            self.runs.let_go([head[at] for at in self._edges])
        return said

    def _said(self, used: int) -> list[Said]:
        """The changes, by output, as they lie in the buffer."""
        out = self.record.buffer("OUT")[:used]
        words, floats, at = out.tolist(), out.view(np.float64).tolist(), 0
        found: list[tuple[int, Said]] = []
        while at < used:
            output, sign, place, *key = words[at : at + r.SAYS]
            shown = self.shown[output]
            row = shown.row(self.open.carry[place], words, floats, at + r.SAYS)
            found.append((output, (shown.query, sign, (key[0], key[1], key[2]), row)))
            at += r.SAYS + r.SHOWN * len(shown.metrics)
        if len(found) > 1:
            found.sort(key=lambda pair: pair[0])  # those of one output stay in their order
        return [change for _, change in found]

    # ---- what a kernel asks for -----------------------------------------------------------------------------------

    def _more_keys(self) -> None:
        self.record.put_back_tables()
        self.tables[self.head[r.DETAIL]].reserve(1)
        self._rooms()

    def _rooms(self) -> None:
        self.step.grow()
        self.record.tables()
        self.record.tallies()

    def _new_value(self) -> None:
        """A value that its table has not seen, which keeps it."""
        index = self.head[r.DETAIL]
        self.record.put_back_tables()
        table, line, own = self.tables[index], self.record.line("TABLES", index, r.TABLE), self.stage.tables[index].inputs[0]
        assert isinstance(table, ValueTable)
        high, low = line[r.T_HASH : r.T_HASH_TOO + 1].copy().view(np.uint64).reshape(2, 1)
        table.number_values(high, low, column_of(arrow_type(self.stage.inputs[own].type), [self._values[own]]))
        self._rooms()

    def _a_chunk(self) -> None:
        self.runs.load(self.head[r.DETAIL])

    def _seal(self) -> None:
        self.runs.seal(min(self.head[at] for at in self._edges))

    def _which(self) -> int:
        """The tally in question."""
        return (self.head[r.DETAIL] - self.head[r.TALLIES]) // r.TALLY

    def _more_limbs(self) -> None:
        i = self._which()
        tally = self.step.evaluator.tallies[i]
        value = np.array([self.head[r.DETAIL_TOO]], np.int64).view(np.float64)
        assert isinstance(tally, SumTally)
        tally.limbs.cover(*exact.limb_range(value), 0)
        if isinstance(tally, MomentsTally):
            tally.squares.cover(*exact.square_limb_range(value), 0)
        self.record.tally(i)

    def _more_nodes(self) -> None:
        i = self._which()
        tally = self.step.evaluator.tallies[i]
        assert isinstance(tally, QueueTally)
        tally.reserve(1)
        self.record.tally(i)

    def _more(self, name: str) -> None:
        self.record.room(name, 2 * len(self.record.buffer(name)))

    def _more_out(self) -> None:
        self.record.room("OUT", 2 * self.head[r.DETAIL])

    def _carry(self) -> None:
        """Sums must know how often they were added to."""
        for tally in self.step.evaluator.tallies:
            if isinstance(tally, SumTally):
                tally.limbs.cover(0, 0, self.head[r.MOVES])
            if isinstance(tally, MomentsTally):
                tally.squares.cover(0, 0, self.head[r.MOVES])
        self.head[r.MOVES] = 0
