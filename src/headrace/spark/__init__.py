"""The only folder that knows Spark: sources, the exchange, state, sinks, and the life of a query.

`start` and `to_df` are loaded at first use: Spark's Python workers import from here, and need neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.spark.dataframes import start, to_df

__all__ = ["start", "to_df"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headrace.spark import dataframes as frames

    return getattr(frames, name)
