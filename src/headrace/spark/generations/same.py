"""Which stages go on as they were: those that are the same, whichever others come, go or change their places."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.errors import StateError

if TYPE_CHECKING:
    from headrace.exchange.host import At
    from headrace.program.written import Program
    from headrace.spark.generations.handover import Takes


def same_stages(was: Program, now: Program) -> Takes:
    """A stage takes over from the one that is equal to it, bucket by bucket, at whichever level either is."""
    if was.buckets != now.buckets:
        raise StateError(f"the state is in {was.buckets} buckets, and cannot be cut into {now.buckets}")
    old = {replace(stage, level=1): number for number, stage in enumerate(was.stages)}

    def takes(stage: int, bucket: int) -> list[At]:
        found = old.get(replace(now.stages[stage], level=1))
        return [] if found is None else [(found, bucket)]

    return takes
