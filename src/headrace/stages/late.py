"""`late(s)` as a stage: rows that came behind the frontier of their stream, or behind what a query had taken of it by K-slack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.plan.expr import Expr
from headrace.plan.nodes import base_streams
from headrace.plan.query import Emit
from headrace.plan.stream import longest_delay
from headrace.program.outputs import Output
from headrace.program.stage import Door
from headrace.stages.flatten import FALSE, TRUE

if TYPE_CHECKING:
    from headrace.plan.nodes import Late
    from headrace.plan.query import Query
    from headrace.stages.patterns import MakeBuilder

LATE = "late"  # apart from stages over the same streams that have admitted rows


def lower_late(query: Query, node: Late, make: MakeBuilder) -> None:
    """Put a query over `late(s)` into its stage. Streams taken together with s say how far they are; their rows stay away."""
    streams = base_streams(node)
    builder = make(streams, None, LATE)
    builder.doors = tuple(Door(tuple(map(streams.index, some)), longest_delay(some)) for some in node.together)
    masks = () if len(streams) == 1 else builder.masks(((TRUE, *(FALSE for _ in streams[1:])),))
    builder.want(masks)
    columns = []
    for column in node.stream.schema.fields:
        nothing = Expr.of(f"CAST(NULL AS {column.type})")
        columns.append((column.name, builder.input((Expr.column(column.name), *(nothing for _ in streams[1:])))))
    builder.late.append(Output(query.name, Emit.CHANGES, tuple(columns), masks=masks))
