"""Results of a pattern on their way out: the holding set of 001, and what waits for its turn in the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.changes.algebra import as_values
from headrace.changes.changes import Changes, read_changes, write_changes

if TYPE_CHECKING:
    from headrace.program.patterns import Sequencing


@dataclass(frozen=True, slots=True)
class Watch:
    """Rows of some sources that may still undo a result: those up to the time of its event at `at`; None: up to its end."""

    sources: tuple[int, ...]
    at: int | None


def watches(spec: Sequencing) -> tuple[Watch, ...]:
    """What a result waits for before it is final."""
    n = len(spec.positive)
    found = [Watch(g.sources, g.gap if g.gap < n else None) for g in spec.negations]
    found += [Watch(spec.places[spec.positive[q]].sources, spec.next_to(q)) for q in spec.repeated]
    found += [Watch(spec.places[spec.positive[q]].sources, q) for q in spec.waits]
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class Held:
    """Sequences by the numbers of their rows, each with the times that must have passed."""

    sequences: np.ndarray
    until: np.ndarray  # one column per watch

    @staticmethod
    def none(places: int, columns: int) -> Held:
        return Held(np.empty((0, places), np.int64), np.empty((0, columns), np.int64))

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, index: np.ndarray) -> Held:
        return Held(self.sequences[index], self.until[index])

    def add(self, sequences: np.ndarray, until: np.ndarray) -> None:
        if len(sequences):
            self.sequences = np.concatenate((self.sequences, sequences))
            self.until = np.concatenate((self.until, until))

    def remove(self, sequences: np.ndarray) -> None:
        """These wait no longer: something forbids them."""
        if len(sequences) and len(self):
            left = np.flatnonzero(~np.isin(as_values(self.sequences), as_values(sequences)))
            self.sequences, self.until = self.sequences[left], self.until[left]

    def rename(self, events: np.ndarray, ids: np.ndarray) -> None:
        """These events are known by other numbers now."""
        order = np.argsort(events)
        place = np.minimum(events[order].searchsorted(self.sequences), max(len(events) - 1, 0))
        known = events[order][place] == self.sequences if len(events) else np.zeros_like(self.sequences, np.bool_)
        self.sequences = np.where(known, ids[order][place], self.sequences) if known.any() else self.sequences

    def release(self, passed: np.ndarray) -> np.ndarray:
        """Those whose times have all passed; `passed` is how far time is for each column."""
        done = (self.until < passed).all(axis=1)
        out = self.sequences[done]
        if len(out):
            self.sequences, self.until = self.sequences[~done], self.until[~done]
        return out


@dataclass(slots=True)
class Ready:
    """Results that are final and wait for those before them."""

    parts: list[tuple[str, Changes]] = field(default_factory=list)  # by query

    def __len__(self) -> int:
        return sum(len(part) for _, part in self.parts)

    def add(self, results: list[tuple[str, Changes]]) -> None:
        self.parts += results

    def release(self, time: int) -> list[tuple[str, Changes]]:
        """Those that stand before a time."""
        out, left = [], []
        for query, part in self.parts:
            early = part.keys.ts < time
            if early.any():
                out.append((query, part.take(np.flatnonzero(early))))
            if not early.all():
                left.append((query, part.take(np.flatnonzero(~early))))
        self.parts = left
        return out

    def dump(self) -> dict[str, Any]:
        out: dict[str, Any] = {"queries": [query for query, _ in self.parts]}
        return out | {f"changes{i}": write_changes(part) for i, (_, part) in enumerate(self.parts)}

    def load(self, state: dict[str, Any]) -> None:
        self.parts = [(query, read_changes(state[f"changes{i}"])) for i, query in enumerate(state["queries"])]
