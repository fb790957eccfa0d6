"""The record of a step: what does not change is written once, and the addresses of arrays whenever those are others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.aggregates.queue import QueueTally
from headrace.aggregates.sums import DecimalSumTally, DoubleSumTally, IntegerSumTally, MomentsTally, SumTally
from headrace.aggregates.tally import CountTally, DistinctTally
from headrace.evolution.buckets import noted
from headrace.kernels.single import record as r
from headrace.plan.arrow import arrow_type
from headrace.plan.types import decimal_parts
from headrace.program.aggregates import Metric, Tally, parts_read
from headrace.program.stage import Vector, VectorKind
from headrace.program.windows import WindowStage
from headrace.state.tables import ValueTable
from headrace.steps.windows.single.covers import masks_of, read_inputs
from headrace.steps.windows.single.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.plan.windows import AnyWindow
    from headrace.steps.windows.step import WindowsStep

U64 = 1 << 64
LEAST_ROOM = 256  # words of a buffer


def address(array: np.ndarray) -> int:
    """Where an array lies. Whoever writes it down keeps the array."""
    place: int = array.__array_interface__["data"][0]
    return place


def signed(word: int) -> int:
    """The word as an integer with a sign."""
    return word - U64 if word >= U64 >> 1 else word


class Record:
    """One array of integers that a kernel is given, and all the arrays that it names."""

    def __init__(self, step: WindowsStep) -> None:
        """Of a step whose parts stay where they are; call `tables`, `tallies`, .. before it is used."""
        self.step, self.stage, self.layout = step, step.stage, step.evaluator.layout
        self.masks, stage = masks_of(step.stage), step.stage
        self._parts = parts_read(stage.program.metrics)
        self.inputs = Inputs([i.type for i in stage.inputs], read_inputs(stage))
        self._words = [0] * (r.INPUTS + r.INPUT * len(self.inputs.wanted))
        self._held: dict[tuple[str, int], Any] = {}
        self._sections()
        self.at = np.array(self._words, np.int64)
        self.place = address(self.at)
        self.bytes = self.at.data.cast("B")
        self._write(stage)
        self._room: dict[str, np.ndarray] = {}
        for name, size in (("OUT", LEAST_ROOM), ("WORK", LEAST_ROOM), ("NOW", LEAST_ROOM), ("MATCHES", LEAST_ROOM)):
            self.room(name, size)
        self.text()

    # ---- what stays -----------------------------------------------------------------------------------------------

    def _sections(self) -> None:
        """Where the lines of every kind of thing begin, and how many there are."""
        program, stage = self.stage.program, self.stage
        self.scans = self._scans()
        self.groups = sorted({t.group for t in program.tallies})
        self.metrics = [m for o in program.outputs for m in o.metrics]
        for name, count, size in (
            ("TABLES", len(stage.tables), r.TABLE), ("VECTORS", len(stage.vectors), r.VECTOR),
            ("COLUMNS", len(self.layout.types), r.COLUMN), ("EDGES", len(program.edges), r.EDGE),
            ("SCANS", len(self.scans), r.SCAN), ("TALLIES", len(program.tallies), r.TALLY),
            ("GROUPS", len(self.groups), 1), ("OUTPUTS", len(program.outputs), r.OUTPUT),
            ("METRICS", len(self.metrics), r.METRIC),
        ):  # fmt: skip
            self._words[getattr(r, name)], self._words[getattr(r, f"N_{name}")] = len(self._words), count
            self._words += [0] * (count * size)
        self._lists()

    def _lists(self) -> None:
        """Lists of things, behind the lines: inputs of tables and of the route, and what moves over which edge."""
        stage, program = self.stage, self.stage.program
        self._table_inputs = [self._listed(self._input_words(t.inputs)) for t in stage.tables]
        route = getattr(stage.route, "inputs", ())
        self._words[r.ROUTE], self._words[r.N_ROUTE] = self._listed(self._input_words(route)), len(route)
        tallies = self._words[r.TALLIES]
        moving: dict[int | None, list[int]] = {None: [], **{offset: [] for offset in program.edges}}
        for i, spec in enumerate(program.tallies):
            enter, leave = edges_of(program.windows[spec.window].window)
            moving[enter] += (tallies + i * r.TALLY, 1)
            if leave is not None:
                moving[leave] += (tallies + i * r.TALLY, -1)
        self._moving = {offset: (self._listed(pairs), len(pairs) // 2) for offset, pairs in moving.items()}

    def _listed(self, words: Sequence[int]) -> int:
        at = len(self._words)
        self._words += words
        return at

    def _input_words(self, inputs: Sequence[int]) -> list[int]:
        return [word for i in inputs for word in (self.inputs.place[i], self.inputs.lies[i])]

    def _scans(self) -> list[tuple[int | None, int, bool]]:
        """What is looked for at the events of a key: an edge (None: the open rows), the table of the key, and peers."""
        found: dict[tuple[int | None, int, bool], None] = {}
        for spec in self.stage.program.tallies:
            window = self.stage.program.windows[spec.window].window
            enter, leave = edges_of(window)
            found[enter, spec.group, enter is None and window.waits] = None
            if leave is not None:
                found[leave, spec.group, False] = None
        return list(found)

    def _write(self, stage: WindowStage) -> None:
        program, at = stage.program, self.at
        at[r.RUN_SIZE] = r.R_COLUMNS + len(self.layout.types)
        at[r.STORES], at[r.PEERS], at[r.SAID] = program.stores_rows, program.has_peers, -1
        at[r.CHUNK_ROWS] = self.step.reservoir.chunk_rows
        at[r.EARLY] = sum(1 << i for i, o in enumerate(program.outputs) if o.emit.early)
        at[r.FINAL] = sum(1 << i for i, o in enumerate(program.outputs) if not o.emit.early)
        at[r.ENTERS], at[r.N_ENTERS] = self._moving[None]
        for i, kind in enumerate(self.layout.types):
            at[at[r.COLUMNS] + i * r.COLUMN] = np.dtype(kind).itemsize
        for i, group in enumerate(self.groups):
            at[at[r.GROUPS] + i] = group
        for i, offset in enumerate(program.edges):
            self.line("EDGES", i, r.EDGE)[:] = (offset, 0, *self._moving[offset])
        for i, (edge, group, peers) in enumerate(self.scans):
            line = -1 if edge is None else int(at[r.EDGES]) + program.edges.index(edge) * r.EDGE
            self.line("SCANS", i, r.SCAN)[:] = (line, group, peers)
        for i, vector in enumerate(stage.vectors):
            self._write_vector(i, vector)
        for i, spec in enumerate(program.tallies):
            self._write_tally(i, spec)
        self._write_outputs()

    def line(self, name: str, index: int, size: int) -> np.ndarray:
        """The words of one thing of a kind."""
        begin = int(self.at[getattr(r, name)]) + index * size
        return self.at[begin : begin + size]

    def _bits(self, masks: Sequence[int]) -> int:
        return sum(1 << self.masks.index(i) for i in masks)

    def _write_vector(self, index: int, vector: Vector) -> None:
        code, values = self.layout.codes[index], self.layout.values[index]
        kind = r.ROW
        if vector.input is not None:
            floating = pa.types.is_floating(arrow_type(self.stage.inputs[vector.input].type))
            kind = _KINDS[vector.kind]
            kind = r.ORDERED_FLOAT if floating and vector.kind is VectorKind.ORDERED else kind
        self.line("VECTORS", index, r.VECTOR)[:] = (
            kind, -1 if vector.input is None else self.inputs.place[vector.input], self._bits(vector.masks),
            values[0] if values else -1, -1 if code is None else code,
        )  # fmt: skip

    def _write_tally(self, index: int, spec: Tally) -> None:
        window = self.stage.program.windows[spec.window].window
        enter, leave = edges_of(window)
        line, values = self.line("TALLIES", index, r.TALLY), self.layout.values
        line[r.Y_GROUP] = spec.group
        line[r.Y_ENTER] = self.scans.index((enter, spec.group, enter is None and window.waits))
        line[r.Y_LEAVE] = -1 if leave is None else self.scans.index((leave, spec.group, False))
        line[r.Y_VALUE], line[r.Y_CODE] = self._value(spec.vector)
        line[r.Y_SHOWN], line[r.Y_SHOWN_CODE] = (-1, -1) if spec.shown is None else self._value(spec.shown)
        line[r.Y_COUNT] = -1 if spec.count is None else spec.count
        line[r.Y_PAIRS] = -1 if spec.pairs is None else spec.pairs
        assert len(values[spec.vector]) <= 2

    def _value(self, vector: int) -> tuple[int, int]:
        """The first column of the values of a vector, and that of their codes."""
        values, code = self.layout.values[vector], self.layout.codes[vector]
        return values[0] if values else -1, -1 if code is None else code

    def _write_outputs(self) -> None:
        """Outputs and their metrics; which tallies are read for which, and by which tables late rows reach others."""
        first, spreads = 0, 0
        for i, output in enumerate(self.stage.program.outputs):
            tables = {self.stage.program.tallies[m.tally].group for m in output.metrics}
            spread = sum(1 << t for t in tables)
            spreads |= spread
            self.line("OUTPUTS", i, r.OUTPUT)[:] = (self._bits(output.masks), spread, first, len(output.metrics))
            for j, metric in enumerate(output.metrics):
                self._write_metric(first + j, metric, r.FOR_EARLY if output.emit.early else r.FOR_FINAL)
            first += len(output.metrics)
        self.at[r.SPREADS] = spreads

    def _write_metric(self, index: int, metric: Metric, read_for: int) -> None:
        spec = self.stage.program.tallies[metric.tally]
        for needed in (metric.tally, spec.count, metric.count):
            if needed is not None:
                self.line("TALLIES", needed, r.TALLY)[r.Y_FOR] |= read_for
        line, tally = self.line("METRICS", index, r.METRIC), self.step.evaluator.tallies[metric.tally]
        part, fits = _part(tally, metric.reads.part)
        pair = isinstance(tally, DecimalSumTally)
        limit = 10 ** decimal_parts(metric.type)[0] - 1 if pair else 0
        ordered = False
        if isinstance(tally, QueueTally):
            vector = self.stage.vectors[spec.vector if spec.shown is None else spec.shown]
            floating = vector.input is not None and pa.types.is_floating(arrow_type(self.stage.inputs[vector.input].type))
            ordered = floating and vector.kind is VectorKind.ORDERED
        line[:] = (
            metric.tally, -1 if metric.count is None else metric.count, metric.reads.least, part, fits,
            isinstance(tally, QueueTally), pair, limit >> 64, signed(limit % U64), metric.reads.root, ordered,
        )  # fmt: skip

    # ---- what changes ---------------------------------------------------------------------------------------------

    def hold(self, kind: str, index: int, *arrays: np.ndarray) -> tuple[int, ...]:
        """The addresses of arrays, which are kept until others are named in their place."""
        self._held[kind, index] = arrays
        return tuple(map(address, arrays))

    def room(self, name: str, size: int) -> None:
        """Give the buffer of this name so many words; what is in it stays."""
        new = np.zeros(size, np.int64)
        old = self._room.get(name)
        if old is not None:
            new[: len(old)] = old
        self._room[name] = new
        self.at[getattr(r, name)], self.at[getattr(r, f"{name}_ROOM")] = address(new), size

    def buffer(self, name: str) -> np.ndarray:
        return self._room[name]

    def text(self) -> None:
        self.at[r.TEXT] = address(self.inputs.text)

    def tables(self) -> None:
        """Where the tables are."""
        tables, own = self.step.tables, noted(self.stage)
        for i, table in enumerate(tables):
            if i in own:
                table.note_routes()
            pages = tables.marks(i)
            line = self.line("TABLES", i, r.TABLE)
            line[: r.T_ROUTES] = self.hold(
                "table", i, table.high, table.low, table.live, table.references, table.slots, table.free
            )
            line[r.T_ROUTES] = self.hold("routes", i, table.routes)[0] if i in own and table.routes is not None else 0
            line[r.T_PAGES] = self.hold("pages", i, pages)[0]
            line[r.T_SLOT_COUNT : r.T_FREES] = (
                len(table.slots), table.used_slots, table.capacity, table.count, table.free_count
            )  # fmt: skip
            line[r.T_FREES], line[r.T_VALUES] = tables.frees(i), isinstance(table, ValueTable)
            line[r.T_INPUTS], line[r.T_N_INPUTS] = self._table_inputs[i], len(self.stage.tables[i].inputs)

    def put_back_tables(self) -> None:
        """Tell the tables what has been counted here."""
        for i, table in enumerate(self.step.tables):
            line = self.line("TABLES", i, r.TABLE)
            table.used_slots, table.count, table.free_count = int(line[r.T_USED]), int(line[r.T_COUNT]), int(line[r.T_FREE_COUNT])

    def tally(self, i: int) -> None:
        """Where what a tally keeps is."""
        tally, line = self.step.evaluator.tallies[i], self.line("TALLIES", i, r.TALLY)
        match tally:
            case DistinctTally():
                line[r.Y_KIND] = r.DISTINCTS
                line[r.Y_STATE], line[r.Y_SQUARES] = self.hold("tally", i, tally.counts, tally.pair_counts)
            case SumTally():
                self._sum(i, tally, line)
                line[r.Y_MEAN] = tally.mean_digits if isinstance(tally, DecimalSumTally) else "mean" in self._parts.get(i, ())
            case QueueTally():
                self._queue(i, tally, line)
            case CountTally():
                line[r.Y_KIND], line[r.Y_STATE] = r.COUNTS, self.hold("tally", i, tally.counts)[0]

    def _sum(self, i: int, tally: SumTally, line: np.ndarray) -> None:
        limbs = tally.limbs
        line[r.Y_KIND] = _SUMS[type(tally)]
        line[r.Y_STATE], line[r.Y_WIDTH], line[r.Y_LOW] = self.hold("tally", i, limbs.array)[0], limbs.array.shape[1], limbs.low
        if isinstance(tally, DoubleSumTally | MomentsTally):
            line[r.Y_SPECIALS] = self.hold("specials", i, tally.specials.counts)[0]
        if isinstance(tally, MomentsTally):
            squares = tally.squares
            line[r.Y_SQUARES] = self.hold("squares", i, squares.array)[0]
            line[r.Y_SQUARES_WIDTH], line[r.Y_SQUARES_LOW] = squares.array.shape[1], squares.low

    def _queue(self, i: int, tally: QueueTally, line: np.ndarray) -> None:
        ranks = tally.ranks()
        line[r.Y_KIND], line[r.Y_MODE] = r.QUEUES, tally.mode
        (
            line[r.Y_STATE], line[r.Y_TAIL], line[r.Y_NODES], line[r.Y_HELD], line[r.Y_CODES], line[r.Y_LINKS], line[r.Y_FREE],
            line[r.Y_RANKS],
        ) = self.hold(
            "tally", i, tally.head, tally.tail, tally.nodes, tally.held, tally.codes, tally.links, tally.free, ranks
        )  # fmt: skip
        line[r.Y_POOL], line[r.Y_N_RANKS] = len(tally.free) - 1, len(ranks)

    def tallies(self) -> None:
        for i in range(len(self.stage.program.tallies)):
            self.tally(i)


_KINDS = {
    VectorKind.DOUBLE: r.DOUBLE, VectorKind.INT: r.PLAIN, VectorKind.BITS: r.PLAIN, VectorKind.ORDERED: r.PLAIN,
    VectorKind.DECIMAL: r.DECIMAL, VectorKind.NUMBERED: r.NUMBERED,
}  # fmt: skip
_SUMS: dict[type, int] = {
    DoubleSumTally: r.DOUBLE_SUMS, IntegerSumTally: r.INTEGER_SUMS, DecimalSumTally: r.DECIMAL_SUMS, MomentsTally: r.MOMENTS,
}  # fmt: skip


def edges_of(window: AnyWindow) -> tuple[int | None, int | None]:
    """How long after their time rows enter a window, and leave it; None: at once, and never."""
    if not window.edges:
        return None, None
    enter, leave = window.edges
    return enter or None, leave


def _part(tally: Any, part: str) -> tuple[int, int]:
    """Which word of a reading is read, and which says whether it fits; -1: it always does."""
    match tally:
        case IntegerSumTally():
            return (0, 1) if part == "value" else (2, -1)
        case DecimalSumTally():
            return (0, 2) if part == "value" else (3, 5)
    return 1 if part in ("mean", "population") else 0, -1
