"""What every source is turned into first: its rows, where they stand, and which of them cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.spark.sources.rejects import Reason

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class Rows:
    """The declared columns of a source, and what is known of every row beside them."""

    frame: DataFrame
    places: str  # how the place of a row is known: rows: in its file; lines: by its block; given; arrival
    reasons: tuple[Reason, ...] = ()  # to reject a row before anything is computed from it
    text: Column | None = None  # what the row said; None: it never was text
    line: Column | None = None
    file: Column | None = None  # None: not known, or told by a row of its own
