"""The one meaning of every query: a pure function of the sorted, complete input; and what must be out after each batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.oracle.admission import Admission, Batch, Event, Key, Outcome, Rejection, unique
from headrace.oracle.aggregates import Call, groups
from headrace.oracle.decisions import Slack, decided
from headrace.oracle.joins import joined
from headrace.oracle.patterns import matched, units
from headrace.oracle.reports import reports
from headrace.oracle.rows import Row, from_micros
from headrace.oracle.scalar import evaluate, holds
from headrace.plan.joins import Join
from headrace.plan.nodes import (
    Filter,
    Late,
    Merge,
    Node,
    Project,
    Rejected,
    Scan,
    WindowAggregate,
    WindowReport,
    base_streams,
    children,
    settles,
    waits_for_peers,
)
from headrace.plan.patterns import Pattern
from headrace.plan.query import Query, Using
from headrace.plan.time import END_OF_TIME
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window

Results = list[tuple[Key, Row]]
Rows = Mapping[str, Sequence[tuple[Key, Row]]]  # by name of stream


Clock = int | Mapping[str, tuple[int, int]]  # of all streams; or by name of stream: now, and before it ended


def results(node: Node, rows: Rows | Sequence[tuple[Key, Row]], clock: Clock = END_OF_TIME) -> Results:
    """The results of a node over the whole history of its streams, in the total order.

    `rows` are the admitted rows of each stream in any order (over `late(s)` or `rejected(s)`: those rows, in arrival order); if
    there is one stream, they need not be given by its name.
    A window that is looked at by the clock has been looked at when the clocks of all streams below it have passed it.
    """
    if not isinstance(rows, Mapping):
        rows = {base_streams(node)[0].name: rows}
    match node:
        case Scan(stream=stream):
            return [(e.key, e.row) for e in unique(stream, [Event(key, row) for key, row in rows[stream.name]])]
        case Late(stream=stream) | Rejected(stream=stream):
            return list(rows[stream.name])
        case Merge():
            return merged(node, rows, clock)
        case Join(left=left, right=right):
            return joined(node, results(left, rows, clock), results(right, rows, clock), _clock_of(node, clock)[0])
        case Pattern():
            return matched(node, _units_found(node, rows, clock), _clock_of(node, clock)[0])
        case Filter(input=below) | Project(input=below):
            return _row_by_row(node, results(below, rows, clock))
        case WindowAggregate(input=below):
            return _window_aggregate(node, results(below, rows, clock))
        case WindowReport(input=below):
            return reports(node, results(below, rows, clock), *_clock_of(node, clock))


def _row_by_row(node: Filter | Project, found: Results) -> Results:
    table = [row for _, row in found]
    if isinstance(node, Filter):
        keep = holds(node.predicate, node.input.schema, table)
        return [pair for pair, kept in zip(found, keep, strict=True) if kept]
    values = evaluate([e for _, e in node.items], node.input.schema, table)
    return [(key, row) for (key, _), row in zip(found, values, strict=True)]


def _units_found(node: Pattern, rows: Rows, clock: Clock) -> dict[Node, Results]:
    """The rows of all that a pattern looks at."""
    return {unit: results(unit, rows, clock) for unit in units(node)}


def _clock_of(node: Node, clock: Clock) -> tuple[int, int | None]:
    """Several streams are as far as the one furthest behind; the last of them to end was the end."""
    if isinstance(clock, int):
        return clock, None
    own = [clock[stream.name] for stream in base_streams(node)]
    return min(now for now, _ in own), max(last for _, last in own)


def _window_aggregate(node: WindowAggregate, found: Results) -> Results:
    """For every event, the aggregates over the rows of its keys in its window."""
    if isinstance(leaf(node), Late | Rejected):
        raise NotImplementedError("windows over late(s) and rejected(s) have no oracle: their time is not settled")
    schema = node.input.schema
    table = [row for _, row in found]
    selected = holds(node.where, schema, table)
    keys = groups(node.keys, schema, table)
    inside = _membership(node, found, keys)
    calls = [Call(call, schema, table, node.schema.field(call.name).type) for call in node.aggregates]
    out: Results = []
    for i, (key, row) in enumerate(found):
        if selected[i]:
            seen = len(found) if node.window.waits else i + 1  # peers stand anywhere
            window = [j for j in range(seen) if inside(i, j) and selected[j] and keys[j] == keys[i]]
            out.append((key, row + tuple(call.over(window) for call in calls)))
    return out


def _membership(node: WindowAggregate, found: Results, keys: list[Hashable]) -> Callable[[int, int], bool]:
    """Whether row j is in the window that is evaluated at row i. Where there are no peers, j <= i in the total order."""
    times = [key[0] for key, _ in found]
    window: Window = node.window
    keeps = [s.keep for s in base_streams(node)]
    keep = None if None in keeps else max(k for k in keeps if k is not None)
    match window:
        case RangeWindow(lag=lag, peers=True):  # RANGE of standard SQL: between, with both ends
            return lambda i, j: times[i] - window.reach <= times[j] <= times[i] - lag
        case RangeWindow(size=size, lag=lag):
            return lambda i, j: times[i] - lag - size < times[j] <= times[i] - lag
        case RowsWindow(rows=rows, partition_by=by):
            parts = groups(by, node.input.schema, [row for _, row in found])
            # KEEP is about keys that no longer come: without partitions there are none.
            return lambda i, j: j in _last_rows(parts, times, i, rows, keep if by else None)[parts[j]]
        case UnboundedWindow():
            life = _lives(keys, times, keep)
            return lambda i, j: keys[j] == keys[i] and life[j] == life[i] and times[j] <= times[i]


def _last_rows(parts: list[Hashable], times: list[int], i: int, rows: int, keep: int | None) -> dict[Hashable, list[int]]:
    """At row i, the last rows of every partition; one that has been silent for longer than KEEP has none."""
    window: dict[Hashable, list[int]] = {}
    for j in range(i + 1):
        held = window.setdefault(parts[j], [])
        if held and keep is not None and times[j] - times[held[-1]] > keep:
            held.clear()
        held.append(j)
        del held[:-rows]
    for held in window.values():
        if held and keep is not None and times[i] - times[held[-1]] > keep:
            held.clear()
    return window


def _lives(groups: list[Hashable], times: list[int], keep: int | None) -> list[int]:
    """For every row, how often its group had been silent for longer than KEEP before it."""
    last: dict[Hashable, tuple[int, int]] = {}
    lives = []
    for group, ts in zip(groups, times, strict=True):
        before, life = last.get(group, (ts, 0))
        life += keep is not None and ts - before > keep
        last[group] = (ts, life)
        lives.append(life)
    return lives


def leaf(node: Node) -> Scan | Late | Rejected:
    """Where the rows of a plan come from."""
    return node if isinstance(node, Scan | Late | Rejected) else leaf(children(node)[0])


def merged(node: Merge, rows: Rows, clock: Clock) -> Results:
    """Rows by time, then by which stream they come from, then by position."""
    found: Results = []
    source = 0
    for child in node.inputs:
        for (ts, hi, *rest), row in results(child, rows, clock):
            found.append(((ts, (source << 50) + hi, *rest), row))
        source += len(base_streams(child))
    return sorted(found, key=lambda pair: pair[0])


def source_rows(node: Node, outcomes: Mapping[str, Sequence[Outcome]]) -> Rows:
    """The rows that the leaves of a plan have seen: admitted, late with their time, or rejected with their reason."""
    match leaf(node):
        case Late(stream=stream):
            return {stream.name: [(e.key, (*e.row, from_micros(e.key[0]))) for o in outcomes[stream.name] for e in o.late]}
        case Rejected(stream=stream):
            return {stream.name: [(r.key, rejected_row(stream.name, r)) for o in outcomes[stream.name] for r in o.rejected]}
    return {name: [(e.key, e.row) for o in every for e in o.admitted] for name, every in outcomes.items()}


def rejected_row(stream: str, rejection: Rejection) -> Row:
    """A row of `rejected(s)`: text, reason, source, position; file and line are not known here."""
    _, hi, lo = rejection.key
    return (str(rejection.row), rejection.reason, stream, f"{hi}:{lo}", None, None)


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be out after a batch: all results over the arrivals so far, and those of them that can never change."""

    changes: Results
    final: Results
    outcomes: tuple[Outcome, ...]  # of every stream that is read
    may: Results | None = None  # what may be out under EMIT FINAL; None: nothing but `final`


