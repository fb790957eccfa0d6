"""Order keys: the total order of all rows, base and derived, in one place.

A row of a source stands at (time, high, low): its time and its position. A derived row stands where the last of the rows stands
that it is made of, and adds words that say which of those made there it is (`sub`): it comes after that row and before the next,
the outputs of one row in sequence, through any number of steps. Words are unsigned, compare one by one, and are filled up with 0
behind; what one step adds never ends in a word that is 0, so that the words of the next can be put right behind them.

    join       the key of the other row                  pattern    the keys of the other events, in their order
    window     of one look: the values of the group, NULL first (kernels/keys/sortable)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.kernels.keys.order import lengths, locate, put_behind, sort_order
from headrace.kernels.keys.sortable import SIGN

CLOCK_PLACE = 2**62  # rows made by the clock at u follow every event at u
SOURCE_BITS = 50  # of the high half of a place: below them there is room for a time in milliseconds, or a partition
_NONE = np.empty(0, np.int64)


@dataclass(slots=True)
class Keys:
    """The order keys of some rows."""

    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    sub: np.ndarray | None = None  # a line of words for each row; None: no row is derived

    def __len__(self) -> int:
        return len(self.ts)

    @staticmethod
    def none() -> Keys:
        return Keys(_NONE, _NONE, _NONE)

    @staticmethod
    def of_clock(time: np.ndarray) -> Keys:
        """Behind every event of these times."""
        return Keys(time, np.full(len(time), CLOCK_PLACE, np.int64), np.zeros(len(time), np.int64))

    def take(self, index: np.ndarray) -> Keys:
        return Keys(self.ts[index], self.high[index], self.low[index], None if self.sub is None else self.sub[index])

    def slice(self, start: int, stop: int) -> Keys:
        some = slice(start, stop)
        return Keys(self.ts[some], self.high[some], self.low[some], None if self.sub is None else self.sub[some])

    @staticmethod
    def concat(parts: Sequence[Keys]) -> Keys:
        filled = [p for p in parts if len(p)]
        if len(filled) < 2:
            return filled[0] if filled else Keys.none()
        ts, high, low = (np.concatenate([getattr(p, name) for p in filled]) for name in ("ts", "high", "low"))
        if all(p.sub is None for p in filled):
            return Keys(ts, high, low)
        return Keys(ts, high, low, np.concatenate(_as_wide([p.words for p in filled])))

    def append(self, other: Keys) -> Keys:
        return Keys.concat((self, other))

    @property
    def words(self) -> np.ndarray:
        """What derived rows add; no words where there are none."""
        return np.empty((len(self), 0), np.uint64) if self.sub is None else self.sub

    @property
    def columns(self) -> list[np.ndarray]:
        """Arrays that compare as the keys do, the one that decides first."""
        return [self.ts, self.high, self.low, *self.words.T]

    def beside(self, others: Keys) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """These and others as arrays that compare with each other."""
        own, theirs = _as_wide([self.words, others.words])
        return [self.ts, self.high, self.low, *own.T], [others.ts, others.high, others.low, *theirs.T]

    def order(self) -> np.ndarray | None:
        """The permutation that sorts them; None if they are sorted already."""
        return sort_order(self.ts, self.high, self.low, self.sub)

    def locate(self, others: Keys) -> np.ndarray:
        """Where each of the others is among these, which are sorted; -1 where it is not."""
        own, theirs = _as_wide([self.words, others.words])
        return locate(self.ts, self.high, self.low, own, others.ts, others.high, others.low, theirs)

    def whole(self) -> np.ndarray:
        """All of a key as words: what a row adds that is made with this one, and stands somewhere else."""
        return np.column_stack((*(part.view(np.uint64) ^ SIGN for part in (self.ts, self.high, self.low)), self.words))

    def under(self, words: np.ndarray) -> Keys:
        """The keys of rows that are made where these stand, and add these words."""
        return Keys(self.ts, self.high, self.low, words if self.sub is None else joined([self.sub, words]))

    def of_source(self, rank: int) -> Keys:
        """As rows of a source that stands behind so many others, at one time."""
        return Keys(self.ts, self.high + (rank << SOURCE_BITS), self.low, self.sub) if rank else self


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Lines of words, one behind the other, each as long as it is."""
    if len(parts) == 1:
        return parts[0]
    sizes = [lengths(part) for part in parts]
    out = np.zeros((len(parts[0]), int(np.sum(sizes, axis=0).max(initial=0))), np.uint64)
    at = np.zeros(len(out), np.int64)
    for part, size in zip(parts, sizes, strict=True):
        put_behind(out, at, part, size)
    return out


def _as_wide(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Lines of equally many words."""
    widest = max(part.shape[1] for part in parts)
    return [part if part.shape[1] == widest else np.pad(part, ((0, 0), (0, widest - part.shape[1]))) for part in parts]


def dump_keys(keys: Keys) -> dict[str, np.ndarray]:
    own = {"ts": keys.ts, "high": keys.high, "low": keys.low}
    return own if keys.sub is None else {**own, "sub": keys.sub}


def load_keys(state: Mapping[str, np.ndarray]) -> Keys:
    return Keys(state["ts"], state["high"], state["low"], state.get("sub"))


# ---- as columns of Arrow ----------------------------------------------------------------------------------------------


def to_arrow(keys: Keys) -> list[pa.Array]:
    """Four columns that sort as the keys do, also in Spark."""
    if keys.sub is None or not keys.sub.shape[1]:
        sub: pa.Array = pa.nulls(len(keys), pa.binary())
    else:
        data = pa.py_buffer(keys.sub.astype(">u8").tobytes())
        sub = pa.Array.from_buffers(pa.binary(8 * keys.sub.shape[1]), len(keys), [None, data]).cast(pa.binary())
    return [*(pa.array(part) for part in (keys.ts, keys.high, keys.low)), sub]


def from_arrow(columns: Sequence[pa.Array]) -> Keys:
    """What `to_arrow` gave, or several of them one after the other."""
    *numbers, sub = columns
    ts, high, low = (part.to_numpy(zero_copy_only=False) for part in numbers)
    if sub.null_count == len(sub):
        return Keys(ts, high, low)
    sub = sub.fill_null(b"")
    ends = np.frombuffer(sub.buffers()[1], np.int32)[sub.offset : sub.offset + len(sub) + 1].astype(np.int64)
    size = np.diff(ends)
    lines = np.zeros((len(sub), int(size.max())), np.uint8)
    data = np.frombuffer(sub.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    lines[np.repeat(np.arange(len(sub)), size), np.arange(len(data)) - np.repeat(ends[:-1] - ends[0], size)] = data
    return Keys(ts, high, low, lines.view(">u8").astype(np.uint64))
