"""Rows that pass as they are, as data."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.program.outputs import Output


@dataclass(frozen=True, slots=True)
class RowsProgram:
    """Rows pass: nothing is kept but what has to wait."""

    outputs: tuple[Output, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(o.query for o in self.outputs)
