"""The one meaning of every query: a pure function of the sorted, complete input; and what must be out after each batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from headrace.oracle.admission import Admission, Batch, Event, Key, Outcome, Rejection, unique
from headrace.oracle.aggregates import aggregate
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Project, Rejected, Scan, WindowAggregate, base_stream, children
from headrace.plan.query import Query
from headrace.plan.schema import Schema
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window
from headrace.testing.rows import Row, from_micros, group_value
from headrace.testing.scalar import evaluate, holds

Results = list[tuple[Key, Row]]


def results(node: Node, rows: Sequence[tuple[Key, Row]]) -> Results:
    """The results of a node over the whole history of its stream, in the total order.

    `rows` are the admitted rows in any order (for a plan over `late(s)` or `rejected(s)`: those rows, in arrival order).
    """
    match node:
        case Scan(stream=stream):
            return [(e.key, e.row) for e in unique(stream, [Event(key, row) for key, row in rows])]
        case Late() | Rejected():
            return list(rows)
        case Filter(input=below, predicate=predicate):
            found = results(below, rows)
            keep = holds(predicate, below.schema, [row for _, row in found])
            return [pair for pair, kept in zip(found, keep, strict=True) if kept]
        case Project(input=below, items=items):
            found = results(below, rows)
            values = evaluate([e for _, e in items], below.schema, [row for _, row in found])
            return [(key, row) for (key, _), row in zip(found, values, strict=True)]
        case WindowAggregate(input=below):
            return _window_aggregate(node, results(below, rows))


def _window_aggregate(node: WindowAggregate, found: Results) -> Results:
    """For every event, the aggregates over the rows of its keys in its window."""
    if isinstance(leaf(node), Late | Rejected):
        raise NotImplementedError("windows over late(s) and rejected(s) have no oracle: their time is not settled")
    schema = node.input.schema
    table = [row for _, row in found]
    selected = holds(node.where, schema, table)
    keys = _groups(node.keys, schema, table)
    inside = _membership(node, found, keys)
    calls = [_Call(call, schema, table, node.schema.field(call.name).type) for call in node.aggregates]
    out: Results = []
    for i, (key, row) in enumerate(found):
        if selected[i]:
            window = [j for j in range(i + 1) if inside(i, j) and selected[j] and keys[j] == keys[i]]
            out.append((key, row + tuple(call.over(window) for call in calls)))
    return out


def _groups(exprs: Sequence[Expr], schema: Schema, table: Sequence[Row]) -> list[Hashable]:
    """For every row a stand-in for its values of the expressions that compares as GROUP BY does."""
    return [tuple(map(group_value, values)) for values in evaluate(exprs, schema, table)]


def _membership(node: WindowAggregate, found: Results, keys: list[Hashable]) -> Callable[[int, int], bool]:
    """Whether row j <= i, in the total order, is in the window that is evaluated at row i."""
    times = [key[0] for key, _ in found]
    window: Window = node.window
    keep = base_stream(node).keep
    match window:
        case RangeWindow(size=size, lag=lag):
            return lambda i, j: times[i] - lag - size < times[j] <= times[i] - lag
        case RowsWindow(rows=rows, partition_by=by):
            parts = _groups(by, node.input.schema, [row for _, row in found])
            # KEEP is about keys that no longer come: without partitions there are none.
            return lambda i, j: j in _last_rows(parts, times, i, rows, keep if by else None)[parts[j]]
        case UnboundedWindow():
            life = _lives(keys, times, keep)
            return lambda i, j: keys[j] == keys[i] and life[j] == life[i]


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


class _Call:
    """One aggregate call with its argument and filter evaluated for every row."""

    def __init__(self, call: Aggregate, schema: Schema, table: Sequence[Row], result_type: str) -> None:
        self.function = call.function
        self.result_type = result_type
        self.passes = holds(call.filter, schema, table)
        self.values = [v for (v,) in evaluate((call.argument,), schema, table)] if call.argument else [1] * len(table)

    def over(self, window: Sequence[int]) -> object:
        return aggregate(self.function, [self.values[j] for j in window if self.passes[j]], self.result_type)


def leaf(node: Node) -> Scan | Late | Rejected:
    """Where the rows of a plan come from."""
    return node if isinstance(node, Scan | Late | Rejected) else leaf(children(node)[0])


def source_rows(node: Node, outcomes: Sequence[Outcome]) -> list[tuple[Key, Row]]:
    """The rows that the leaf of a plan has seen: admitted, late with their time, or rejected with their reason."""
    match leaf(node):
        case Scan():
            return [(e.key, e.row) for o in outcomes for e in o.admitted]
        case Late():
            return [(e.key, (*e.row, from_micros(e.key[0]))) for o in outcomes for e in o.late]
        case Rejected(stream=stream):
            return [(r.key, rejected_row(stream.name, r)) for o in outcomes for r in o.rejected]


def rejected_row(stream: str, rejection: Rejection) -> Row:
    """A row of `rejected(s)`: text, reason, source, position."""
    _, hi, lo = rejection.key
    return (str(rejection.row), rejection.reason, stream, f"{hi}:{lo}")


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be out after a batch: all results so far, and those of them that can never change."""

    changes: Results
    final: Results
    outcome: Outcome


def expected_after_each_batch(query: Query, batches: Sequence[Batch], *, end: bool = True) -> list[Expected]:
    """What must be out after each batch and, with `end`, after the end of the input."""
    door = Admission(base_stream(query.node))
    arrives_in_order = not isinstance(leaf(query.node), Scan)  # late and rejected rows are facts at once
    outcomes: list[Outcome] = []
    expected: list[Expected] = []
    for batch in (*batches, *([None] if end else [])):
        outcomes.append(door.push(batch) if batch is not None else door.finish())
        quiet = expected and not any((outcomes[-1].admitted, outcomes[-1].late, outcomes[-1].rejected))
        found = expected[-1].changes if quiet else results(query.node, source_rows(query.node, outcomes))
        final = [pair for pair in found if arrives_in_order or pair[0][0] < outcomes[-1].final_before]
        expected.append(Expected(found, final, outcomes[-1]))
    return expected


def changes_after_each_batch(query: Query, batches: Sequence[Batch], *, end: bool = True) -> list[Results]:
    """The consolidated output after each batch under EMIT CHANGES: the results over the arrivals so far."""
    return [e.changes for e in expected_after_each_batch(query, batches, end=end)]


def final_after_each_batch(query: Query, batches: Sequence[Batch], *, end: bool = True) -> list[Results]:
    """All that has left after each batch under EMIT FINAL: the results that the frontier has passed."""
    return [e.final for e in expected_after_each_batch(query, batches, end=end)]
