"""Scripts whose streams have wider columns: INT becomes BIGINT, FLOAT becomes DOUBLE, a DECIMAL gets more digits."""

from __future__ import annotations

from dataclasses import replace

from headrace.oracle.admission import Batch
from headrace.oracle.rows import normal_rows
from headrace.plan.joins import Join
from headrace.plan.nodes import Late, Merge, Node, Rejected, Scan, children
from headrace.plan.patterns import Pattern
from headrace.plan.query import Script
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import Stream
from headrace.plan.types import base_type, decimal_parts

WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE"}


def widened(script: Script) -> Script:
    """The same queries over wider columns."""
    queries = tuple(replace(q, node=_over(q.node)) for q in script.queries)
    return Script(queries, tuple(map(_wide, script.streams)))


def as_narrow(script: Script, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Rows with values as narrow columns have them: they are the same in wide ones then."""
    schemas = {s.rows_of: s.schema for q in script.queries for s in _streams(q.node)} | {
        s.rows_of: s.schema for s in script.streams
    }
    out = []
    for batch in batches:
        rows = {}
        for name, arrivals in batch.rows.items():
            values = normal_rows(schemas[name], [a.values for a in arrivals]) if name in schemas else [a.values for a in arrivals]
            rows[name] = [replace(a, values=v) for a, v in zip(arrivals, values, strict=True)]
        out.append(Batch(batch.now, rows))
    return tuple(out)


def _streams(node: Node) -> list[Stream]:
    own = [node.stream] if isinstance(node, Scan | Late | Rejected) else []
    return own + [s for child in children(node) for s in _streams(child)]


def _wide(stream: Stream) -> Stream:
    return replace(stream, schema=Schema(tuple(Field(f.name, _type(f.type)) for f in stream.schema.fields)))


def _type(kind: str) -> str:
    if base_type(kind) == "DECIMAL":
        digits, scale = decimal_parts(kind)
        return f"DECIMAL({min(digits + 4, 38)}, {scale})"
    return WIDER.get(kind, kind)


def _over(node: Node) -> Node:
    match node:
        case Scan(stream=stream) | Late(stream=stream) | Rejected(stream=stream):
            return type(node)(_wide(stream))
        case Merge(inputs=inputs):
            return Merge(tuple(map(_over, inputs)))
        case Join(left=left, right=right):
            return replace(node, left=_over(left), right=_over(right))
        case Pattern(places=places):
            return replace(node, places=tuple(replace(p, input=_over(p.input)) for p in places))
    return replace(node, input=_over(node.input))
