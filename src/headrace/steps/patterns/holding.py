"""Results of a pattern on their way out: the holding set of 001, and what waits for its turn in the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes

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


def as_keys(sequences: np.ndarray) -> np.ndarray:
    """Sequences as values that compare as a whole."""
    flat = np.ascontiguousarray(sequences)
    return flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).reshape(-1)


def consolidate(sequences: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is made and what is unmade, each once: a sequence that comes and goes in one batch was never there.

    Then what was there, still is, and may have changed: signs of 0 say so, and so does going and coming again.
    """
    if not len(signs) or (signs > 0).all() or (signs < 0).all():
        return sequences[signs > 0], sequences[signs < 0], sequences[:0]
    _, first, number = np.unique(as_keys(sequences), return_index=True, return_inverse=True)
    net = np.zeros(len(first), np.int64)
    np.add.at(net, number, signs)
    backward = np.flatnonzero(signs)[::-1]
    begins = np.zeros(len(first), np.int64)  # with a sign that is not 0
    begins[number[backward]] = signs[backward]
    return tuple(sequences[np.sort(first[which])] for which in (net > 0, net < 0, (net == 0) & (begins <= 0)))  # type: ignore[return-value]


@dataclass(slots=True)
class Held:
    """Sequences by the numbers of their rows, each with the times that must have passed."""

    sequences: np.ndarray
    until: np.ndarray  # one column per watch

    @staticmethod
    def none(places: int, columns: int) -> Held:
        """Nothing."""
        return Held(np.empty((0, places), np.int64), np.empty((0, columns), np.int64))

    def __len__(self) -> int:
        """How many."""
        return len(self.sequences)

    def take(self, index: np.ndarray) -> Held:
        """Some of them."""
        return Held(self.sequences[index], self.until[index])

    def add(self, sequences: np.ndarray, until: np.ndarray) -> None:
        """These wait too."""
        if len(sequences):
            self.sequences = np.concatenate((self.sequences, sequences))
            self.until = np.concatenate((self.until, until))

    def remove(self, sequences: np.ndarray) -> None:
        """These wait no longer: something forbids them."""
        if len(sequences) and len(self):
            left = np.flatnonzero(~np.isin(as_keys(self.sequences), as_keys(sequences)))
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
        """How many."""
        return sum(len(part) for _, part in self.parts)

    def add(self, results: list[tuple[str, Changes]]) -> None:
        """More of them."""
        self.parts += results

    def release(self, time: int) -> list[tuple[str, Changes]]:
        """Those that stand before a time."""
        out, left = [], []
        for query, part in self.parts:
            early = part.ts < time
            if early.any():
                out.append((query, part.take(np.flatnonzero(early))))
            if not early.all():
                left.append((query, part.take(np.flatnonzero(~early))))
        self.parts = left
        return out

    def dump(self) -> dict[str, Any]:
        """The state, as arrays."""
        out: dict[str, Any] = {"queries": [query for query, _ in self.parts]}
        for i, (_, part) in enumerate(self.parts):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.rows.schema) as writer:
                writer.write_batch(part.rows)
            sub = np.zeros(len(part), np.int64) if part.sub is None else part.sub
            keys = {"sign": part.sign, "ts": part.ts, "high": part.high, "low": part.low, "sub": sub}
            out |= {f"{name}{i}": values for name, values in keys.items()} | {f"rows{i}": sink.getvalue().to_pybytes()}
        return out

    @staticmethod
    def load(state: dict[str, Any]) -> Ready:
        """What was dumped."""
        out = Ready()
        for i, query in enumerate(state["queries"]):
            with pa.ipc.open_stream(state[f"rows{i}"]) as reader:
                rows = reader.read_next_batch()
            sign, ts, high, low, sub = (state[f"{name}{i}"] for name in ("sign", "ts", "high", "low", "sub"))
            out.parts.append((query, Changes(sign, ts, high, low, rows, sub)))
        return out
