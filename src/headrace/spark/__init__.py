"""The only folder that knows Spark: sources, the exchange, state, sinks, and the life of a query."""

from __future__ import annotations

from headrace.spark.frames import start, to_df

__all__ = ["start", "to_df"]
