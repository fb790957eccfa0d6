"""Random streams and windows to hold a profile against the engine that it is named after.

Times lie on a coarse grid, so that rows fall on the edges of windows and together, on both sides of 1970. They come out of
order, as far as the stream declares; the engine that judges gets them as a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headrace.oracle.rows import Row, from_micros
from headrace.sql import parse_script
from headrace.testing.disorder import disordered
from headrace.testing.local import LocalEngine

COLUMNS = "at TIMESTAMP, id INT, card STRING, q BIGINT"
STREAM = f"CREATE STREAM s ({COLUMNS}) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY {{delay}} MICROSECONDS;"
CALLS = {"n": "COUNT(*)", "s": "SUM(q)", "lo": "MIN(q)", "hi": "MAX(q)", "u": "COUNT(DISTINCT q)"}
Events = list[tuple[int, Row]]


@dataclass(frozen=True, slots=True)
class Hop:
    """A window of time and how often there is one, in microseconds."""

    size: int
    every: int

    def __str__(self) -> str:
        return f"[SIZE {self.size} MICROSECONDS EVERY {self.every} MICROSECONDS]"


def events(seed: int, grid: int, count: int = 120) -> Events:
    """Rows (at, id, card, q) with their times, which are multiples of `grid` microseconds, with gaps between some."""
    rng = Random(seed)
    ts, out = -20 * grid, []
    for number in range(count):
        ts += grid * rng.choice((0, 0, 1, 1, 1, 2, 3, 5, 40))
        out.append((ts, (from_micros(ts), number, rng.choice(("a", "b", "c", None)), rng.choice((None, *range(-4, 5))))))
    return out


def hops(seed: int, grid: int, count: int, *, jumping: bool) -> list[Hop]:
    """Sizes and slides, tumbling or not, few of them multiples of one another; `jumping`: slides may be longer than sizes."""
    rng, out = Random(seed), dict.fromkeys([Hop(10 * grid, 4 * grid)])
    while len(out) < count:
        size, every = grid * rng.randint(1, 30), grid * rng.randint(1, 12)
        if jumping or every <= size:
            out[Hop(size, rng.choice((size, every, every)))] = None
    return list(out)


def answers(queries: dict[str, str], rows: Events, grid: int, seed: int, buckets: int = 3) -> dict[str, list[Row]]:
    """What each of these queries over `s` says in the end, whatever the disorder; in any order."""
    delay = 6 * grid
    inserts = "".join(f"{sql} EMIT FINAL INTO {name};" for name, sql in queries.items())
    engine = LocalEngine(parse_script(STREAM.format(delay=delay) + inserts), buckets)
    batches = disordered("s", rows, seed=seed, share=0.5, up_to=delay, batches=5)
    outputs = [engine.push(batch) for batch in batches] + [engine.finish(0)]
    return {name: [change.row for output in outputs for change in output[name]] for name in queries}
