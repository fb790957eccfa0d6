"""Final rows that lie together outside memory: written once, read as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.state.codec import decode, encode


@dataclass(frozen=True, slots=True)
class Chunk:
    """Their times, and their columns."""

    ts: np.ndarray
    columns: list[np.ndarray]

    def write(self) -> bytes:
        arrays: dict[str, Any] = {"ts": self.ts, **{f"c{i}": c for i, c in enumerate(self.columns)}}
        return encode(arrays, compress=True)

    @staticmethod
    def read(data: bytes, what: str) -> Chunk:
        """What was written; `what` says what it is, where it cannot be read."""
        state = decode(data, what)
        return Chunk(state["ts"], [state[f"c{i}"] for i in range(len(state) - 1)])
