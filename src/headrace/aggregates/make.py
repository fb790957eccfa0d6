"""The state for a tally, chosen by its kind and by how its values lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.aggregates.queue import ListTally, QueueTally
from headrace.aggregates.ranks import RanksTally
from headrace.aggregates.sums import DecimalSumTally, DoubleSumTally, IntegerSumTally, MomentsTally
from headrace.aggregates.tally import CountTally, DistinctTally
from headrace.plan.aggregates import TallyKind
from headrace.plan.aggregates.sums import average
from headrace.plan.types import decimal_parts
from headrace.program.stage import VectorKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.aggregates.tally import TallyState
    from headrace.program.aggregates import Tally
    from headrace.program.stage import Stage
    from headrace.state.rows import Layout


def make_tally(stage: Stage[Any], spec: Tally, layout: Layout, tables: Any, parts: Collection[str]) -> TallyState:
    """An empty one; `parts` are those that anybody reads of it."""
    vector = stage.vectors[spec.vector]
    values = None if vector.table is None else tables[vector.table]
    match spec.kind:
        case TallyKind.COUNT:
            return CountTally(spec, layout)
        case TallyKind.DISTINCT:
            return DistinctTally(spec, layout)
        case TallyKind.QUEUE:
            return QueueTally(spec, layout, values)
        case TallyKind.LIST:
            return ListTally(spec, layout, values)
        case TallyKind.RANKS:
            return RanksTally(spec, layout, values, parts)
        case TallyKind.MOMENTS:
            return MomentsTally(spec, layout)
    match vector.kind:
        case VectorKind.DOUBLE:
            return DoubleSumTally(spec, layout, "mean" in parts)
        case VectorKind.INT:
            return IntegerSumTally(spec, layout)
        case VectorKind.DECIMAL:
            assert vector.input is not None
            kind = stage.inputs[vector.input].type
            return DecimalSumTally(spec, layout, decimal_parts(average(kind))[1] - decimal_parts(kind)[1])
    raise AssertionError(f"no sums over {vector.kind}")
