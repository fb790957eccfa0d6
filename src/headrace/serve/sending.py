"""How an event of a stream becomes records of topics: what the stages there read of it, and the partition of its entity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.changes.values import column_of
from headrace.kernels.keys.hashing import hash_columns
from headrace.log.log import At
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.scalars.row.compiled import compile_row
from headrace.serve.deployment import Deployment
from headrace.serve.records import Event, Posted, encode
from headrace.serve.values import wire
from headrace.state.tables import ROUTE_BITS

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """An event on its way to one topic."""

    at: At
    inputs: list[list[Any] | None]

    def record(self, front: int, place: int, event: Posted) -> bytes:
        assert event.ts is not None
        made = Event(event.stream, front, place, event.now, event.ts, event.behind, event.stamp, self.inputs)
        return encode(made)


@dataclass(frozen=True, slots=True)
class Sending:
    """One topic."""

    topic: str
    partitions: int
    route: Callable[[Row], int]
    inputs: tuple[Callable[[Row], list[Any] | None], ...]

    def part(self, values: Row) -> Part:
        """Fails where an expression does: then the event is rejected."""
        partition = self.route(values) % self.partitions if self.partitions > 1 else 0
        return Part(At(self.topic, partition), [of(values) for of in self.inputs])


def sending_of(deployment: Deployment, stream: int) -> tuple[Sending, ...]:
    """The topics that events of a stream go to."""
    schema, out = deployment.streams[stream].schema, []
    for t in deployment.topics_for(stream):
        inputs = tuple(_inputs(deployment, r.stage, r.source, schema) for r in deployment.readers(t, stream))
        partitions = deployment.topics[t].partitions(deployment.partitions)
        out.append(Sending(deployment.log_topic(t), partitions, _route(deployment.route(t, stream), schema), inputs))
    return tuple(out)


def _inputs(deployment: Deployment, stage: int, source: int, schema: Schema) -> Callable[[Row], list[Any] | None]:
    """What a stage reads of an event; None where no query of it wants the event."""
    spec = deployment.stage(stage)
    compute = compile_row([i.exprs[source] for i in spec.inputs], schema)
    pack, keep = wire([i.type for i in spec.inputs])[0], spec.keep

    def of(values: Row) -> list[Any] | None:
        found = compute(values)
        if keep and not any(all(found[m] is True for m in masks) for masks in keep):
            return None
        return list(pack(found))

    return of


def _route(route: tuple[tuple[Expr, str], ...] | None, schema: Schema) -> Callable[[Row], int]:
    """As rows are routed everywhere: by the hash of their keys."""
    if route is None:
        return lambda values: 0
    compute, kinds = compile_row([e for e, _ in route], schema), [arrow_type(kind) for _, kind in route]

    def of(values: Row) -> int:
        found = compute(values)
        arrays = [column_of(kind, [v]) for kind, v in zip(kinds, found, strict=True)]
        return int(hash_columns(arrays, 1)[0][0] >> ROUTE_BITS) & 0xFFFFFFFF

    return of