def expected_after_each_batch(query: Query, batches: Sequence[Batch], *, end: bool = True) -> list[Expected]:
    """What must be out after each batch and, with `end`, after the end of the input."""
    doors = {stream.name: Admission(stream) for stream in base_streams(query.node)}
    slack = Slack(base_streams(query.node))
    behind = _Behind(leaf(query.node))
    outcomes: dict[str, list[Outcome]] = {name: [] for name in doors}
    expected: list[Expected] = []
    for batch in (*batches, *([None] if end else [])):
        for name, door in doors.items():
            outcomes[name].append(door.push(batch) if batch is not None else door.finish())
        behind.push(outcomes, 0 if batch is None else batch.now)
        last = tuple(every[-1] for every in outcomes.values())
        clock = {n: (every[-1].clock, every[-1].last) for n, every in outcomes.items()}
        before = expected[-1].outcomes if expected else ()
        quiet = not any(o.admitted or o.late or o.rejected for o in last)
        same = before and quiet and [o.clock for o in last] == [o.clock for o in before]
        found = expected[-1].changes if same else results(query.node, source_rows(query.node, outcomes), clock)
        final, may = _final(query, outcomes, found, clock, slack, batch.now if batch is not None else 0)
        expected.append(Expected(found, final, last, may))
    return expected


