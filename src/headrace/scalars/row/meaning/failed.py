"""What Spark fails at, for one row."""

from __future__ import annotations


class Failed(Exception):
    """An expression has no value for this row: the reason, without the name of the expression."""
