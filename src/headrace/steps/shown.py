"""Rows as changes of a query: their own columns, which they carry along, and what a step puts behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.changes.changes import Changes
from headrace.changes.rows import batch_of, take

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.program.outputs import Output
    from headrace.program.stage import Stage
    from headrace.state.open_rows import OpenRows
    from headrace.steps.step import Results


def carried(stage: Stage[Any]) -> tuple[int, ...]:
    """The inputs that some output shows as they came."""
    return tuple(sorted({i for o in stage.program.outputs for _, i in o.columns}))


def wanted(flags: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Those of these rows that are flagged; None: all."""
    return rows if flags is None else rows[flags[rows]]


def show(
    output: Output, rows: OpenRows, which: np.ndarray, inputs: tuple[int, ...], metrics: list[pa.Array], sign: int
) -> Results:
    """Some rows as changes of a query: their own columns, and these behind them; `inputs` are those that rows carry along."""
    if len(which) == 0:
        return []
    every = len(which) == len(rows)
    carry = rows.carry if every else take(rows.carry, which)
    columns = [*(carry.column(inputs.index(i)) for _, i in output.columns), *metrics]
    names = [*(name for name, _ in output.columns), *(m.name for m in output.metrics)]
    keys = rows.rows.keys if every else rows.rows.keys.take(which)
    return [(output.query, Changes.of(sign, keys, batch_of(columns, names, len(which))))]