class _Behind:
    """Over `late(s)`: rows that were in time for their stream, and came behind what K-slack had taken, are late as well."""

    def __init__(self, below: Scan | Late | Rejected) -> None:
        self.stream = below.stream.name
        self.doors = [Slack(streams) for streams in below.together] if isinstance(below, Late) else []

    def push(self, outcomes: Mapping[str, list[Outcome]], now: int) -> None:
        last = {name: every[-1] for name, every in outcomes.items()}
        missed: set[Key] = set()
        for door in self.doors:
            door.push(last, now)
            missed.update(e.key for e in door.missed[self.stream])
        own = last[self.stream]
        late = (*own.late, *(e for e in own.admitted if e.key in missed))
        outcomes[self.stream][-1] = replace(own, late=late, admitted=tuple(e for e in own.admitted if e.key not in missed))


def _final(
    query: Query, outcomes: Mapping[str, Sequence[Outcome]], found: Results, clock: Clock, slack: Slack, now: int
) -> tuple[Results, Results | None]:
    """What must be out under EMIT FINAL after a batch; and what may be, where that is more."""
    last = {name: every[-1] for name, every in outcomes.items()}
    above, core = _top(query.node)
    if isinstance(core, Pattern) and not query.emit.early:
        if query.using is Using.KSLACK:
            slack.push(last, now)
            must = may = slack.released(core, _units_found(core, slack.taken, slack.bound))
        else:
            must, may = decided(core, _units_found(core, source_rows(core, outcomes), clock), last, query.emit)
        for step in reversed(above):
            must, may = _row_by_row(step, must), _row_by_row(step, may)
        return must, may
    if not isinstance(leaf(query.node), Scan):
        return found, None  # late and rejected rows are facts at once
    # At its frontier one stream may still bring rows that stand before those of another.
    # And to a result with peers, a row at the frontier may still be one.
    alone = _sources(query.node) == 1 and not waits_for_peers(query.node)
    one = next(iter(last.values())) if alone else None
    bound = one.final_before if one is not None else min(o.frontier for o in last.values())
    return [pair for pair in found if pair[0][0] < bound - settles(query.node)], None


def _sources(node: Node) -> int:
    """From how many places rows come. A pattern reads a unit once, at however many places of it."""
    below = units(node) if isinstance(node, Pattern) else children(node)
    return sum(map(_sources, below)) or 1


def _top(node: Node) -> tuple[list[Filter | Project], Node]:
    """The filters and columns above the topmost step with state, outermost first, and that step."""
    above: list[Filter | Project] = []
    while isinstance(node, Filter | Project):
        above.append(node)
        node = node.input
    return above, node
