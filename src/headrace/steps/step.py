"""What a kind of step is to whoever runs it: its methods, its order of calls, and its contract.

For every batch, of however many rows:

    final_before(times)   how far rows are final for this step; the turn is made with it
    turn(turn)            take the batch in, and give what changes because of it
    settle(turn)          the first rows are final now: let go of what nothing can need any more
    standing(query, ..)   how far its results are, for those that read them

Between two batches, whenever whoever drives it wants to save: `parts()` names what it keeps, and `save_pages` writes what it
pages itself. After a restart a new step gets the parts back once tables and open rows are there, and is then told (`restored`).

The contract:
- What a turn gives depends on the rows that have come and on how far time is; not on how rows were cut into batches.
- A `-` repeats key and row of the `+` that it takes back, and follows it.
- State stands at the frontier: only final rows change it for good (decisions/0001).
- A step may write to the columns of `turn.new` whose tables are derived; they are found again in `turn.old` of the next batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.plan.time import START_OF_TIME

if TYPE_CHECKING:
    from headrace.changes.changes import Changes
    from headrace.evolution.names import Names
    from headrace.program.stage import Stage
    from headrace.state.open_rows import OpenRows
    from headrace.state.parts import Handle, HeadPart, KeyPart, PageStore
    from headrace.state.relayout import Relayout
    from headrace.state.reservoir import ChunkCache
    from headrace.state.rows import Layout
    from headrace.state.share import Share
    from headrace.state.tables import Tables

Results = list[tuple[str, "Changes"]]  # by query


@dataclass(slots=True)
class Times:
    """How far time is, before a batch and after it: the frontier, and the clock of results that need not be final."""

    frontier: int
    clock: int
    next_frontier: int
    next_clock: int
    sources: tuple[int, ...] = ()  # the frontier of every source, after it
    final_before: int = START_OF_TIME  # of all sources together
    furthest: int = START_OF_TIME  # the largest time that any source has shown
    last: int = START_OF_TIME  # how far time is, or was when the input ended
    taken: int = START_OF_TIME  # before this, K-slack has taken the rows


@dataclass(slots=True)
class Turn:
    """A batch: the open rows as they were and as they are, which of either are not in the other, and how many are final."""

    old: OpenRows
    new: OpenRows
    removed: np.ndarray  # flags of `old`
    added: np.ndarray  # flags of `new`
    final: int  # so many of the first of `new`
    times: Times


Said = tuple[str, int, tuple[int, ...], tuple[Any, ...]]  # a change: query, sign, order key, row


class Live(ABC):
    """A step that takes one event a call, as Python values, and gives what a turn with it alone would give.

    It stands where the step stands from `begin` until it puts it back; in between nobody else may use the step. Values are those
    of all inputs of the stage: times in microseconds, dates in days. `final_before` is that of `Times`; the end comes in a batch.
    """

    @abstractmethod
    def begin(self, open_: OpenRows) -> None:
        """Go on from where the step stands, with these open rows."""

    @abstractmethod
    def put(self, ts: int, high: int, low: int, values: tuple[Any, ...]) -> None:
        """The next event. Nothing has happened yet: values that are not of their types are refused here."""

    @abstractmethod
    def take(self, frontier: int, final_before: int) -> list[Said]:
        """Take in the event."""

    @abstractmethod
    def pass_time(self, frontier: int, final_before: int) -> list[Said]:
        """Move on with time alone."""

    @abstractmethod
    def put_back(self) -> OpenRows:
        """Have the step stand as it does now. Gives the open rows. It may go on all the same."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the results of a query are."""

    frontier: int  # no more come before it
    final_before: int  # what stands before it stays
    latest: int  # the clock
    last: int  # where time ended, or is


@dataclass(frozen=True, slots=True)
class StepParts:
    """What a step is made with."""

    stage: Stage[Any]  # of the kind that the step runs
    layout: Layout
    tables: Tables
    store: Handle
    cache: ChunkCache
    owner: Hashable  # tells its chunks from those of others in the cache
    chunk_rows: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a step of a changed script is told of the old one, whose rows and keys have been carried over."""

    relayout: Relayout
    new: Names
    old: Names
    continued: dict[str, str]  # queries that go on, and what they were called


class Step(ABC):
    """What every kind can do. A kind says what it does otherwise: as it stands here, a step that keeps nothing."""

    keeps_open = True  # whether open rows are kept for it; else a turn has only what comes and what is taken back
    by_instant = False  # whether rows of one time are seen together, and final together
    may_wait = False  # whether nothing it says hangs on the frontier: it may be told later how far that has come

    @abstractmethod
    def turn(self, turn: Turn) -> Results:
        """What changes because of a batch."""

    def final_before(self, times: Times) -> int:
        """Rows before this time are final, as far as this step is concerned: those before the frontier."""
        return times.final_before

    def settle(self, turn: Turn) -> Iterable[list[np.ndarray]]:
        """Let go of what nothing can need any more. Gives the columns of rows that hold their keys no longer."""
        return ()

    def standing(self, query: str, now: Standing) -> Standing:
        """How far the results of a query are, where the input is so far: as far as it."""
        return now

    def grow(self) -> None:
        """Make room for the keys that have come, or were loaded."""
        return

    def parts(self) -> Iterable[HeadPart | KeyPart]:
        """All that it keeps."""
        return ()

    def save_pages(self, pages: PageStore) -> None:
        """Write what changed of that which it pages itself."""
        return

    def restored(self, open_: OpenRows, pages: PageStore) -> None:
        """All parts are loaded, and these are the open rows: read again what it pages itself, and what follows from both."""
        return

    def adopt(self, old: Any, open_: OpenRows, given: Given) -> None:
        """Instead of being restored: take over what a step of a changed script kept. Tables and open rows are there."""
        return

    def owners(self, table: int) -> np.ndarray:
        """Per number of a derived table the number that it follows from: of the key that lives, or of the life of a pair."""
        return np.zeros(0, np.int64)

    def gather(self, shares: Sequence[Share], open_: OpenRows) -> Sequence[list[np.ndarray]]:
        """Instead of being restored: take over what this stage has in other buckets for this one. Tables and open rows are there.

        What can be made of rows is left out: another step takes over from this one (`adopt`). Gives final rows that hold keys.
        """
        return ()

    def live(self) -> Live | None:
        """The same step, one event a call; None: there is none."""
        return None

    def numbers(self) -> dict[str, int]:
        """What it counts for progress, by name."""
        return {}
