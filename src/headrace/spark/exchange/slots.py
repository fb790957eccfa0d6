"""The one wide row that leaves the operator: where the columns of every query lie in it.

Rows are of one query each, so columns of one type are shared: the first BIGINT of every query is the same column of the wide row.
A hundred queries that show the same kinds of columns are then as narrow as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.spark.types import physical

METRICS_ROW = -1
FIXED = "q INT, sign TINYINT, number BIGINT"  # whose row, + or -; and for progress, what number (in sign) and how much
_FIXED_ARROW = [pa.int32(), pa.int8(), pa.int64()]
KEY = "ts BIGINT, high BIGINT, low BIGINT, sub BINARY"  # the order key, where some sink needs it
_KEY_ARROW = [pa.int64(), pa.int64(), pa.int64(), pa.binary()]


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the columns of every query lie in the wide row."""

    queries: tuple[str, ...]
    rejected: tuple[tuple[int, str], ...]  # queries that read the rejected rows of a stream
    ordered: bool  # whether the order key goes along
    kinds: tuple[str, ...]  # the physical types of the shared columns
    places: tuple[tuple[int, ...], ...]  # per query: which of them its columns are

    @staticmethod
    def of(queries: tuple[str, ...], columns: tuple[Schema, ...], rejected: tuple[tuple[int, str], ...], ordered: bool) -> Slots:
        """Give every column of every query a place, and as few of them as will do."""
        shared: dict[tuple[str, int], int] = {}  # the n-th column of a type in every query -> which it is of the wide row
        places = []
        for schema in columns:
            kinds = [physical(f.type) for f in schema.fields]
            nth = [(kind, kinds[:i].count(kind)) for i, kind in enumerate(kinds)]
            places.append(tuple(shared.setdefault(column, len(shared)) for column in nth))
        return Slots(queries, rejected, ordered, tuple(kind for kind, _ in shared), tuple(places))

    @property
    def ddl(self) -> str:
        wide = [f"w{i} {kind}" for i, kind in enumerate(self.kinds)]
        return ", ".join([FIXED, *([KEY] if self.ordered else []), *wide])

    @property
    def lead(self) -> int:
        """How many columns stand before the shared ones."""
        return len(_FIXED_ARROW) + (len(_KEY_ARROW) if self.ordered else 0)

    @property
    def types(self) -> list[pa.DataType]:
        return _FIXED_ARROW + (_KEY_ARROW if self.ordered else []) + [arrow_type(kind) for kind in self.kinds]

    def names(self, query: int) -> tuple[str, ...]:
        """The columns of the wide row that are those of a query."""
        return tuple(f"w{place}" for place in self.places[query])
