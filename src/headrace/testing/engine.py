"""What the conformance suite drives: any engine that takes batches and gives changes by name of query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.oracle.admission import Arrival, Batch, Key
from headrace.oracle.rows import Row
from headrace.plan.query import Script

__all__ = ["Arrival", "Batch", "Change", "Engine", "EngineFactory", "Key", "Outputs"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an output: +1 adds the row at its order key (ts, hi, lo), -1 takes the same row back."""

    sign: int
    key: Key
    row: Row

    def __post_init__(self) -> None:
        if self.sign not in (1, -1):
            raise ValueError(f"the sign of a change is +1 or -1, not {self.sign}")


Outputs = dict[str, list[Change]]


class Engine(Protocol):
    """The contract.

    - Changes come in the order in which they leave; a `-` follows the `+` that it cancels and repeats its row.
    - Nothing that was passed in, given out or saved is shared with the engine afterwards.
    """

    def push(self, batch: Batch) -> Outputs:
        """Take one batch; give what leaves because of it. A batch without rows lets time pass."""

    def finish(self, now: int) -> Outputs:
        """Take the end of all input; give what still leaves."""

    def save(self) -> object:
        """Everything needed to go on from here in another engine."""

    def state_size(self) -> int:
        """How much is kept, in any unit that is the same over time, for example bytes or rows."""


# (script, number of buckets, what save() gave or None) -> an engine
EngineFactory = Callable[[Script, int, object | None], Engine]
