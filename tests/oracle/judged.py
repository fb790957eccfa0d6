"""Hold the oracle against the judge: what it says of a whole input, and of what has arrived so far."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from sql_judge import Judge, Told

from headrace.oracle.admission import Batch
from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import to_micros
from headrace.plan.query import Script
from headrace.plan.time import SECOND

Row = tuple[Any, ...]


def disagreements(sql: str, script: Script, batches: Sequence[Batch], delay: int | None = None) -> tuple[list[str], int]:
    """Where oracle and judge differ, in words, and how many rows they agree on.

    With `delay`, that of all streams, also after every batch; else at the end alone."""
    wrong: list[str] = []
    same = 0
    expected = {query.name: expected_after_each_batch(query, batches) for query in script.queries}
    largest = max(
        (abs(v) for b in batches for rows in b.rows.values() for a in rows for v in a.values if _finite(v)), default=1.0
    )
    for number in range(0 if delay is not None else len(batches), len(batches) + 1):
        seen = batches[: number + 1]
        judge = Judge(sql, arrived(seen))
        times = _newest(script, seen)
        for name, told in judge.answers.items():
            want = expected[name][number]
            ended = number == len(batches)
            clock = math.inf if ended else min(times, default=-math.inf)
            frontier = math.inf if ended else clock - (delay or 0)
            changes = [t for t in told if ended or t.by == "row" or (t.by == "clock" and t.at < clock)]
            for what, oracle, judged in (
                ("changes", want.changes, changes),
                ("final", want.final, [t for t in changes if t.at < frontier]),
            ):
                problem = _difference([row for _, row in oracle], [t.row for t in judged], largest)
                if problem:
                    wrong.append(f"{name}, {what} after batch {number} of {len(batches)}:\n{problem}")
                same += len(judged)
    return wrong, same


def arrived(batches: Iterable[Batch]) -> dict[str, list[Row]]:
    """All rows by stream, in the order of arrival."""
    out: dict[str, list[Row]] = {}
    for batch in batches:
        for name, rows in batch.rows.items():
            out.setdefault(name, []).extend(a.values for a in rows)
    return out


def _newest(script: Script, batches: Iterable[Batch]) -> list[float]:
    """Of every stream the largest time that has come."""
    rows = arrived(batches)
    out: list[float] = []
    for stream in script.streams:
        if not stream.static:
            place = stream.schema.names.index("at")
            out.append(max((to_micros(r[place]) for r in rows.get(stream.name, ())), default=-math.inf))
    return out


def _difference(oracle: Iterable[Row], judge: Iterable[Row], largest: float) -> str:
    """Rows that only one of them has; numbers are compared as numbers, those that are no integers up to rounding."""
    ours, theirs = (sorted((tuple(map(_plain, row)) for row in rows), key=_sortable) for rows in (oracle, judge))
    if len(ours) == len(theirs) and all(_alike(a, b, largest) for a, b in zip(ours, theirs, strict=True)):
        return ""
    only = [
        [r for r in one if not any(_alike(r, other, largest) for other in two)] for one, two in ((ours, theirs), (theirs, ours))
    ]
    return f"  only the oracle: {only[0]}\n  only the judge: {only[1]}\n  the oracle: {ours}\n  the judge: {theirs}"


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return float(value)
    return value


def _sortable(row: Row) -> str:
    return repr(tuple(round(v, 3) if _finite(v) else v for v in row))


def _alike(one: Row, other: Row, largest: float) -> bool:
    return len(one) == len(other) and all(_equal(a, b, largest) for a, b in zip(one, other, strict=True))


def _equal(a: Any, b: Any, largest: float) -> bool:
    if _finite(a) and _finite(b):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15 * largest)
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


__all__ = ["SECOND", "Told", "arrived", "disagreements"]
