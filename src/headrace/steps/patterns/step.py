"""Patterns in a bucket: which results a batch makes and unmakes, when they leave, and which events are let go.

Events are linked as they come, late ones where they belong (events.py), so a batch costs what it changes: a positive event
finds the sequences that it is part of, a negated one those that it lies in. Final events are kept in the reservoir, open ones in
the open rows; what is linked is built again from both. Where memory has a bound, the oldest final events are only in
the reservoir (frames).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.changes.algebra import consolidate
from headrace.changes.keys import Keys
from headrace.kernels.codes import NULL
from headrace.kernels.keys.sortable import SIGN
from headrace.kernels.patterns import stacks
from headrace.plan.patterns import Spill
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.patterns import PatternStage, Sequencing
from headrace.state.final_rows import FinalRows
from headrace.state.open_rows import OpenRows
from headrace.state.parts import HeadPart, KeyPart, PageStore, State
from headrace.state.relayout import carry_final
from headrace.state.reservoir import ChunkCache
from headrace.state.rows import Rows
from headrace.state.share import Share
from headrace.steps.patterns.events import NO_WORD, Events
from headrace.steps.patterns.gather import gather_patterns
from headrace.steps.patterns.pending import Held, Ready, watches
from headrace.steps.patterns.results import Grouping, ResultRows
from headrace.steps.patterns.search import search_of
from headrace.steps.patterns.spilled import NEVER, Frames, Waiting, as_id, waits_on
from headrace.steps.step import Given, Results, Standing, Step, StepParts, Times, Turn

PATIENCE = 4  # events whose window is over are let go when one in so many is new; 0: always
LONGER = 2  # and all that can go when one in so many is: looking at neighbours costs ten times as much


class PatternStep(Step):
    """The pattern of one stage in one bucket."""

    def __init__(self, parts: StepParts) -> None:
        self.stage: PatternStage = parts.stage
        self.spec, self.shown = self.stage.program.sequence, self.stage.program.shown
        self.layout, self.tables = parts.layout, parts.tables
        self.early = [o for o in self.shown if o.emit.early]
        self.groups = {o.query: [Grouping(self.stage, g, self.layout, self.tables) for g in o.groups] for o in self.shown}
        self.search = search_of(self.spec, grouped=any(o.groups for o in self.early))
        self.events = Events(self.search)
        self.kept = self._reservoir(parts)
        self.frames = Frames(self.search, self.kept, lambda first, stop: self._lines(self.kept.rows(first, stop)))
        self.waiting = Waiting(np.zeros(0, np.int64))
        self.number = np.zeros(0, np.int64)  # per event: that of its row in `kept`, -1 while it is open
        self.at = np.zeros(0, np.int64)  # per event of a batch: where its row is
        self.open = np.zeros(0, np.int64)  # per open row: its event; -1 if it was let go
        self.watches = watches(self.spec)
        n = len(self.spec.positive)
        self.told = Held.none(n, 1)  # CHANGES: results that are told when the clock is past the end of their window
        self.final = Held.none(n, len(self.watches))  # FINAL: results that something may still undo
        self.ready = Ready()  # IN ORDER: final results that wait for those before them
        self.key_words = 0  # of the order keys that have come: how many any of them needed
        self.patience, self.longer = PATIENCE, min(PATIENCE, LONGER)
        self._loaded: State = {}  # until the open rows are there as well
        self._fresh = self._unseen = 0  # events that came since the first was done, and since the second
        self._furthest = START_OF_TIME  # the largest time that any source had shown before a batch

    def _reservoir(self, parts: StepParts) -> FinalRows:
        spill = self.spec.spill
        if spill is None:
            return FinalRows(self.layout, parts.store, parts.cache, parts.owner, parts.chunk_rows, 0)
        return FinalRows(self.layout, parts.store, ChunkCache(1), parts.owner, spill.frame, 0, largest=1)

    def final_before(self, times: Times) -> int:
        """What stands before the frontier; under K-slack, what has been taken."""
        return times.final_before if self.spec.slack is None else times.taken

    def standing(self, query: str, now: Standing) -> Standing:
        """Results may still come of a pattern that ends in a negation."""
        frontier, final = (decided_before(now.frontier, time, self.spec) for time in (now.frontier, now.final_before))
        return replace(now, frontier=frontier, final_before=final)

    def numbers(self) -> dict[str, int]:
        """How many events wait for others to be looked for in one pass."""
        return {"waiting": len(self.waiting)}

    @property
    def stored(self) -> int:
        """How many events are in memory, those that wait for K-slack to take them included."""
        return self.events.live + (len(self.open) if self.spec.slack is not None else 0)

    @property
    def held(self) -> int:
        return len(self.told) + len(self.final) + len(self.ready)

    # ---- a batch --------------------------------------------------------------------------------------------------

    def turn(self, turn: Turn) -> Results:
        """What leaves because of a batch. Under K-slack only the rows that are final have come."""
        old, new, removed, is_new, final = turn.old.rows, turn.new.rows, turn.removed, turn.added, turn.final
        times = self._times(turn.times)
        come = is_new if self.spec.slack is None else np.arange(len(new)) < final
        if self.spec.spill is not None:
            come = self._taken(self.spec.spill, come, new, removed, is_new, times)
        gone = self.open[removed]
        gone = gone[gone >= 0]
        chosen = self._add(new, np.flatnonzero(come))
        places = np.full(len(new), -1, np.int64)
        places[~is_new] = self.open[~removed]
        places[come] = chosen
        rows = np.concatenate((gone, chosen))
        signs = np.concatenate((np.full(len(gone), -1, np.int64), np.ones(len(chosen), np.int64)))
        found = self.search.change(self.events.state, rows, signs, self.frames.outside)
        made, unmade, stayed = consolidate(*self.frames.complete(self.events, *found, rows, signs))
        out = self._out(made, unmade, stayed, ResultRows(self, new, places, old, removed, chosen, gone), times)
        self.open = places
        self.events.free(gone)
        return out

    def _times(self, times: Times) -> Times:
        """Under K-slack, all times are that up to which rows have been taken."""
        if self.spec.slack is None:
            return times
        taken = times.taken
        return Times(taken, taken, taken, taken, (taken,) * len(times.sources), taken)

    def _taken(
        self, spill: Spill, come: np.ndarray, new: Rows, removed: np.ndarray, is_new: np.ndarray, times: Times
    ) -> np.ndarray:
        """Which rows are taken in, of those that come and those that have waited: late ones may wait for a frame."""
        since = self.waiting.moved(removed, is_new)
        outside = new.ts - self.spec.within <= self.frames.outside
        since[come & outside & (new.ts < self._furthest)] = times.furthest
        self._furthest = times.furthest
        must = new.ts < max(times.final_before, *times.sources)  # what is final must have been seen
        stays = waits_on(spill, since, must | ~outside, times.furthest)
        come = (come | (since != NEVER)) & ~stays
        since[~stays] = NEVER
        self.waiting = Waiting(since)
        return come

    def _add(self, rows: Rows, at: np.ndarray) -> np.ndarray:
        """Put rows into memory. Gives their numbers."""
        chosen = self.events.add(self._lines(rows.take(at)))
        if len(self.number) < len(self.events.rows):
            self.number = np.concatenate((self.number, np.zeros(len(self.events.rows) - len(self.number), np.int64)))
        self.number[chosen] = -1
        self._fresh += len(at)
        self._unseen += len(at)
        return chosen

    def _lines(self, some: Rows) -> np.ndarray:
        n = len(some)
        bits = np.full(n, 1 << len(self.spec.places), np.int64)
        for p, place in enumerate(self.spec.places):
            code = self.layout.codes[place.live]
            fits = np.ones(n, np.bool_) if code is None else some.columns[code] == 0
            bits |= fits.astype(np.int64) << p
        vectors = self.search.plan.vectors
        first = stacks.WORDS + len(vectors)
        self.key_words = max(self.key_words, some.keys.words.shape[1])
        out, nulls = np.full((n, first + self.key_words), NO_WORD), np.zeros(n, np.int64)
        out[:, first : first + some.keys.words.shape[1]] = (some.keys.words ^ SIGN).view(np.int64)
        for i, vector in enumerate(vectors):
            out[:, stacks.WORDS + i] = some.columns[self.layout.values[vector][0]]
            code = self.layout.codes[vector]
            if code is not None:
                nulls |= (some.columns[code] >= NULL).astype(np.int64) << i
        key = np.zeros(n, np.int64) if self.spec.key is None else some.columns[self.spec.key]
        columns = (some.ts, some.keys.high, some.keys.low, first, key, bits, nulls)
        places = (stacks.TS, stacks.HIGH, stacks.LOW, stacks.SUB, stacks.KEY, stacks.BITS, stacks.NULLS)
        for at, values in zip(places, columns, strict=True):
            out[:, at] = values
        out[:, stacks.DEAD] = 0
        return out

    def keys(self, ids: np.ndarray) -> Keys:
        """The order keys of events of sequences, in memory and outside."""
        outside = ids < 0
        if not outside.any():
            return self.events.keys(ids)
        both = self.events.keys(ids[~outside]).append(self.kept.keys(as_id(ids[outside])))
        return both.take(np.argsort(np.concatenate((np.flatnonzero(~outside), np.flatnonzero(outside)))))

    def _out(self, made: np.ndarray, unmade: np.ndarray, stayed: np.ndarray, showing: ResultRows, times: Times) -> Results:
        out: Results = []
        if self.early:
            take_back, say = self._changed(made, unmade, times)
            out += showing.taken_back(self.early, take_back) + showing.results(self.early, say)
            told = stayed[self._ends(stayed) < times.clock] if self.spec.trailing else stayed
            out += showing.corrected([o for o in self.early if o.groups], told)
        sure = [o for o in self.shown if not o.emit.early]
        if sure:
            done = self._decided(made, unmade, times)
            out += showing.results([o for o in sure if not o.emit.ordered], done)
            self.ready.add(showing.results([o for o in sure if o.emit.ordered], done))
            out += self.ready.release(decided_before(times.next_frontier, times.final_before, self.spec))
        return out

    def _changed(self, made: np.ndarray, unmade: np.ndarray, times: Times) -> tuple[np.ndarray, np.ndarray]:
        """What is taken back, and what is said. A negation at the end is known to be when the window is over."""
        if not self.spec.trailing:
            return unmade, made
        new, gone = self._ends(made), self._ends(unmade)
        early = new >= times.clock
        self.told.remove(unmade[gone >= times.clock])
        self.told.add(made[early], new[early][:, None])
        say = np.concatenate((made[~early], self.told.release(np.array([times.next_clock], np.int64))))
        return unmade[gone < times.clock], say

    def _decided(self, made: np.ndarray, unmade: np.ndarray, times: Times) -> np.ndarray:
        """The results that nothing can undo any more."""
        if not self.watches:
            return made
        self.final.remove(unmade)
        until = [self._ends(made) if w.at is None else self._when(made[:, w.at]) for w in self.watches]
        self.final.add(made, np.stack(until, axis=1))
        alone = len(times.sources) == 1  # then what comes at its frontier stands behind all that is there
        bounds = [
            times.final_before if alone and w.at is not None else min(times.sources[i] for i in w.sources) for w in self.watches
        ]
        return self.final.release(np.array(bounds, np.int64))

    def _when(self, ids: np.ndarray) -> np.ndarray:
        times: np.ndarray = self.events.rows[np.maximum(ids, 0), stacks.TS]
        outside = np.flatnonzero(ids < 0)
        if len(outside):
            times[outside] = self.kept.keys(as_id(ids[outside])).ts
        return times

    def _ends(self, sequences: np.ndarray) -> np.ndarray:
        return self._when(sequences[:, 0]) + self.spec.within

    # ---- state ----------------------------------------------------------------------------------------------------

    def settle(self, turn: Turn) -> list[list[np.ndarray]]:
        """The first rows are final; events that no result can need any more are gone. Gives the columns of rows that are."""
        rows, final, times = turn.new.rows, turn.final, self._times(turn.times)
        full = self.spec.spill is not None and self.stored > self.spec.spill.room
        purged = self._purge(times, always=full)
        events = self.open[:final]
        there = np.flatnonzero(events >= 0)
        first = self.kept.reservoir.count
        self.kept.append(rows, there)
        self.number[events[there]] = first + np.arange(len(there))
        gone = [rows.slice(0, final).take(np.flatnonzero(events < 0)).columns] if len(there) < final else []
        self.open = self.open[final:]
        self.waiting = Waiting(self.waiting.since[final:])
        gone += self._forget(self._oldest(times)) if purged else []
        if self.spec.spill is not None:
            self._spill(self.spec.spill)
        return gone

    def _oldest(self, times: Times) -> int:
        """The time before which no event is needed."""
        return END_OF_TIME if times.next_frontier == END_OF_TIME else max(START_OF_TIME, times.next_frontier - self.spec.within)

    def _purge(self, times: Times, *, always: bool) -> bool:
        if self.patience and not always and self._fresh * self.patience < self.events.live:
            return False
        self._fresh = 0
        self.events.expire(self._oldest(times))
        if not self.longer or always or self._unseen * self.longer >= self.events.live:
            self._unseen = 0
            frontier = [min(times.sources[i] for i in place.sources) for place in self.spec.places]
            self.events.purge(np.array(frontier, np.int64), self._oldest(times), self.frames.outside)
        self.open[(self.open >= 0) & ~self.events.there[self.open]] = -1
        return True

    def _spill(self, spill: Spill) -> None:
        """The oldest events leave memory, frame by frame, until there is room."""
        while self.stored > spill.room and self.frames.next_stop is not None:
            self.frames.stop = self.frames.next_stop
            live = np.flatnonzero(self.events.there)
            leave = live[(self.number[live] >= 0) & (self.number[live] < self.frames.stop)]
            self.events.let_oldest_go(leave)
            for held in (self.told, self.final):
                held.rename(leave, as_id(self.number[leave]))

    def _forget(self, oldest_time: int) -> list[list[np.ndarray]]:
        if len(self.frames):
            gone = self.kept.drop_before(self.frames.first_from(oldest_time))
            self.frames.forget()
            if len(self.frames):
                return gone
            return gone + self._forget(oldest_time)
        live = np.flatnonzero(self.events.there)
        number = self.number[live]
        live, number = live[number >= 0], number[number >= 0]
        oldest = int(number.min()) if len(number) else self.kept.reservoir.count
        gone = self.kept.drop_before(oldest)
        if not self.kept.is_full or 2 * len(live) > self.kept.reservoir.count - self.kept.oldest:
            return gone
        needed = np.zeros(self.kept.reservoir.count - self.kept.oldest, np.bool_)
        needed[number - self.kept.oldest] = True
        order = np.argsort(number)
        gone += self.kept.compact(needed)
        self.number[live[order]] = self.kept.oldest + np.arange(len(live))
        return gone

    def parts(self) -> Iterable[HeadPart | KeyPart]:
        """Final rows, results that wait, and which events are still there."""
        return [HeadPart("pattern", self._dump, self._load), HeadPart("ready", self.ready.dump, self.ready.load)]

    def adopt(self, old: Any, open_: OpenRows, given: Given) -> None:
        """Events and results that wait. What is final and waits for its turn is the query's own."""
        carry_final(old.kept, self.kept, given.relayout)
        self._load(old._dump() | self.kept.dump())
        self._relink(open_.rows)
        names = {before: query for query, before in given.continued.items()}
        self.ready.parts = [(names[query], part) for query, part in old.ready.parts if query in names]

    def gather(self, shares: Sequence[Share], open_: OpenRows) -> Sequence[list[np.ndarray]]:
        """Events and what waits. All events are in memory, until there are too many of them."""
        self._load(gather_patterns(self, shares, open_))
        self._relink(open_.rows)
        return [self.kept.rows().columns]

    def _dump(self) -> State:
        """Events are known by the place of their row: those of the reservoir first, then the open ones."""
        out = self.kept.dump() | {"fresh": self._unseen}
        out |= {"stop": self.frames.stop, "since": self.waiting.since, "furthest": self._furthest}
        if self.spec.spill is not None:  # so that what was let go does not take up room again
            first, here = max(self.kept.oldest, self.frames.stop), np.flatnonzero(self.events.there)
            there = np.zeros(self.kept.reservoir.count - first, np.bool_)
            there[self.number[here[self.number[here] >= 0]] - first] = True
            out["there"] = np.packbits(np.concatenate((there, self.open >= 0)))
        for name, held in (("told", self.told), ("final", self.final)):
            out |= {name: self._places(held.sequences), f"{name}_until": held.until}
        return out

    def _places(self, events: np.ndarray) -> np.ndarray:
        out = np.where(events < 0, as_id(events), self.number[np.maximum(events, 0)]) - self.kept.oldest
        still_open = (events >= 0) & (self.number[np.maximum(events, 0)] < 0)
        if still_open.any():
            order = np.argsort(self.open)
            found = order[np.searchsorted(self.open, events[still_open], sorter=order)]
            out[still_open] = self.kept.reservoir.count - self.kept.oldest + found
        return out

    def _load(self, state: State) -> None:
        self._loaded = state

    def restored(self, open_: OpenRows, pages: PageStore) -> None:
        """Link all events anew, those of the reservoir and the open ones."""
        self._relink(open_.rows)

    def _relink(self, rows: Rows) -> None:
        state, self._loaded = self._loaded, {}
        fresh, self.frames.stop, self._furthest = (state.pop(name) for name in ("fresh", "stop", "furthest"))
        self.waiting = Waiting(state.pop("since"))
        parts = {name: (state.pop(name), state.pop(f"{name}_until")) for name in ("told", "final")}
        flags = state.pop("there", None)
        self.kept.load(state)
        first = max(self.kept.oldest, self.frames.stop)
        kept = self.kept.rows(first)
        wanted = np.ones(len(kept) + len(rows), np.uint8) if flags is None else np.unpackbits(flags, count=len(kept) + len(rows))
        there = np.flatnonzero(wanted[: len(kept)])
        events = np.full(len(kept), -1, np.int64)
        events[there] = self._add(kept, there)
        self.events.link(events[there])  # before more are added: making room links all that are there again
        self.number[events[there]] = first + there
        self.open = np.full(len(rows), -1, np.int64)
        if self.spec.slack is None:
            there = np.flatnonzero(wanted[len(kept) :])
            self.open[there] = self._add(rows, there)
            self.events.link(self.open[there])
        events = np.concatenate((as_id(np.arange(self.kept.oldest, first)), events, self.open))
        self._fresh, self._unseen = 0, fresh
        for name, (places, until) in parts.items():
            setattr(self, name, Held(events[places].reshape(places.shape), until))


def decided_before(frontier: int, final_before: int, spec: Sequencing) -> int:
    """Results before this time are decided, in every bucket: a negation at the end keeps them open as long as their window."""
    if not spec.trailing:
        return final_before
    return frontier if frontier == END_OF_TIME else frontier - spec.within
