"""What a Python worker of Spark does once in its life."""

from __future__ import annotations

import gc

_settled = False


def settle() -> None:
    """Spark collects garbage after every task. All that is loaded stays: looking at it would take tens of milliseconds a task."""
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
