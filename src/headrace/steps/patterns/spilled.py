"""Events of a pattern outside memory (001, VIII): frames of final rows, the oldest first to go there.

All that is in memory stands behind all that is not, because only final rows leave it. So a sequence that a new event is part of
has an end in memory, perhaps an empty one, and begins in frames; one pass over them, the newest first, completes it, and a second
one finds what forbids it. Only one frame is in memory at a time.

Late events wait until enough of them need a frame, each as if it had not come yet. The paper has two thresholds for a frame: how
many late events need it, and an "expected execution time". The second is read as time of the stream: once it has gone so far
since the first of them came, all that wait for the frame are taken. Whatever needs a frame needs all newer ones too, as a window
has no holes and what is in memory is newer than all frames. So the newest is needed most: once enough events wait at all, it has
enough, and all of them are taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from headrace.kernels.patterns.sequences import MOMENT, ROOT, SIGN
from headrace.kernels.patterns.stacks import BITS, KEY, NONE, TS
from headrace.plan.patterns import Spill
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.patterns import ANY_ROW
from headrace.state.final_rows import FinalRows
from headrace.steps.patterns.events import Events, linked
from headrace.steps.patterns.search import Search

BITS_A_ROW = 16  # of marks
NEVER = END_OF_TIME  # when an event that does not wait began to


def as_id(number: np.ndarray) -> np.ndarray:
    """By what a row outside memory is known in a sequence, from its number; and back."""
    return -2 - number


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows that follow one another: their chunk, their numbers (first, stop), and the newest time here and before."""

    chunk: int
    first: int
    stop: int
    newest: int
    before: int


@dataclass(slots=True)
class Found:
    """Sequences, or ends of some, by places in a list of rows that stays while frames come and go."""

    lines: np.ndarray
    ids: np.ndarray  # of the lines: the event, or what stands for a row outside memory
    sequences: np.ndarray
    about: np.ndarray

    @staticmethod
    def of(events: Events, sequences: np.ndarray, about: np.ndarray) -> Found:
        ids = np.unique(np.concatenate((sequences.ravel(), about[:, ROOT])))
        ids = ids[ids != NONE]
        known = about.copy()
        known[:, ROOT] = ids.searchsorted(about[:, ROOT])
        return Found(events.rows[ids], ids, np.where(sequences == NONE, NONE, ids.searchsorted(sequences)), known)

    def behind(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Sequences, and what is known of them, where so many other rows stand before the lines."""
        about = self.about.copy()
        about[:, ROOT] += rows
        return np.where(self.sequences == NONE, NONE, self.sequences + rows), about

    def take(self, which: np.ndarray) -> Found:
        return Found(self.lines, self.ids, self.sequences[which], self.about[which])

    def and_of(self, other: Found) -> Found:
        """Beside them others, of which the list of lines has only more at its end."""
        pairs = ((self.sequences, other.sequences), (self.about, other.about))
        return Found(other.lines, other.ids, *(np.concatenate(pair) for pair in pairs))

    @property
    def whole(self) -> np.ndarray:
        whole: np.ndarray = (self.sequences != NONE).all(axis=1)
        return whole

    def extended(self, first: int, rows: np.ndarray, sequences: np.ndarray, origin: np.ndarray) -> Found:
        """What they became with rows of a frame, which stood before the lines; `first` is the number of the first of them."""
        size = len(rows)
        taken = np.unique(sequences[(sequences != NONE) & (sequences < size)])
        lines, ids = (np.concatenate(p) for p in ((self.lines, rows[taken]), (self.ids, as_id(first + taken))))
        places = np.where(sequences < size, len(self.ids) + taken.searchsorted(sequences), sequences - size)
        return Found(lines, ids, np.where(sequences == NONE, NONE, places), self.about[origin])


class Marks:
    """What a frame has, in a few bits a row: at which places, of which keys. What has no mark is not there."""

    def __init__(self, lines: np.ndarray, places: int) -> None:
        """Of these rows; `places` is how many there are, and the number of the one at which every row fits."""
        self.size = 64
        while self.size < BITS_A_ROW * len(lines):
            self.size *= 2
        there = np.zeros(self.size, np.bool_)
        for place in range(places + 1):
            fits = (lines[:, BITS] >> place) & 1 == 1
            there[self._bit(lines[fits, KEY], np.int64(place))] = True
        self.bits = np.packbits(there)

    def may_have(self, key: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether there may be a row of this key at this place."""
        bit = self._bit(key, place)
        there: np.ndarray = (self.bits[bit >> 3] >> (7 - (bit & 7))) & 1 == 1
        return there

    def _bit(self, key: np.ndarray, place: np.ndarray | np.int64) -> np.ndarray:
        mixed = (key * 64 + place).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(self.size - 1)).astype(np.int64)


