"""A stream read by arrival: every row at the time at which it came, in the order in which it came (t_sys of 002, 2.1)."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan
from headrace.plan.stream import Stream

SUFFIX = "__by_arrival"


def by_arrival(node: Node) -> Node:
    """The same rows in system time. They come from base streams: what a window has made comes when it is known, not at a time."""
    match node:
        case Scan(stream=stream) if stream.timestamp is None:
            return node
        case Scan(stream=stream):
            return Scan(replace(stream, name=stream.name + SUFFIX, timestamp=None, delay=0, ahead=None, reads=stream.name))
        case Filter() | Project():
            return replace(node, input=by_arrival(node.input))
        case Merge(inputs=inputs):
            return Merge(tuple(map(by_arrival, inputs)))
    hint = "use SYSTEM in the inner query, or measure in the time of the results"
    raise QueryError("system time is that of rows as they come from a source, and these are results of a window", hint=hint)


def application_time(stream: Stream) -> Expr:
    """The time that rows of a stream say they have, in microseconds, as an expression of them."""
    if stream.timestamp is None:
        hint = "say TIMESTAMP BY, or measure both size and slide with SYSTEM"
        raise QueryError(f"stream {stream.name!r} has no time but that of arrival", hint=hint)
    kind = stream.timestamp.type_in(stream.schema)
    name = stream.timestamp.as_column
    kind = stream.schema.field(name).type if name is not None and stream.schema.has(name) else kind
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return Expr.of(f"CAST({stream.timestamp} AS BIGINT) * CAST({stream.timestamp_unit} AS BIGINT)")
    return Expr.of(f"UNIX_MICROS(CAST({stream.timestamp} AS TIMESTAMP))")
