"""Windows once more, as sets of rows, from docs/windows.md and the definitions of seed 002 alone: to judge the oracle.

Written before the oracle of windows was opened, and without a line of it. Every look is a list comprehension over all rows;
nothing moves, nothing is kept. What decides something is quoted from the documentation. Where the first version of this
file and the oracle disagreed, the documentation was unclear, and was mended together with one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any


@dataclass(frozen=True)
class Row:
    """One row of the stream: its time, its values by name. Rows are handed over in the total order."""

    t: int
    n: int  # its number in the total order
    values: dict[str, Any]

    def __hash__(self) -> int:
        return self.n


@dataclass(frozen=True)
class Amount:
    """`10 SECONDS` (kind time, in microseconds), `10` (rows), `10 ON id` (field)."""

    kind: str
    n: Any
    on: str = ""


@dataclass(frozen=True)
class Look:
    """Some rows, looked at at a time. `event` is the row that looks, for windows of every event; `by` says what lets it happen:
    a row that is there (`row`), the clock that has passed its time (`clock`), or nothing but the end of the input (`end`)."""

    at: int
    start: int | None
    rows: tuple[Row, ...]
    by: str
    event: Row | None = None
    lag: int = 0  # the window ends this much before the look


@dataclass(frozen=True)
class Spec:
    """A window as it is written. `where` is the predicate in the brackets, `partition` what stands behind PARTITIONED BY."""

    kind: str  # range, rows, unbounded, now, size, session, delta, from, to, fixed
    size: Amount | None = None
    every: Amount | None = None
    lag: int = 0
    begin: int = 0
    end: int = 0
    far: Callable[[Row, Row], Any] | None = None  # of DELTA: the distance of a row from the first
    where: Callable[[Row], Any] = lambda row: True
    partition: Callable[[Row], Any] = lambda row: ()


def looks(spec: Spec, stream: Sequence[Row], group: Callable[[Row], Any]) -> list[Look]:
    """All looks at a window over the whole of a stream that has ended. `group` is what stands behind GROUP BY."""
    inside = [r for r in stream if spec.where(r) is True]
    if spec.kind in ("range", "rows", "unbounded", "now"):
        return [_of_event(spec, inside, event) for event in inside]
    if spec.kind in ("session", "delta"):  # "rows of a group"
        own = _split(inside, lambda r: (spec.partition(r), group(r)))
        return [w for rows in own for w in (_sessions if spec.kind == "session" else _deltas)(spec, rows, stream)]
    if spec.kind == "to":
        own = _split(inside, lambda r: (spec.partition(r), group(r)))
        return [w for rows in own for w in _up_to_landmark(spec, rows)]
    # "PARTITIONED BY gives every partition a window, and a count of rows, of its own."
    return [w for rows in _split(inside, spec.partition) for w in _policy(spec, rows, inside, stream) if w.rows]


def _split(rows: Sequence[Row], key: Callable[[Row], Any]) -> list[list[Row]]:
    return [[r for r in rows if key(r) == k] for k in dict.fromkeys(map(key, rows))]


def _of_event(spec: Spec, rows: Sequence[Row], event: Row) -> Look:
    """ "An event sees those before it in the total order (time, then position in the source) and itself." """
    seen = [r for r in rows if r.n <= event.n]
    match spec.kind:
        case "range":
            low, high = event.t - spec.lag - spec.size.n, event.t - spec.lag
            return Look(event.t, None, tuple(r for r in seen if low < r.t <= high), "row", event)
        case "rows":  # "the last 100 rows, of the stream or of each card": CQL's partitioned window is the union of them all
            last = [r for own in _split(seen, spec.partition) for r in own[-spec.size.n :]]
            return Look(event.t, None, tuple(sorted(last, key=lambda r: r.n)), "row", event)
        case "now":
            return Look(event.t, None, tuple(r for r in seen if r.t == event.t), "row", event)
    return Look(event.t, None, tuple(seen), "row", event)


def _sessions(spec: Spec, rows: Sequence[Row], stream: Sequence[Row]) -> list[Look]:
    """ "Rows of a group, none later than 30 minutes after the one before it"; "window_end is the last row and the gap"."""
    out: list[list[Row]] = []
    for row in rows:
        if out and row.t - out[-1][-1].t <= spec.size.n:
            out[-1].append(row)
        else:
            out.append([row])
    return [Look(w[-1].t + spec.size.n, w[0].t, tuple(w), "clock") for w in out]


def _deltas(spec: Spec, rows: Sequence[Row], stream: Sequence[Row]) -> list[Look]:
    """ "The first row that is too far from the first of the window begins the next one, and its time is the window_end." """
    out: list[list[Row]] = []
    ends: list[int] = []
    for row in rows:
        distance = spec.far(row, out[-1][0]) if out else None
        if out and (distance is None or not distance > spec.size.n):  # "a row for which it is NULL stays in the window"
            out[-1].append(row)
            continue
        if out:
            ends.append(row.t)
        out.append([row])
    ends.append(stream[-1].t)  # "what is open is told", when the input ends
    closed = ["row"] * (len(out) - 1) + ["end"]
    return [Look(end, w[0].t, tuple(w), by) for w, end, by in zip(out, ends, closed, strict=True)]


def _up_to_landmark(spec: Spec, rows: Sequence[Row]) -> list[Look]:
    """ "All windows that end there and begin a whole number of EVERY before, for each group back to the first that holds all" """
    own = [r for r in rows if r.t <= spec.end]
    out = []
    for k in count(1) if own else ():
        begin = spec.end - k * spec.every.n
        held = tuple(r for r in own if begin < r.t)
        if held:
            out.append(Look(spec.end, begin, held, "clock"))
        if len(held) == len(own):
            break
    return out


def _policy(spec: Spec, rows: Sequence[Row], inside: Sequence[Row], stream: Sequence[Row]) -> list[Look]:
    """Windows that something fires: `rows` of one partition, `inside` all that are in some window, `stream` all there are."""
    last = stream[-1].t
    if spec.kind == "fixed":
        return [Look(spec.end, spec.begin, tuple(r for r in rows if spec.begin < r.t <= spec.end), "clock")]
    if spec.kind == "from":
        # "once a day", "everything after": days are counted from the landmark.
        late = [u for u in _multiples(spec.every.n, 1, max(last - spec.begin, 1))]
        return [
            Look(spec.begin + u, spec.begin, tuple(r for r in rows if spec.begin < r.t <= spec.begin + u), "clock") for u in late
        ]
    return {"time": _by_time, "rows": _by_rows, "field": _by_field}[spec.every.kind](spec, rows, inside, last)


def _multiples(every: int, first: int, last: int) -> list[int]:
    """The whole multiples from the first that is not before `first` to the first that is not before `last`."""
    begin = -(-first // every)
    return [k * every for k in range(begin, -(-last // every) + 1)]


def _positions(rows: Sequence[Row], on: str) -> dict[Row, Any]:
    """ "Its position is the largest value so far: a value that goes back counts where the stream stood, NULL moves nothing." """
    out: dict[Row, Any] = {}
    so_far = None
    for row in rows:
        value = row.values[on]
        so_far = value if so_far is None else so_far if value is None else max(so_far, value)
        out[row] = so_far
    return out


def _held(spec: Spec, seen: Sequence[Row], at: int, inside: Sequence[Row], upto: int, by: str) -> Look:
    """What SIZE says of the rows that a look sees: `seen` of the partition, those of the whole window up to number `upto`."""
    size = spec.size
    if size.kind == "time":
        low, high = at - spec.lag - size.n, at - spec.lag
        return Look(at, low, tuple(r for r in seen if low < r.t <= high), by, lag=spec.lag)
    if size.kind == "rows":
        return Look(at, None, tuple(seen[-size.n :]), by)
    where = _positions(inside, size.on)
    known = [where[r] for r in inside if r.n <= upto and where[r] is not None]
    if not known:
        return Look(at, None, (), by)
    return Look(at, None, tuple(r for r in seen if where[r] is not None and known[-1] - size.n < where[r]), by)


def _by_time(spec: Spec, rows: Sequence[Row], inside: Sequence[Row], last: int) -> list[Look]:
    """ "Looked at when the time is a whole multiple of EVERY, counted from 1970." At the end a window of time is told "until its
    last row has left it", others up to the first look that is not before the last time known."""
    beyond = last + spec.size.n + spec.lag if spec.size.kind == "time" else last
    out = []
    for u in _multiples(spec.every.n, rows[0].t, beyond):
        before = [r.n for r in inside if r.t <= u]
        out.append(_held(spec, [r for r in rows if r.t <= u], u, inside, max(before, default=-1), "clock"))
    return out