class Frames:
    """The rows of `kept` before row `stop`: sealed chunks, of which only the times are in memory."""

    def __init__(self, search: Search, kept: FinalRows, lines_of: Callable[[int, int], np.ndarray]) -> None:
        """None yet; `lines_of` reads rows of `kept` by number."""
        self.search, self.kept, self.lines_of = search, kept, lines_of
        self.stop = 0
        self.loads = 0
        self.largest = 0
        self._marks: dict[int, Marks] = {}  # of the frames that have been read

    def __len__(self) -> int:
        return int(self.kept.reservoir.first.searchsorted(self.stop)) if self.kept.oldest < self.stop else 0

    @property
    def outside(self) -> int:
        """The time of the newest row."""
        return self._newest(len(self))

    def _newest(self, frames: int) -> int:
        return int(self.kept.reservoir.last_ts[frames - 1]) if frames else START_OF_TIME

    def _newest_first(self) -> Iterator[Frame]:
        reservoir = self.kept.reservoir
        starts = np.append(reservoir.first, reservoir.open.first).tolist()
        for i in range(len(self) - 1, -1, -1):
            first = max(starts[i], self.kept.oldest)
            yield Frame(reservoir.first_chunk + i, first, starts[i + 1], self._newest(i + 1), self._newest(i))

    def _load(self, frame: Frame) -> np.ndarray:
        lines = self.lines_of(frame.first, frame.stop)
        self.loads += 1
        self.largest = max(self.largest, len(lines))
        if frame.chunk not in self._marks:
            self._marks[frame.chunk] = Marks(lines, len(self.search.spec.places))
        return lines

    def _may_have(self, frame: Frame, key: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether a frame may have a row of a key at a place, before it is read."""
        marks = self._marks.get(frame.chunk)
        return np.ones(len(key), np.bool_) if marks is None else marks.may_have(key, place)

    @property
    def next_stop(self) -> int | None:
        """The end of the next frame that memory could do without; None: there is none."""
        ends = np.append(self.kept.reservoir.first[1:], self.kept.reservoir.open.first)
        later = ends[ends > self.stop] if len(self.kept.reservoir.first) else ends[:0]
        return int(later[0]) if len(later) else None

    def forget(self) -> None:
        """Frames that are no longer there need no marks."""
        self._marks = {chunk: marks for chunk, marks in self._marks.items() if chunk >= self.kept.reservoir.first_chunk}

    def first_from(self, time: int) -> int:
        """The first row of the first frame that has any at a time or later; the end of all, if none has."""
        place = int(self.kept.reservoir.last_ts[: len(self)].searchsorted(time))
        return int(self.kept.reservoir.first[place]) if place < len(self) else self.stop

    # ---- sequences ------------------------------------------------------------------------------------------------

    def complete(
        self, events: Events, sequences: np.ndarray, about: np.ndarray, rows: np.ndarray, signs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of what a search in memory has found: all sequences, and whether they come or go.

        The search took place while these rows came and went.
        """
        if not len(self):
            return sequences, about[:, SIGN]
        open_ended = (sequences == NONE).any(axis=1) | self._asks_before(events, sequences)
        sure, unsure = np.flatnonzero(~open_ended), np.flatnonzero(open_ended)
        found = self._extended(Found.of(events, sequences[unsure], about[unsure]))
        if self.search.program.forbidding:
            found = self._allowed(found, events, rows, signs)
        done = np.concatenate((sequences[sure], found.ids[found.sequences].reshape(-1, sequences.shape[1])))
        return done, np.concatenate((about[sure, SIGN], found.about[:, SIGN]))

    def _asks_before(self, events: Events, sequences: np.ndarray) -> np.ndarray:
        """Which sequences something before them may forbid that is not in memory."""
        if not any(g.gap == 0 for g in self.search.spec.negations):
            return np.zeros(len(sequences), np.bool_)
        begins: np.ndarray = events.rows[sequences[:, -1], TS] - self.search.spec.within
        return begins <= self.outside

    def _extended(self, found: Found) -> Found:
        """All whole sequences that ends are ends of."""
        done, ends = found.take(found.whole), found.take(~found.whole)
        for frame in self._newest_first():
            if not len(ends.sequences):
                break
            key, place = self._wanted(ends)
            here = self._may_have(frame, key, place)
            others = ends.take(~here & (self._begins(ends) <= frame.before))
            ends = ends.take(here)
            if len(ends.sequences):
                rows = self._load(frame)
                state = linked(self.search, rows, ends.lines)
                ends = ends.extended(frame.first, rows, *self.search.extend(state, *ends.behind(len(rows)), frame.before))
                done, ends = done.and_of(ends.take(ends.whole)), ends.take(~ends.whole)
            ends = others.and_of(ends)
        return done

    def _wanted(self, ends: Found) -> tuple[np.ndarray, np.ndarray]:
        """The key of the event that comes before each end, and the place."""
        bound = (ends.sequences != NONE).sum(axis=1)
        return ends.lines[ends.about[:, ROOT], KEY], self.search.program.positive[ends.sequences.shape[1] - bound - 1]

    def _begins(self, ends: Found) -> np.ndarray:
        """When the windows that end with them begin."""
        times, last = ends.lines[:, TS], ends.sequences[:, -1]
        root = times[ends.about[:, ROOT]]
        newest: np.ndarray = np.where(last == NONE, root, np.maximum(root, times[last]))
        return newest - self.search.spec.within

    def _allowed(self, found: Found, events: Events, rows: np.ndarray, signs: np.ndarray) -> Found:
        """Those that nothing forbids, in memory or outside."""
        found = found.take(np.argsort(-found.about[:, MOMENT], kind="stable"))
        if not len(found.sequences):
            return found
        state = events.state._replace(rows=np.concatenate((events.rows, found.lines)))
        sequences, about = found.behind(len(events.rows))
        found = found.take(~self.search.forbidden(state, sequences, np.ascontiguousarray(about[:, MOMENT]), rows, signs))
        for frame in self._newest_first():
            if not len(found.sequences) or frame.newest < self._earliest(found):
                break
            here = np.flatnonzero(self._may_forbid(frame, found))
            if len(here):
                some, rows, none = found.take(here), self._load(frame), np.empty(0, np.int64)
                state = linked(self.search, rows, some.lines)
                moment = np.zeros(len(here), np.int64)
                stays = np.ones(len(found.sequences), np.bool_)
                stays[here] = ~self.search.forbidden(state, some.behind(len(rows))[0], moment, none, none)
                found = found.take(stays)
        return found

    def _may_forbid(self, frame: Frame, found: Found) -> np.ndarray:
        """Which sequences a frame may have something against."""
        key, out = found.lines[found.sequences[:, 0], KEY], np.zeros(len(found.sequences), np.bool_)
        for place in {n.place if n.place != ANY_ROW else len(self.search.spec.places) for n in self.search.spec.negations}:
            out |= self._may_have(frame, key, np.full(len(key), place, np.int64))
        return out

    def _earliest(self, found: Found) -> int:
        """The time before which nothing can forbid them."""
        times = found.lines[:, TS]
        first, last = times[found.sequences[:, 0]].min(), times[found.sequences[:, -1]].min()
        return int(min(first, last - self.search.spec.within))


@dataclass(slots=True)
class Waiting:
    """Per open row: how far time was when it began to wait."""

    since: np.ndarray

    def __len__(self) -> int:
        return int((self.since != NEVER).sum())

    def moved(self, removed: np.ndarray, is_new: np.ndarray) -> np.ndarray:
        """The same for the open rows as it is now."""
        out = np.full(len(is_new), NEVER, np.int64)
        out[~is_new] = self.since[~removed]
        return out


def waits_on(spill: Spill, since: np.ndarray, must: np.ndarray, now: int) -> np.ndarray:
    """Which rows go on waiting, of those that do. Those that `must` be taken do not."""
    waits = (since != NEVER) & ~must
    enough = int(waits.sum()) >= spill.together
    over = spill.wait is not None and now - int(since.min(initial=NEVER)) >= spill.wait
    return np.zeros(len(since), np.bool_) if enough or over else waits
