"""The values of a key in order, so that any rank can be read: what percentiles are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headrace.aggregates.tally import NO_EVENTS, NOTHING, Columns, Moves, Reading, TallyState, reserve
from headrace.kernels.codes import NULL, VALUE
from headrace.kernels.keys.order import from_ordered, to_ordered
from headrace.kernels.windows import ranks
from headrace.state.parts import Which, numbers_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout
    from headrace.state.tables import ValueTable


class RanksTally(TallyState):
    """Treaps in one pool. What is read are parts like `between 0.5`, interpolated, and `upto 0.5`, one of the values."""

    arrays: ClassVar[dict[str, str]] = {"root": "root"}
    fill = int(ranks.NIL)

    def __init__(self, spec: Tally, layout: Layout, values: ValueTable | None, parts: Collection[str]) -> None:
        """No values; those with a table of their own compare by their rank in it."""
        self.at, self.table, self.parts = Columns(spec, layout), values, sorted(parts)
        self.between = np.array([part.startswith("between") for part in self.parts], np.bool_)
        self.shares = np.array([float(part.split()[1]) for part in self.parts], np.float64)
        self.root = np.zeros(0, np.int32)
        self.values = np.zeros(0, np.int64)
        self.counts = np.zeros((0, 2), np.int64)
        self.links = np.zeros((0, 2), np.int32)
        self.free = np.zeros(1, np.int64)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        reserve(self, ("values", "counts", "links"), len(moves.enter_row) + len(moves.leave_row))
        low, high = np.zeros((2, len(event_key), len(self.parts)), np.int64)
        count, at = np.zeros(len(event_key), np.int64), self.at
        ranks.ranks(
            event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), at.value(moves.enter).astype(np.int64, copy=False), at.code(moves.enter),
            at.keys(moves.leave), at.value(moves.leave).astype(np.int64, copy=False), at.code(moves.leave),
            self.shares, self.between, self._order(), self.root, self.values, self.counts, self.links, self.free,
            low, high, count,
        )  # fmt: skip
        if not keep:
            self.run(moves.reversed(), NO_EVENTS)
        out: Reading = {"code": np.where(count > 0, VALUE, NULL).astype(np.uint8)}
        for j, part in enumerate(self.parts):
            out[part] = _between(low[:, j], high[:, j], (count - 1) * self.shares[j]) if self.between[j] else low[:, j].copy()
        return out

    def _order(self) -> np.ndarray:
        return self.table.ranks() if self.table is not None else NOTHING

    def reset(self, keys: Which) -> None:
        ranks.clear(numbers_of(keys), self.root, self.links, self.free, len(self.values))

    def dump_at(self, which: Which) -> dict[str, Any]:
        """The values of some keys, and how many rows have each."""
        keys = numbers_of(which)
        sizes, held, rows = ranks.dump(keys, self.root, self.values, self.counts, self.links)
        return {"sizes": sizes, "held": held, "rows": rows}

    def load_at(self, which: Which, state: dict[str, Any]) -> None:
        self.reset(which)
        reserve(self, ("values", "counts", "links"), len(state["held"]))
        ranks.load(
            numbers_of(which), state["sizes"], state["held"], state["rows"], self._order(),
            self.root, self.values, self.counts, self.links, self.free,
        )  # fmt: skip


def _between(low: np.ndarray, high: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Between two doubles that lie as ordered words, as near to each as the place is to its rank: the arithmetic is Spark's."""
    one, two = from_ordered(low), from_ordered(high)
    with np.errstate(all="ignore"):
        mixed = (np.ceil(place) - place) * one + (place - np.floor(place)) * two
    return np.where(low == high, low, to_ordered(mixed))
