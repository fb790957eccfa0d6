"""Windows that are looked at when a trigger fires, from the definitions of 002: what is inside (3.1), and when (3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.oracle.admission import Key
from headrace.oracle.calls import Call, groups
from headrace.oracle.ties import group_places
from headrace.plan.nodes import WindowReport
from headrace.plan.time import END_OF_TIME
from headrace.plan.windows import EveryTime
from headrace.testing.rows import Row, from_micros
from headrace.testing.scalar import evaluate, holds

CLOCK = 2**62  # rows made by the clock at u follow every event at u
Found = Sequence[tuple[Key, Row]]


def reports(node: WindowReport, found: Found, clock: int) -> list[tuple[Key, Row]]:
    """For every time u that the clock has passed and for every group with a row in (u - size - lag, u - lag], one row."""
    schema = node.input.schema
    table = [row for _, row in found]
    times = [key[0] for key, _ in found]
    selected = holds(node.where, schema, table)
    keys = groups([e for _, e in node.keys], schema, table)
    values = evaluate([e for _, e in node.keys], schema, table)
    places = group_places([f.type for f in node.schema.fields[: len(node.keys)]], values)
    calls = [Call(call, schema, table, node.schema.field(call.name).type) for call in node.aggregates]
    size, lag = node.window.size, node.window.lag
    out = []
    for u in looks(node.trigger, times, size + lag, clock):
        window = [j for j, t in enumerate(times) if u - lag - size < t <= u - lag and selected[j]]
        for key in dict.fromkeys(keys[j] for j in window):
            group = [j for j in window if keys[j] == key]
            bounds: tuple[Any, ...] = (from_micros(u - lag - size), from_micros(u - lag))
            shown = map(_positive_zero, values[group[0]])
            out.append(((u, CLOCK, 0, places[group[0]]), (*shown, *bounds, *(call.over(group) for call in calls))))
    return sorted(out, key=lambda pair: pair[0])


def looks(trigger: EveryTime, times: Sequence[int], reach: int, clock: int) -> Iterator[int]:
    """The times at which a window can hold anything: those that some row reaches, in order."""
    found: set[int] = set()
    for t in times:
        u = trigger.first_at(t)
        while u < t + reach and (u < clock or clock == END_OF_TIME):
            found.add(u)
            u += trigger.every
    yield from sorted(found)


def _positive_zero(value: Any) -> Any:
    """Zeros of either sign are one group, shown as 0.0."""
    return value + 0.0 if isinstance(value, float) else value
