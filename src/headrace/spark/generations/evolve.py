"""A new generation of a checkpoint: made beside the old one, and valid by one write of the facts.

    handover.<g>   the cells of the old generation, for the buckets of the new one
    spark.<g>      Spark's checkpoint: its batch 0 handed over state, and says that sources are where the old ones had got to
    program.<g>    what the state is of
    headrace.json  names the generation that counts; the others are rubbish

A batch that was planned and not committed in the old generation is planned anew in the new one, and published under the same
number: what was published of it is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.errors import StateError
from headrace.spark.generations.cells import cells_of, last_committed
from headrace.spark.generations.handover import Takes, given_cells, run_handover
from headrace.spark.generations.offsets import carry_over
from headrace.spark.generations.programs import program_of, store_program, stored_program
from headrace.spark.plan import Labels, bucket_count
from headrace.spark.storage.checkpoint import (
    Checkpoint,
    another_script,
    files_of,
    identity,
    new_checkpoint,
    read_checkpoint,
)
from headrace.spark.storage.storage import Storage, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.program.written import Program
    from headrace.stages.lower import Lowered

MADE = re.compile(r"(spark|handover|program)(?:\.(\d+))?")  # by a generation


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a changed program goes on with the state of the one before; a `StateError` where it cannot."""

    takes: Callable[[Program, Program], Takes]  # of the old program and the new one


def open_generation(
    spark: SparkSession, path: str, lowered: Lowered, buckets: int | None, storage: Storage, *, named: bool,
    evolution: Evolution | None = None,
) -> Checkpoint:  # fmt: skip
    """The checkpoint in this directory: new, resumed, or of a script that has changed, if an evolution says how it goes on.

    Without `buckets` a checkpoint keeps its own. `named`: whether sources have names, because none of them is a DataFrame.
    """
    facts = read_checkpoint(path, storage)
    if facts is None:
        facts = new_checkpoint(path, lowered, buckets or bucket_count(spark), storage)
    elif facts.script != identity(lowered) or (buckets or facts.buckets) != facts.buckets:
        was = stored_program(storage, facts)
        if evolution is None or was is None or facts.ended:
            raise another_script(path) if facts.script != identity(lowered) else _other_buckets(facts)
        return evolve(spark, facts, was, lowered, buckets or facts.buckets, evolution, storage, named=named)
    sweep(storage, facts, program_of(lowered, facts.buckets))
    if stored_program(storage, facts) is None:
        store_program(storage, facts, facts.generation, program_of(lowered, facts.buckets))
    return facts


def _other_buckets(facts: Checkpoint) -> StateError:
    return StateError(f"the checkpoint {facts.path!r} has {facts.buckets} buckets", hint="leave --buckets out, to keep them")


def evolve(
    spark: SparkSession, facts: Checkpoint, was: Program, lowered: Lowered, buckets: int, evolution: Evolution, storage: Storage,
    *, named: bool,
) -> Checkpoint:  # fmt: skip
    """Make the next generation of a checkpoint. Killed at any moment, there is one that counts: the old one or the new."""
    now = program_of(lowered, buckets)
    takes = evolution.takes(was, now)
    sweep(storage, facts, was)
    last, number = last_committed(storage, facts.spark), facts.generation + 1
    kept = tuple(s for s in lowered.streams if s.name in was.sources)
    sizes = {path: facts.sizes[path] for path in files_of(kept) if path in facts.sizes}
    new = replace(facts, script=identity(lowered), buckets=buckets, generation=number, sizes=sizes)
    if last is not None:  # else there is no state yet, and nothing was read
        new.first_batch = facts.first_batch + last  # batch 0 is published by nobody
        hand_over(spark, facts, was, new, now, lowered, takes, storage, batch=last, named=named)
    store_program(storage, facts, number, now)
    new.store(storage)
    sweep(storage, new, now)
    return new


def hand_over(
    spark: SparkSession, facts: Checkpoint, was: Program, new: Checkpoint, now: Program, lowered: Lowered, takes: Takes,
    storage: Storage, *, batch: int, named: bool,
) -> None:  # fmt: skip
    """State and offsets, as they were after a batch, to a checkpoint of Spark's that is new."""
    folder = join(new.path, f"handover.{new.generation}")
    givers, takers = Labels.of(was.stages, was.buckets), Labels.of(now.stages, now.buckets)
    cells = cells_of(spark, storage, facts.spark, batch)
    given_cells(spark, cells, givers, takers, takes).write.parquet(folder)
    run_handover(spark, lowered, now, was, folder, new.spark, named=named)
    carry_over(storage, facts.spark, batch, was, new.spark, now)


def tried_before(storage: Storage, facts: Checkpoint) -> int | None:
    """The number under which the generation before may have published a batch that this one has to plan anew, if it has not."""
    planned = max((int(name) for name in storage.names(join(facts.spark, "offsets")) if name.isdigit()), default=-1)
    return facts.first_batch + planned + 1 if facts.generation > 0 and planned <= 0 else None


def sweep(storage: Storage, facts: Checkpoint, program: Program) -> None:
    """Remove what is not of the generation that counts: of one before it, or of one that was never finished.

    A stream that is gone begins anew if it comes back, so what was spooled of it goes too.
    """
    for name in storage.names(facts.path):
        made = MADE.fullmatch(name)
        if made is not None and (made[1] == "handover" or int(made[2] or 0) != facts.generation):
            storage.delete(join(facts.path, name))
    spools = join(facts.path, "spool")
    for name in storage.names(spools) if facts.generation > 0 else ():
        if name not in program.spools:
            storage.delete(join(spools, name))
