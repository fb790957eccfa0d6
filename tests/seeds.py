"""How many cases a property checks, and from which seed on: always the same where CI runs it, others in the longer profiles."""

from __future__ import annotations

import os
from random import Random
from typing import Any

from hypothesis import settings

from headrace.testing.conformance import Run, check_query
from headrace.testing.local import local_engine

LONG = settings.default.max_examples > 100
FIRST = int(os.environ.get("HEADRACE_SEED", Random().randrange(2**32) if LONG else 0))


def examples(few: int, share: int) -> int:
    """`few` in the profile `fast`, else a share of what the profile says."""
    return settings.default.max_examples // share if LONG else few


def agrees(run: Run, seed: int, *buckets: tuple[int, ...], **asked: Any) -> None:
    """The runtime agrees with what the oracle has said, with numbers of buckets that the seed chooses."""
    own = buckets[seed % len(buckets)]
    check_query(run.script, run.batches, local_engine, buckets=own, seed=seed, known=run.expected, **asked)
