"""The state of a task processor by what changed: the head whole, and of tables only the numbers that have.

Whoever saves takes an increment between two calls, which copies and does nothing else, and writes it wherever and whenever he
likes. Beside the numbers that have changed an increment has the next of all others, in turn, so that after a lap of increments
those before it are needed no more, and no one has to put old ones together (decisions/0036).

increments of a lap:   changed + [0, n/32)    changed + [n/32, 2n/32)    ..    changed + [31n/32, n)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.errors import StateError
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.save import dump_head, load_head, load_heads, named, of, parts_of
from headrace.state.parts import KeyPart, State, Which, numbers_of

STEPS = 32  # a lap has so many, and as many increments where little changes
Range = tuple[int, int, int]  # a table, and the numbers from .. to


@dataclass(slots=True)
class Pages:
    """What a step pages itself: a `PageStore` of the pages that were put or dropped in one save, before those of earlier ones."""

    earlier: Mapping[str, bytes] = field(default_factory=dict)
    put: dict[str, bytes] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)

    def get_page(self, name: str) -> bytes:
        if name not in self.earlier:
            raise StateError(f"page {name} of a bucket is gone", hint="the store is damaged")
        return self.earlier[name]

    def put_page(self, name: str, data: bytes) -> None:
        self.put[name] = data
        self.dropped.discard(name)

    def drop_page(self, name: str) -> None:
        self.put.pop(name, None)
        self.dropped.add(name)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some numbers of a table, and what belongs to them."""

    table: int
    which: Which
    state: State


@dataclass(frozen=True, slots=True)
class Increment:
    """What has to be written of a task processor. Nothing in it is shared with that."""

    head: State
    pieces: list[Piece]
    pages: Pages

    def written(self) -> State:
        """The numbers and what belongs to them, as one state."""
        out: State = {"tables": [piece.table for piece in self.pieces]}
        for i, piece in enumerate(self.pieces):
            out |= named(str(i), {"numbers": numbers_of(piece.which), **piece.state})
        return out


@dataclass(frozen=True, slots=True)
class Lap:
    """How far the tables of a processor have been gone through."""

    step: int = 0  # how many steps were ever made
    upto: tuple[int, ...] = ()  # per table: the number at which the next step begins

    def on(self, steps: int, counts: Sequence[int]) -> tuple[Lap, list[Range]]:
        """Some steps further, and the numbers that lie between, with their tables.

        Numbers are only added, so a lap ends behind all that there were when it began, and each of its steps goes at least as far
        as the same step of the lap before.
        """
        upto, gone = list(self.upto) or [0] * len(counts), list[Range]()
        for step in range(self.step, self.step + steps):
            place = step % STEPS
            begin = upto if place else [0] * len(counts)
            upto = [max(at, -(-count * (place + 1) // STEPS)) for at, count in zip(begin, counts, strict=True)]
            gone += [(table, *ends) for table, ends in enumerate(zip(begin, upto, strict=True))]
        return Lap(self.step + steps, tuple(upto)), _joined(gone)


def _joined(ranges: list[Range]) -> list[Range]:
    """The same numbers in as few ranges as they can be."""
    out: list[Range] = []
    for table, start, stop in sorted(ranges):
        if out and out[-1][0] == table and start <= out[-1][2]:
            out[-1] = (table, out[-1][1], max(stop, out[-1][2]))
        elif start < stop:
            out.append((table, start, stop))
    return out


def steps_for(processors: Sequence[TaskProcessor]) -> int:
    """How many steps to go, so that half as much is gone through as has changed: what is read again is bounded by the state."""
    tables = [(p.tables.count_changed(t), p.tables[t].count) for p in processors for t in range(len(p.tables))]
    changed, count = sum(c for c, _ in tables), sum(n for _, n in tables)
    return min(STEPS, max(1, -(-changed * STEPS // max(2 * count, 1))))


def take(processor: TaskProcessor, lap: Lap, steps: int) -> tuple[Increment, Lap]:
    """What has changed since the last increment, and the next numbers in turn. Then nothing counts as changed any more."""
    tables, (_, keyed) = processor.tables, parts_of(processor)
    later, gone = lap.on(steps, [table.count for table in tables])
    pieces = []
    for table, start, stop in gone:
        tables.saved(table, start, stop)
        which = slice(start, stop)
        pieces.append(Piece(table, which, _own(_dump(processor, keyed, table, which))))
    for table in range(len(tables)):
        chosen = tables.changed_numbers(table)
        if len(chosen):
            pieces.append(Piece(table, chosen, _dump(processor, keyed, table, chosen)))
    pages = Pages()
    processor.step.save_pages(pages)
    return Increment(_own(dump_head(processor)), pieces, pages), later


def restore(processor: TaskProcessor, head: State, written: Sequence[State], pages: Mapping[str, bytes]) -> None:
    """Be the processor of which these increments were written, in this order; `head` is that of the last."""
    load_head(processor, head)
    pieces = [piece for state in written for piece in _pieces(state)]
    for table, count in enumerate(head["counts"]):
        dumped = [(numbers_of(p.which), of(p.state, "keys")) for p in pieces if p.table == table]
        processor.tables[table].load_at(count, dumped)
    keyed = load_heads(processor, head)
    for piece in pieces:
        for part in keyed:
            if part.table == piece.table:
                part.load_at(piece.which, of(piece.state, part.name))
    processor.step.restored(processor.open.rows, Pages(pages))


def _pieces(state: State) -> Iterator[Piece]:
    for i, table in enumerate(state["tables"]):
        own = of(state, str(i))
        yield Piece(table, own.pop("numbers"), own)


def _dump(processor: TaskProcessor, parts: Sequence[KeyPart], table: int, which: Which) -> State:
    out = named("keys", processor.tables[table].dump_at(which))
    for part in parts:
        if part.table == table:
            out |= named(part.name, part.dump_at(which))
    return out


def _own(state: State) -> State:
    """The same without arrays that anybody else has."""
    return {name: _copy(value) for name, value in state.items()}


def _copy(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.copy()
        case dict():
            return dict(value)
    return value
