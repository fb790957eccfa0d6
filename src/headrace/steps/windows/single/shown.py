"""Result columns of single events: from words to Python values of Spark SQL's types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.kernels.single import record as r
from headrace.plan.arrow import arrow_type
from headrace.plan.types import decimal_parts
from headrace.program.aggregates import Metric, vectors_of
from headrace.program.stage import VectorKind
from headrace.state.tables import ValueTable
from headrace.steps.windows.single.inputs import LOW, WIDE

if TYPE_CHECKING:
    from headrace.program.outputs import Output
    from headrace.program.windows import WindowStage
    from headrace.state.tables import Tables

Read = Callable[[list[int], list[float], int], Any]  # words as integers and as doubles, and where a value begins


@dataclass(frozen=True, slots=True)
class Shown:
    """An output: which of the values that rows carry it shows, and how its metrics are read."""

    query: str
    carried: tuple[int, ...]
    metrics: tuple[Read, ...]

    @staticmethod
    def of(stage: WindowStage, output: Output, carried: tuple[int, ...], tables: Tables) -> Shown:
        picks = tuple(carried.index(i) for _, i in output.columns)
        return Shown(output.query, picks, tuple(_reader(stage, tables, m) for m in output.metrics))

    def row(self, own: tuple[Any, ...], words: list[int], floats: list[float], at: int) -> tuple[Any, ...]:
        """A row: what it carries, and the metrics that begin at a word."""
        values = [own[i] for i in self.carried]
        for read in self.metrics:
            values.append(read(words, floats, at + 1) if words[at] else None)
            at += r.SHOWN
        return tuple(values)


def _reader(stage: WindowStage, tables: Tables, metric: Metric) -> Read:
    tally = stage.program.tallies[metric.tally]
    vector = stage.vectors[vectors_of(tally)[-1]]
    if tally.kind.shows and vector.kind is VectorKind.NUMBERED:
        assert vector.table is not None
        table = tables[vector.table]
        assert isinstance(table, ValueTable)
        return lambda words, floats, at: table.value(words[at])
    kind = arrow_type(metric.type)
    if pa.types.is_decimal(kind):
        scale = -decimal_parts(metric.type)[1]
        return lambda words, floats, at: Decimal(words[at + 1] << 64 | words[at] & LOW).scaleb(scale, WIDE)
    if pa.types.is_floating(kind):
        return lambda words, floats, at: floats[at]
    if pa.types.is_boolean(kind):
        return lambda words, floats, at: words[at] != 0
    return lambda words, floats, at: words[at]
