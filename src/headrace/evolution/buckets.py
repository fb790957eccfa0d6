"""Which old buckets a new one takes over from, where their number changes, and which table of a stage tells where a row lies."""

from __future__ import annotations

from math import gcd
from typing import Any

from headrace.program.stage import ByHash, Stage


def givers(bucket: int, now: int, was: int) -> range:
    """The old buckets that rows of a new one can lie in: both are a hash, by a remainder."""
    step = gcd(now, was)
    return range(bucket % step, was, step)


def telling(stage: Stage[Any]) -> frozenset[int]:
    """The tables of which a key says what its rows are routed by: those over all that the route is over."""
    if not isinstance(stage.route, ByHash):
        return frozenset()
    route = set(stage.route.inputs)
    return frozenset(i for i, t in enumerate(stage.tables) if not t.derived and route <= set(t.inputs))


def noted(stage: Stage[Any]) -> frozenset[int]:
    """Those of them whose keys are not the route itself, so that it is noted beside them."""
    assert not telling(stage) or isinstance(stage.route, ByHash)
    return frozenset(i for i in telling(stage) if stage.tables[i].inputs != getattr(stage.route, "inputs", ()))
