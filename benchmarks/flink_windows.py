"""Does the profile `flink` answer as Flink does, and OVER as well? Random sizes, slides, gaps, frames and disorder, on both.

    python -m benchmarks.flink_windows --seeds 3

Not a matter of time: rows are compared, and any difference is an error. TUMBLE and HOP, SESSION, OVER with RANGE and ROWS.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.testing.disorder import disordered
from headrace.testing.profiled import CALLS, Events, answers, events, hops

from .rivals import flink_env

GRID = 250_000  # microseconds: Flink's times have milliseconds
AS_FLINK = " WITH (profile = 'flink')"
SHOWN = ", ".join(f"{call} AS {name}" for name, call in CALLS.items())
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Asked:
    """One question in both languages; what both show is (card or nothing, two numbers, the calls)."""

    name: str
    ours: str
    flink: str


def seconds(micros: int) -> str:
    """An interval with milliseconds, and as many digits in front as it needs."""
    return (
        f"INTERVAL '{micros // 1_000_000}.{micros % 1_000_000 // 1_000:03d}' SECOND({max(2, len(str(micros // 1_000_000)))}, 3)"
    )


def windowed(name: str, window: str, flink: str) -> Asked:
    """A window that is told when it ends, with its bounds."""
    start, stop = (f"CAST({flink.replace('(', f'_{end}(', 1)} AS STRING)" for end in ("START", "END"))
    calls = SHOWN.replace(" AS u", " AS uu").replace(" AS s,", " AS ss,")
    return Asked(
        name,
        f"SELECT card, window_start, window_end, {SHOWN} FROM s {window} GROUP BY card{AS_FLINK}",
        f"SELECT {{number}} AS number, card, {start} AS l, {stop} AS u, {calls} FROM s GROUP BY card, {flink}",
    )


def framed(name: str, partition: str, frame: str, flink_frame: str) -> Asked:
    """OVER: one row for each event after 1970. Flink's OVER with RANGE takes others for late, and drops them."""
    ours = ", ".join(f"{call} OVER ({partition}ORDER BY at {frame}) AS {name}" for name, call in CALLS.items())
    theirs = ", ".join(f"{call} OVER ({partition}ORDER BY ts {flink_frame}) AS {name}{name}" for name, call in CALLS.items())
    return Asked(
        name,
        f"SELECT card, id, id + 1 AS next, {ours} FROM s WHERE at > TIMESTAMP '1970-01-01 00:00:00Z'",
        f"SELECT {{number}} AS number, card, CAST(id AS STRING) AS l, CAST(id + 1 AS STRING) AS u, {theirs} FROM s WHERE ms > 0",
    )


def questions(seed: int, count: int) -> list[Asked]:
    return [*_hops(seed, count), *_sessions(seed, count), *_frames(seed, count)]


def _hops(seed: int, count: int) -> Iterator[Asked]:
    for hop in hops(seed, GRID, count, jumping=True):
        if hop.size == hop.every:
            yield windowed(str(hop), str(hop), f"TUMBLE(ts, {seconds(hop.size)})")
        else:
            yield windowed(str(hop), str(hop), f"HOP(ts, {seconds(hop.every)}, {seconds(hop.size)})")


def _sessions(seed: int, count: int) -> Iterator[Asked]:
    for gap in Random(seed).sample(range(1, 45), max(2, count // 3)):
        window = f"[SESSION {gap * GRID} MICROSECONDS]"
        yield windowed(window, window, f"SESSION(ts, {seconds(gap * GRID)})")


def _frames(seed: int, count: int) -> Iterator[Asked]:
    rng = Random(seed)
    for number in range(count):
        partition = rng.choice(("PARTITION BY card ", "PARTITION BY card, q ", ""))
        size, rows = GRID * rng.randint(0, 20), rng.randint(1, 6)
        ours, flink = rng.choice((
            (f"RANGE BETWEEN INTERVAL {size} MICROSECONDS PRECEDING AND CURRENT ROW",
             f"RANGE BETWEEN {seconds(size)} PRECEDING AND CURRENT ROW"),
            (f"ROWS BETWEEN {rows} PRECEDING AND CURRENT ROW",) * 2,
            ("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",) * 2,
            ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",) * 2,
        ))  # fmt: skip
        yield framed(f"{number}: OVER ({partition}{ours})", partition, ours, flink)


def flinks(env: flink_env.FlinkEnv, asked: list[Asked], rows: Events, seed: int) -> dict[str, Counter[Row]]:
    """What Flink says to each, all in one job over one file in which rows stand as they arrive."""
    batches = disordered("s", rows, seed=seed, share=0.5, up_to=6 * GRID, batches=5)
    arrivals = [arrival.values for batch in batches for arrival in batch.rows["s"]]
    micros = {row[1]: ts for ts, row in rows}
    columns = {"id": 1, "card": 2, "q": 3}
    table = pa.table({
        **{name: pa.array([row[at] for row in arrivals]) for name, at in columns.items()},
        "ms": pa.array([micros[row[1]] // 1_000 for row in arrivals]),
    })  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="flink-windows-") as folder:
        data, queries = Path(folder, "data"), Path(folder, "queries.json")
        data.mkdir()
        pq.write_table(table, data / "s.parquet")
        queries.write_text(json.dumps([a.flink.format(number=i) for i, a in enumerate(asked)]))
        # Flink's watermark says that no row up to it comes any more, ours that none before it does.
        delay = (6 * GRID + 1_000) / 1e6
        found = flink_env.run(
            env, "flink_windows.py", {"data": data, "queries": queries, "delay_seconds": delay, "parallelism": 1}
        )
    out: dict[str, Counter[Row]] = {a.name: Counter() for a in asked}
    for number, *row in found["rows"]:
        out[asked[number].name][tuple(row)] += 1
    return out


def ours(asked: list[Asked], rows: Events, seed: int) -> dict[str, Counter[Row]]:
    found = answers({f"q{i}": a.ours for i, a in enumerate(asked)}, rows, GRID, seed)
    return {asked[int(name[1:])].name: Counter(map(_plain, some)) for name, some in found.items()}


def _plain(row: Row) -> Row:
    """Bounds as Flink writes them."""
    card, low, high, *calls = row
    return (card, *(b.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if isinstance(b, datetime) else str(b) for b in (low, high)), *calls)


def main(options: argparse.Namespace) -> int:
    env, wrong = flink_env.ensure(), 0
    for seed in range(options.seed, options.seed + options.seeds):
        rows, asked = events(seed, GRID, options.rows), questions(seed, options.windows)
        theirs, mine = flinks(env, asked, rows, seed), ours(asked, rows, seed)
        compared = sum(sum(found.values()) for found in theirs.values())
        differing = [a.name for a in asked if mine[a.name] != theirs[a.name]]
        print(f"seed {seed}: {len(asked)} questions, {compared:,} rows of Flink's, {len(differing)} questions with other answers")
        for name in differing:
            print(
                f"  {name}\n    only here  {_some(mine[name] - theirs[name])}\n    only Flink {_some(theirs[name] - mine[name])}"
            )
        wrong += len(differing) + (not compared)
    return 1 if wrong else 0


def _some(rows: Counter[Row]) -> str:
    return f"{sum(rows.values())} rows, {sorted(rows, key=str)[:3]}"


def arguments() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.flink_windows", description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seeds", type=int, default=1, help="how many streams and sets of questions")
    options.add_argument("--rows", type=int, default=150)
    options.add_argument("--windows", type=int, default=6, help="hops, and frames of OVER; a third as many sessions")
    return options


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args()))
