"""A queue of candidate rows per key, where the result is one of them: the least, the greatest, the oldest, the newest; or all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headrace.aggregates.tally import NOTHING, Columns, Moves, Reading, TallyState, reserve
from headrace.kernels.windows import queues
from headrace.state.parts import Which, numbers_of

if TYPE_CHECKING:
    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout
    from headrace.state.tables import ValueTable

MODES = {mode: getattr(queues, mode.upper()) for mode in ("least", "greatest", "oldest", "newest", "every")}


@dataclass(slots=True, eq=False)
class Lists:
    """A list of words for each of some events, one behind the other; can be cut and compared as an array of them."""

    words: np.ndarray
    ends: np.ndarray

    ndim = 1

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.ends, prepend=0)

    def __getitem__(self, chosen: np.ndarray | slice) -> Lists:
        sizes, starts = self.sizes[chosen], (self.ends - self.sizes)[chosen]
        ends = np.cumsum(sizes)
        return Lists(self.words[np.arange(len(ends) and ends[-1]) + np.repeat(starts - ends + sizes, sizes)], ends)

    def __eq__(self, other: object) -> np.ndarray:  # type: ignore[override]
        """Which of them are the same, word for word."""
        assert isinstance(other, Lists)
        same: np.ndarray = self.sizes == other.sizes
        here = np.flatnonzero(same)
        one, two = self[here], other[here]
        differs = np.concatenate(([0], np.cumsum(one.words != two.words)))
        same[here] = differs[one.ends] == differs[one.ends - one.sizes]
        return same

    def append(self, other: Lists) -> Lists:
        begin = len(self.words)
        return Lists(np.concatenate((self.words, other.words)), np.concatenate((self.ends, other.ends + begin)))


class QueueTally(TallyState):
    """Queues in one pool. Values with a table of their own compare by their rank in it."""

    arrays: ClassVar[dict[str, str]] = {"head": "head", "tail": "tail"}
    fill = int(queues.NIL)

    def __init__(self, spec: Tally, layout: Layout, values: ValueTable | None) -> None:
        self.at, self.mode, self.values = Columns(spec, layout), MODES[spec.mode], values
        self.shown = None if spec.shown is None else Columns(replace(spec, vector=spec.shown), layout)
        self.head = np.zeros(0, np.int32)
        self.tail = np.zeros(0, np.int32)
        self.nodes = np.zeros(0, np.int64)
        self.held = np.zeros((0, 1 if self.shown is None else 2), np.int64)  # what is compared, and what is shown
        self.codes = np.zeros(0, np.uint8)
        self.links = np.zeros((0, 2), np.int32)
        self.free = np.zeros(1, np.int64)  # how many are in use, then the stack of nodes

    def reserve(self, count: int) -> None:
        """Have room for so many more candidates."""
        reserve(self, ("nodes", "held", "codes", "links"), count)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        words, _, code = self._read(moves, event_key, keep)
        return {"value": words, "code": code}

    def _read(
        self, moves: Moves, event_key: np.ndarray, keep: bool, *, whole: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Words, where those of each event end, and codes. What a queue drops cannot be computed back, so it is put back."""
        saved = None if keep else self._copy(np.unique(event_key))
        ends, code = np.zeros(len(event_key), np.int64), np.zeros(len(event_key), np.uint8)
        words = queues.queues(*(*self._moving(moves, event_key), whole, ends, code))
        if saved is not None:
            self.reset(saved[0])
            self._put(*saved)
        return words, ends, code

    def ranks(self) -> np.ndarray:
        """The places of values that are numbers of a table, where they are compared."""
        compared = self.values is not None and self.mode in (queues.LEAST, queues.GREATEST)
        return self.values.ranks() if compared and self.values is not None else NOTHING

    def _moving(self, moves: Moves, event_key: np.ndarray) -> tuple[Any, ...]:
        """What kernels take: the moves, and the queues with room for them."""
        self.reserve(len(moves.enter_row))
        ranks, at, shown = self.ranks(), self.at, self.shown or self.at
        words = [c.value(moves.enter).astype(np.int64, copy=False) for c in (at, shown)]
        values = words[0].reshape(-1, 1) if self.shown is None else np.stack(words, axis=1)
        return (
            event_key, moves.enter_end, moves.leave_end, at.keys(moves.enter), moves.enter_row, values,
            at.code(moves.enter), shown.code(moves.enter),
            at.keys(moves.leave), moves.leave_row, self.mode, ranks,
            self.head, self.tail, self.nodes, self.held, self.codes, self.links, self.free,
        )  # fmt: skip

    def reset(self, keys: Which) -> None:
        queues.clear(numbers_of(keys), self.head, self.tail, self.links, self.free)

    def _copy(self, keys: np.ndarray) -> tuple[np.ndarray, ...]:
        """The keys, how many candidates each has, and the candidates: number, value and code."""
        sizes = queues.lengths(keys, self.head, self.links)
        found = queues.dump(keys, self.head, self.nodes, self.held, self.codes, self.links, int(sizes.sum()))
        return keys, sizes, *found

    def _put(self, keys: np.ndarray, sizes: np.ndarray, rows: np.ndarray, held: np.ndarray, kinds: np.ndarray) -> None:
        self.reserve(len(rows))
        queues.load(
            keys, sizes, rows, held, kinds, self.head, self.tail, self.nodes, self.held, self.codes, self.links, self.free
        )

    def dump_at(self, which: Which) -> dict[str, Any]:
        _, sizes, rows, held, kinds = self._copy(numbers_of(which))
        return {"sizes": sizes, "rows": rows, "held": held.reshape(-1), "kinds": kinds}

    def load_at(self, which: Which, state: dict[str, Any]) -> None:
        self.reset(which)
        held = state["held"].reshape(-1, self.held.shape[1])
        self._put(numbers_of(which), state["sizes"], state["rows"], held, state["kinds"])


class ListTally(QueueTally):
    """Queues of every value that is not NULL."""

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        words, ends, _ = self._read(moves, event_key, keep, whole=True)
        return {"value": Lists(words, ends)}
