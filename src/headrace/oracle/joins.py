"""Joins, from their definition: every row looks back at the rows of the other side that are in their window then."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from headrace.oracle.admission import Key
from headrace.oracle.aggregates import groups
from headrace.oracle.rows import Row
from headrace.oracle.scalar import evaluate
from headrace.oracle.ties import choice_key
from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import Node, base_streams
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window

Results = list[tuple[Key, Row]]
CLOCK = 2**62  # rows made by the clock at u follow every event at u


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row of one side: its place in the order of both, and what it is joined on (None: on nothing)."""

    key: Key
    side: int
    row: Row
    on: Hashable | None


def joined(node: Join, left: Results, right: Results, clock: int) -> Results:
    """All pairs, and the rows of a preserved side that have left their window without having met one, up to the clock."""
    rank = len(base_streams(node.left))
    rows = _side(0, 0, node.left, [e for e, _ in node.keys], left)
    rows += _side(1, rank, node.right, [e for _, e in node.keys], right)
    rows.sort(key=lambda r: r.key)
    met: set[Key] = set()
    out: Results = []
    for i, event in enumerate(rows):
        others = [r for r in rows[:i] if r.side != event.side]
        for other in _window(node.windows[1 - event.side], others, event):
            if event.on is not None and other.on == event.on:
                met |= {event.key, other.key}
                pair = event.row + other.row if event.side == 0 else other.row + event.row
                out.append((choice_key(other.key, event.key), pair))
    for row in rows:
        window = node.windows[row.side]
        if node.kind.preserved[row.side] and row.key not in met:
            assert isinstance(window, RangeWindow)
            leaves = row.key[0] + window.size
            if leaves < clock:
                _, high, *rest = row.key  # those that leave at one time do so in the order in which they stand
                out.append(((leaves, CLOCK | high, *rest), _alone(node, row)))
    return sorted(out, key=lambda pair: pair[0])


def _side(side: int, rank: int, node: Node, keys: Sequence[Expr], found: Results) -> list[_Placed]:
    """The rows of a side; at one time those of the left side come first."""
    table = [row for _, row in found]
    values = evaluate(keys, node.schema, table) if keys else [()] * len(table)
    same = groups(keys, node.schema, table) if keys else [()] * len(table)
    return [
        _Placed((ts, (rank << 50) + high, *rest), side, row, None if None in v else on)
        for ((ts, high, *rest), row), v, on in zip(found, values, same, strict=True)
    ]


def _window(window: Window, others: list[_Placed], event: _Placed) -> list[_Placed]:
    """The rows of the other side, all before the event, that are in their window when it comes."""
    match window:
        case RangeWindow(size=size, lag=lag):
            end = event.key[0] - lag
            return [r for r in others if end - size < r.key[0] <= end]
        case RowsWindow(rows=rows, partition_by=()):
            return others[-rows:]
        case RowsWindow(rows=rows):  # partitioned by what is joined on
            return [r for r in others if r.on == event.on][-rows:]
        case UnboundedWindow():
            return others


def _alone(node: Join, row: _Placed) -> Row:
    nothing = (None,) * len((node.right, node.left)[row.side].schema.fields)
    return row.row + nothing if row.side == 0 else nothing + row.row