def _by_rows(spec: Spec, rows: Sequence[Row], inside: Sequence[Row], last: int) -> list[Look]:
    """ "After every 5 rows": at the fifth, tenth, .. row of the partition, which sees what came up to it."""
    return [
        _held(spec, rows[: k + 1], rows[k].t, inside, rows[k].n, "row") for k in range(spec.every.n - 1, len(rows), spec.every.n)
    ]


def _by_field(spec: Spec, rows: Sequence[Row], inside: Sequence[Row], last: int) -> list[Look]:
    """ "Whenever the id has passed a multiple of 50": told when the row that passes it is there, and that row is not seen."""
    where = _positions(inside, spec.every.on)
    step, out, before = spec.every.n, [], None
    for row in inside:
        now = where[row]
        if before is not None and now is not None and now > before:
            passed = [m for m in _multiples(step, before, now) if before <= m < now]
            seen = [r for r in rows if r.n < row.n]
            if passed and spec.size.kind != "field":
                out.append(_held(spec, seen, row.t, inside, row.n - 1, "row"))
            else:
                out += [_around(spec, seen, where, m, row.t, "row") for m in passed]
        before = before if now is None else now
    if before is not None and spec.size.kind == "field":  # the end of the input lets the next look happen, and no more
        out.append(_around(spec, rows, where, -(-before // step) * step, last, "end"))
    elif before is not None:
        out.append(_held(spec, rows, last, inside, inside[-1].n, "end"))
    return out


def _around(spec: Spec, seen: Sequence[Row], where: dict[Row, Any], mark: Any, at: int, by: str) -> Look:
    """ "The rows of the last 100 ids": those whose position is in (mark - size, mark]."""
    return Look(at, None, tuple(r for r in seen if where[r] is not None and mark - spec.size.n < where[r] <= mark), by)
