"""Disorder with a seed: rows delayed, doubled, spread over partitions, cut into batches; the same seed, the same arrivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import Row


@dataclass(frozen=True, slots=True)
class Timed:
    """A row, when it happened and when it arrives, in microseconds."""

    ts: int
    values: Row
    arrives: int
    partition: int = 0


def in_order(events: Iterable[tuple[int, Row]]) -> list[Timed]:
    """Events (ts, values) that arrive when they happen."""
    return [Timed(ts, values, ts) for ts, values in sorted(events, key=lambda e: e[0])]


def delayed(rows: Sequence[Timed], rng: Random, *, share: float, up_to: int, beyond: float = 0.0) -> list[Timed]:
    """Delay a share of the rows by up to `up_to`, which keeps DELAY `up_to`; of these, the part `beyond` by up to 3 times it."""

    def delay() -> int:
        if rng.random() >= share:
            return 0
        return rng.randint(up_to + 1, 3 * up_to + 1) if rng.random() < beyond else rng.randint(0, up_to)

    return sorted((replace(r, arrives=r.arrives + delay()) for r in rows), key=lambda r: r.arrives)


def doubled(rows: Sequence[Timed], rng: Random, *, share: float, within: int = 0) -> list[Timed]:
    """Let a share of the rows come twice, the second time up to `within` later."""
    again = [replace(r, arrives=r.arrives + rng.randint(0, within)) for r in rows if rng.random() < share]
    return sorted([*rows, *again], key=lambda r: r.arrives)


def spread(rows: Sequence[Timed], rng: Random, *, partitions: int, apart: int = 0) -> list[Timed]:
    """Deal the rows to partitions; partition p is read p * `apart` later than the first."""
    dealt = (replace(r, partition=rng.randrange(partitions)) for r in rows)
    return sorted((replace(r, arrives=r.arrives + r.partition * apart) for r in dealt), key=lambda r: r.arrives)


def paused(rows: Sequence[Timed], *, after: int, length: int) -> list[Timed]:
    """An idle gap: whatever arrives after `after` arrives `length` later."""
    return [replace(r, arrives=r.arrives + length) if r.arrives > after else r for r in rows]


def punctuated(
    rows: Sequence[Timed], rng: Random, promise: Callable[[int], Row], *, share: float, lost: float = 0.0, up_to: int = 0
) -> list[Timed]:
    """Let a share of the rows be followed by punctuation that holds: the most that can be promised then in their partition.

    `promise` makes the row that says it. The part `lost` of the punctuation never comes, the rest comes up to `up_to` later, so
    also out of order: what held when it was said holds when it comes.
    """
    least: dict[int, int] = {}  # per partition: the smallest time still to come
    said: list[Timed] = []
    for row in reversed(rows):
        if row.partition in least and rng.random() < share and rng.random() >= lost:
            upto = least[row.partition] - 1
            said.append(Timed(upto, promise(upto), row.arrives + rng.randint(0, up_to), row.partition))
        least[row.partition] = min(row.ts, least.get(row.partition, row.ts))
    return sorted([*rows, *reversed(said)], key=lambda r: r.arrives)


def cut(stream: str, rows: Sequence[Timed], rng: Random, *, batches: int, tick: int | None = None) -> list[Batch]:
    """Cut the arrivals into about so many batches at random places; with `tick`, silences are filled with empty batches.

    The time of a batch is the arrival of its last row.
    """
    places = sorted(rng.sample(range(1, len(rows)), min(batches, len(rows)) - 1)) if len(rows) > 1 else []
    out: list[Batch] = []
    for start, stop in zip([0, *places], [*places, len(rows)], strict=True):
        part = rows[start:stop]
        if not part:
            continue
        if tick is not None and out:
            out.extend(Batch(now, {stream: []}) for now in range(out[-1].now + tick, part[0].arrives, tick))
        out.append(Batch(part[-1].arrives, {stream: [Arrival(r.values, r.partition) for r in part]}))
    return out


def disordered(
    stream: str,
    events: Iterable[tuple[int, Row]],
    *,
    seed: int,
    share: float = 0.3,
    up_to: int = 0,
    beyond: float = 0.0,
    duplicates: float = 0.0,
    partitions: int = 1,
    batches: int = 8,
    tick: int | None = None,
) -> list[Batch]:
    """All of it in one call: events (ts, values) as batches of arrivals."""
    rng = Random(seed)
    rows = in_order(events)
    if duplicates:
        rows = doubled(rows, rng, share=duplicates)
    if partitions > 1:
        rows = spread(rows, rng, partitions=partitions)
    return cut(stream, delayed(rows, rng, share=share, up_to=up_to, beyond=beyond), rng, batches=batches, tick=tick)


def recut(batches: Sequence[Batch], rng: Random) -> list[Batch]:
    """The same arrivals in the same order in other batches; a row comes no earlier than it did, and at most with the next few."""
    items: list[tuple[int, str | None, Arrival | None]] = []
    for batch in batches:
        items.extend((batch.now, name, arrival) for name, arrivals in batch.rows.items() for arrival in arrivals)
        items.append((batch.now, None, None))  # time passed, whether or not rows came
    out: list[Batch] = []
    rows: dict[str, list[Arrival]] = {}
    chance = rng.choice((0.1, 0.5, 1.0))
    for number, (now, name, arrival) in enumerate(items):
        if name is not None and arrival is not None:
            rows.setdefault(name, []).append(arrival)
        if rng.random() < chance or number == len(items) - 1:
            out.append(Batch(now, rows))
            rows = {}
    return out
