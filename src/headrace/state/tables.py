"""Numbers for keys. A number stays with its key while any row in the bucket holds it, then may be given to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.changes.rows import from_bytes, to_bytes
from headrace.kernels.keys import keytable
from headrace.plan.arrow import arrow_type
from headrace.program.stage import TableRole
from headrace.state.parts import numbers_of, picked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headrace.program.stage import Stage
    from headrace.state.parts import Which

    Routes = Callable[[], np.ndarray]  # of every row that is numbered, what it is routed by


PAGE_BITS = 10
PAGE = 1 << PAGE_BITS  # numbers of a table that are saved together
ROUTE_BITS = np.uint64(40)  # the bits of a hash above these route a row
UNKNOWN = np.uint32(2**32 - 1)  # what a key is routed by, where the version that wrote it noted nothing


def _room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, grown to hold `size` entries; new ones are zero."""
    if len(array) >= size:
        return array
    grown = np.zeros((max(size, 2 * len(array), 16), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


class KeyTable:
    """128-bit keys to dense numbers, with how many rows hold each."""

    def __init__(self) -> None:
        self.high = np.zeros(16, np.uint64)
        self.low = np.zeros(16, np.uint64)
        self.live = np.zeros(16, np.bool_)
        self.references = np.zeros(16, np.int64)
        self.slots = np.full(32, keytable.EMPTY, np.int32)
        self.free = np.zeros(16, np.int32)
        self.free_count = 0
        self.count = 0  # numbers given out so far, those free again included
        self.routes: np.ndarray | None = None  # what rows with each key are routed by, where it is noted
        self.used_slots = 0

    @property
    def capacity(self) -> int:
        """How many numbers there is room for; arrays beside the table are at least this long."""
        return len(self.live)

    def find(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The numbers of the keys that are known; -1 for the others."""
        out = np.empty(len(high), np.int32)
        keytable.find(high, low, self.slots, self.high, self.low, out)
        return out

    def number(self, high: np.ndarray, low: np.ndarray, routes: Routes | None = None) -> np.ndarray:
        """The numbers of these keys, new ones included, of which it may be noted what their rows are routed by."""
        out = np.empty(len(high), np.int32)
        if keytable.find(high, low, self.slots, self.high, self.low, out):
            fresh = (out < 0).nonzero()[0]
            out[fresh] = self._add(high[fresh], low[fresh])
            if routes is not None:
                self.note_routes()
                assert self.routes is not None, "there is room for them"
                self.routes[out[fresh]] = routes()[fresh]
        return out

    def note_routes(self) -> None:
        """Have room for what the rows of every key are routed by."""
        self.routes = _room(np.full(self.capacity, UNKNOWN) if self.routes is None else self.routes, self.capacity)

    def reserve(self, more: int) -> None:
        """Have room for so many more keys."""
        need = self.count + more
        if need > self.capacity:
            need = max(need, 2 * self.capacity)
            for name in ("high", "low", "live", "references", "free"):
                setattr(self, name, _room(getattr(self, name), need))
        if 2 * (self.used_slots + more) > len(self.slots):
            self._rebuild(more)

    def _add(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        self.reserve(len(high))
        live = self.count - self.free_count
        out = np.empty(len(high), np.int32)
        self.free_count, self.count = keytable.find_or_add(
            high, low, self.slots, self.high, self.low, self.live, self.free, self.free_count, self.count, out
        )
        self.used_slots += self.count - self.free_count - live
        return out

    def _rebuild(self, room: int) -> None:
        """Anew, without the slots of forgotten keys, and with room for more."""
        live = self.count - self.free_count
        size = 32
        while size < 4 * (live + room):
            size *= 2
        self.slots = np.full(size, keytable.EMPTY, np.int32)
        keytable.rebuild(self.slots, self.high, self.low, self.live, self.count)
        self.used_slots = live

    def hold(self, keys: np.ndarray) -> None:
        """One more row holds each of these numbers."""
        keytable.add_references(keys, 1, self.references)

    def release(self, keys: np.ndarray) -> np.ndarray:
        """One row fewer holds each; returns the numbers that are free now."""
        keytable.add_references(keys, -1, self.references)
        gone = np.empty(len(keys), np.int32)
        n = keytable.unreferenced(keys, self.references, self.live, gone)
        self.free_count = keytable.remove(gone[:n], self.slots, self.high, self.live, self.free, self.free_count)
        return gone[:n]

    def drop(self, keys: np.ndarray) -> None:
        """One row fewer holds each; the numbers stay."""
        keytable.add_references(keys, -1, self.references)

    def forget(self, keys: np.ndarray) -> None:
        """These numbers are free; no row holds them."""
        self.free_count = keytable.remove(keys, self.slots, self.high, self.live, self.free, self.free_count)

    def dump_at(self, which: Which) -> dict[str, Any]:
        """What there is of some numbers."""
        return {name: picked(column, which) for name, column in KeyTable.dump(self).items()}

    def load_at(self, count: int, dumped: Sequence[tuple[np.ndarray, dict[str, Any]]]) -> None:
        """Be a table of so many numbers that were dumped some at a time, what came later in the place of what was before."""
        merged: dict[str, Any] = {}
        for numbers, state in dumped:
            for name in state.keys() & {"high", "low", "live", "refs", "routes"}:
                if name not in merged:
                    nothing = UNKNOWN if name == "routes" else 0
                    merged[name] = np.full(count, nothing, state[name].dtype)
                merged[name][numbers] = state[name]
        if merged:
            KeyTable.load(self, merged)

    def dump(self) -> dict[str, Any]:
        n = self.count
        out = {"high": self.high[:n], "low": self.low[:n], "live": self.live[:n].view(np.uint8), "refs": self.references[:n]}
        return out if self.routes is None else {**out, "routes": self.routes[:n]}

    def load(self, state: dict[str, Any]) -> None:
        """Be the table that was dumped."""
        n = len(state["high"])
        for name, key in (("high", "high"), ("low", "low"), ("references", "refs"), ("live", "live")):
            column = np.zeros(max(16, n + (n >> 2)), getattr(self, name).dtype)
            column[:n] = state[key]
            setattr(self, name, column)
        self.routes = None if "routes" not in state else _room(state["routes"], len(self.high))
        free = np.flatnonzero(~self.live[:n])
        self.free = np.zeros(len(self.live), np.int32)
        self.free[: len(free)] = free
        self.free_count, self.count = len(free), n
        self._rebuild(0)


class ValueTable(KeyTable):
    """A key table that remembers the values, for those that have no fixed width."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__()
        self._parts = [pa.array([], kind)]  # values as they came; joined when they are asked for
        self._kept = 0  # how many there are
        self.place = np.zeros(16, np.int64)  # number -> index in values
        self._ranks: np.ndarray | None = None

    def number_values(self, high: np.ndarray, low: np.ndarray, column: pa.Array, routes: Routes | None = None) -> np.ndarray:
        """The numbers of these values; new values are kept."""
        known = self.find(high, low)
        numbers = self.number(high, low, routes)
        fresh = (known < 0).nonzero()[0]
        if len(fresh):
            new, first = np.unique(numbers[fresh], return_index=True)
            self.place = _room(self.place, self.capacity)
            self.place[new] = self._kept + np.arange(len(new))
            self._parts.append(column.take(pa.array(fresh[first])).cast(self._parts[0].type))
            self._kept += len(new)
            self._ranks = None
            self._compact()
        return numbers

    @property
    def values(self) -> pa.Array:
        """All that are kept. Few come one by one between two that are asked for, and to join them takes long."""
        if len(self._parts) > 1:
            self._parts = [pa.concat_arrays(self._parts)]
        return self._parts[0]

    @values.setter
    def values(self, values: pa.Array) -> None:
        self._parts, self._kept = [values], len(values)

    def value(self, number: int) -> Any:
        """The value of a number, as Python has it; a duration in microseconds."""
        found = self.values[int(self.place[number])]
        return found.value if pa.types.is_duration(found.type) else found.as_py()

    def _compact(self) -> None:
        """Drop values that no number stands for any more, once they are the greater part."""
        if self._kept > 64 and self._kept > 2 * (self.count - self.free_count):
            live = np.flatnonzero(self.live[: self.count])
            self.values = self.values.take(pa.array(self.place[live]))
            self.place[live] = np.arange(len(live))

    def ranks(self) -> np.ndarray:
        """For every number, the place of its value in the order of the values."""
        if self._ranks is None:
            order = pc.array_sort_indices(self.values).to_numpy()
            rank = np.empty(len(order) + 1, np.int64)
            rank[order] = np.arange(len(order))
            rank[-1] = -1
            self._ranks = rank[np.minimum(self.place[: max(self.count, 1)], len(order))]
        return self._ranks

    def lookup(self, numbers: np.ndarray, valid: np.ndarray) -> pa.Array:
        """The values behind these numbers; NULL where not valid."""
        places = pa.array(self.place[np.where(valid, numbers, 0)] if len(numbers) else np.empty(0, np.int64), mask=~valid)
        return self.values.take(places)

    def dump_at(self, which: Which) -> dict[str, Any]:
        """What there is of some numbers; of those that are free, no value."""
        values = self.lookup(numbers_of(which), self.live[which])
        return {**super().dump_at(which), "values": pa.RecordBatch.from_arrays([values], ["v"])}

    def load_at(self, count: int, dumped: Sequence[tuple[np.ndarray, dict[str, Any]]]) -> None:
        super().load_at(count, dumped)
        self.place, at, values = np.zeros(self.capacity, np.int64), 0, [self.values[:0]]
        for numbers, state in dumped:
            self.place[numbers] = at + np.arange(len(numbers))
            at += len(numbers)
            values.append(from_bytes(state["values"]).column(0).cast(self.values.type))
        self.values = pa.concat_arrays(values)
        self._ranks = None
        self._compact()

    def dump(self) -> dict[str, Any]:
        """The state, as arrays; the values as an Arrow message."""
        values = to_bytes(pa.RecordBatch.from_arrays([self.values], ["v"]))
        return {**super().dump(), "place": self.place[: self.count], "values": values}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.place = _room(state["place"], self.capacity)
        self.values = from_bytes(state["values"]).column(0).cast(self.values.type)
        self._ranks = None


class Tables:
    """All numbered keys of a bucket, and which of them have changed since they were last saved."""

    def __init__(self, stage: Stage[Any], frees: frozenset[int]) -> None:
        """Empty; numbers of the tables `frees` mean nothing once no row holds them."""
        self.specs, self._frees = stage.tables, frees
        self._tables: list[KeyTable] = [
            ValueTable(arrow_type(stage.inputs[t.inputs[0]].type)) if t.role is TableRole.VALUE else KeyTable()
            for t in stage.tables
        ]
        self._changed = [np.zeros(1, np.bool_) for _ in stage.tables]  # per number

    def __len__(self) -> int:
        return len(self._tables)

    def __getitem__(self, index: int) -> KeyTable:
        return self._tables[index]

    def __iter__(self) -> Iterator[KeyTable]:
        return iter(self._tables)

    @property
    def capacities(self) -> list[int]:
        return [table.capacity for table in self._tables]

    def hold(self, columns: list[np.ndarray]) -> None:
        """These rows have come: they hold their keys. Numbers that follow from those of another table are not held."""
        for i, (spec, table) in enumerate(zip(self.specs, self._tables, strict=True)):
            if not spec.derived:
                table.hold(columns[i])
                self.touch_one(i, columns[i])

    def touch(self, columns: list[np.ndarray]) -> None:
        """The keys of these rows have changed, and must be saved."""
        for table in range(len(self._tables)):
            self.touch_one(table, columns[table])

    def touch_one(self, table: int, numbers: np.ndarray) -> None:
        """These numbers have changed, and must be saved."""
        keytable.mark(numbers, 0, self.marks(table))

    def frees(self, table: int) -> bool:
        """Whether its numbers mean nothing once no row holds them."""
        return table in self._frees

    def touch_all(self) -> None:
        for i, table in enumerate(self._tables):
            self.marks(i)[: table.count] = True

    def saved(self, table: int, start: int, stop: int) -> None:
        """The numbers from `start` to `stop` are saved, whether they have changed or not."""
        self.marks(table)[start:stop] = False

    def marks(self, table: int) -> np.ndarray:
        """The flags of the numbers that have changed, as many as there is room for."""
        marks = self._changed[table]
        if len(marks) < self._tables[table].capacity:
            marks = self._changed[table] = _room(marks, self._tables[table].capacity)
        return marks

    def changed(self, table: int) -> list[int]:
        """The pages of a table that have changed since this was last asked."""
        pages = np.zeros((self._tables[table].count >> PAGE_BITS) + 1, np.bool_)
        keytable.mark(self.changed_numbers(table), PAGE_BITS, pages)
        return np.flatnonzero(pages).tolist()

    def changed_numbers(self, table: int) -> np.ndarray:
        """The numbers of a table that have changed since this was last asked."""
        marks = self.marks(table)
        numbers = np.flatnonzero(marks).astype(np.int32)
        marks[numbers] = False
        return numbers

    def count_changed(self, table: int) -> int:
        return int(np.count_nonzero(self._changed[table]))

    def release(self, columns: list[np.ndarray]) -> None:
        """These rows are gone: they hold their keys no longer. What UNIQUE BY and KEEP number has a life of its own."""
        for i, (spec, table, numbers) in enumerate(zip(self.specs, self._tables, columns, strict=False)):
            if spec.role is TableRole.UNIQUE or spec.derived:
                continue
            if i in self._frees:
                table.release(numbers)
            else:
                table.drop(numbers)

    def sweep(self) -> None:
        """Forget numbers that no row holds, in the tables where they mean nothing then."""
        for i in self._frees:
            table = self._tables[i]
            idle = table.live[: table.count] & (table.references[: table.count] == 0)
            if not self.specs[i].derived and self.specs[i].role is not TableRole.UNIQUE:
                table.forget(np.flatnonzero(idle).astype(np.int32))
