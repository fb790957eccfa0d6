"""A new generation of a checkpoint: made beside the old one, and valid by one write of the facts.

    backfill.<g>   what queries that are filled have made of the sources
    handover.<g>   the cells of the old generation, and of that, for the buckets of the new one
    spark.<g>      Spark's checkpoint: its batch 0 handed over state, and says that sources are where the old ones had got to
    program.<g>    what the state is of
    headrace.json  names the generation that counts; the others are rubbish

A batch that was planned and not committed in the old generation is planned anew in the new one, and published under the same
number: what was published of it is replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.evolution.compare import compare
from headrace.spark.generations.backfill import Reading, plan_reading, read_again
from headrace.spark.generations.cells import cells_of, last_committed
from headrace.spark.generations.handover import Takes, given_cells, run_handover
from headrace.spark.generations.offsets import carry_over
from headrace.spark.generations.programs import Make, no_other_buckets, program_of, store_program, stored_program, unchanged
from headrace.spark.plan import Labels
from headrace.spark.sources.growth import grown
from headrace.spark.storage.checkpoint import (
    Checkpoint,
    another_script,
    files_of,
    identity,
    new_checkpoint,
    read_checkpoint,
)
from headrace.spark.storage.storage import Storage, join
from headrace.stages.alone import part_of, stages_of
from headrace.stages.kept import Kept, kept_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.evolution.compare import Comparison
    from headrace.exchange.host import At
    from headrace.plan.query import Script
    from headrace.program.script import ScriptProgram
    from headrace.stages.lower import Lowered

MADE = re.compile(r"(spark|backfill|handover|program)(?:\.(\d+))?")  # by a generation


@dataclass(frozen=True, slots=True)
class Planned:
    """A checkpoint as it is, the script as it goes on with it, and what changes for that; nothing has changed yet."""

    facts: Checkpoint
    lowered: Lowered
    buckets: int
    was: ScriptProgram | None = None
    comparison: Comparison | None = None  # None: nothing changes
    reading: Reading | None = None  # for queries that are filled


def plan_generation(
    path: str, script: Script, make: Make, buckets: int | None, storage: Storage, default: int,
    from_now: frozenset[str] = frozenset(), backfill: frozenset[str] = frozenset(), *, follow: bool,
) -> Planned:  # fmt: skip
    """The checkpoint in this directory: new, resumed, or of a script that has changed; a `StateError` where it cannot go on.

    Without `buckets` a checkpoint keeps its own, and a new one gets so many by default. Queries `from_now` begin with nothing,
    and for those to `backfill` the sources are read again, if they cannot begin complete.
    """
    facts = read_checkpoint(path, storage)
    if facts is None:
        lowered = make(script, Kept())
        return Planned(new_checkpoint(path, lowered, buckets or default, storage), lowered, buckets or default)
    was, count = stored_program(storage, facts), buckets or facts.buckets
    again = unchanged(facts, was, script, make)
    nothing_to_do = facts.ended and not follow and not grown(facts, script.streams)
    if again is not None and (count == facts.buckets or nothing_to_do):
        return Planned(facts, again, facts.buckets)
    if was is None:
        raise another_script(path)
    refusal = no_other_buckets(facts, was, count)
    if refusal is not None:
        raise refusal
    lowered, comparison = _compared(was, script, make, count, facts.generation + 1, from_now, backfill)
    reading = None
    if comparison.filled:
        folder = join(facts.path, f"backfill.{facts.generation + 1}")
        reading = plan_reading(part_of(lowered, comparison.filled), facts, storage, folder)
    return Planned(facts, lowered, count, was, comparison, reading)


def _compared(
    was: ScriptProgram, script: Script, make: Make, buckets: int, generation: int, from_now: frozenset[str],
    backfill: frozenset[str],
) -> tuple[Lowered, Comparison]:  # fmt: skip
    """The script beside the old one; refused if a query cannot go on, or not begin complete."""
    lowered = make(script, kept_of(was, script))
    comparison = compare(was, program_of(lowered, buckets))
    filled = backfill & comparison.lacking.keys()
    apart = (from_now & comparison.lacking.keys()) - filled
    if apart or filled:
        alone = dict.fromkeys(apart, f"from {generation}") | dict.fromkeys(filled, f"filled {generation}")
        lowered = make(script, kept_of(was, script, alone))
        comparison = compare(was, program_of(lowered, buckets), stages_of(lowered, filled))
    comparison.refuse(apart)
    return lowered, comparison


def make_generation(spark: SparkSession, planned: Planned, storage: Storage, *, named: bool) -> Checkpoint:
    """What was planned. Killed at any moment, there is one generation that counts: the old one or the new.

    `named`: whether sources have names, because none of them is a DataFrame.
    """
    facts, now = planned.facts, program_of(planned.lowered, planned.buckets)
    if planned.was is None or planned.comparison is None:
        sweep(storage, facts, now)
        if stored_program(storage, facts) is None:
            store_program(storage, facts, facts.generation, now)
        return facts
    now = replace(now, noted=planned.was.noted)  # what an earlier version has written stays as it is
    sweep(storage, facts, planned.was)
    last, number = last_committed(storage, facts.spark), facts.generation + 1
    kept = tuple(s for s in planned.lowered.streams if s.name in planned.was.sources)
    sizes = {path: facts.sizes[path] for path in files_of(kept) if path in facts.sizes}
    new = replace(facts, script=identity(planned.lowered), buckets=planned.buckets, generation=number, sizes=sizes)
    if last is not None:  # else there is no state yet, and nothing was read
        new.first_batch = facts.first_batch + last  # batch 0 is published by nobody
        try:
            hand_over(spark, planned, new, now, storage, batch=last, named=named)
        except Exception:
            sweep(storage, facts, planned.was)  # what fails changes nothing
            raise
    store_program(storage, facts, number, now)
    new.store(storage)
    sweep(storage, new, now)
    return new


def hand_over(
    spark: SparkSession, planned: Planned, new: Checkpoint, now: ScriptProgram, storage: Storage, *, batch: int, named: bool
) -> None:
    """State and offsets, as they were after a batch, to a checkpoint of Spark's that is new."""
    assert planned.was is not None
    assert planned.comparison is not None
    facts, was, folder = planned.facts, planned.was, join(new.path, f"handover.{new.generation}")
    comparison, reading = planned.comparison, planned.reading
    cells = cells_of(spark, storage, facts.spark, batch)
    takers, takes = Labels.of(now.stages, now.buckets), _takes(comparison, was, now)
    given = given_cells(spark, cells, Labels.of(was.stages, was.buckets).places(), takers, takes)
    if reading is not None and reading.passes:
        read_again(spark, reading, now.buckets, storage)
        cells = cells_of(spark, storage, reading.folder, reading.passes - 1)
        filled = Labels.of(reading.part.stages, now.buckets).places(len(was.stages))
        given = given.unionByName(given_cells(spark, cells, filled, takers, takes))
    given.write.parquet(folder)
    stages = (*was.stages, *(now.stages[i] for i in comparison.filled))
    run_handover(spark, planned.lowered, now, (stages, comparison), folder, new.spark, named=named)
    carry_over(storage, facts.spark, batch, was, new.spark, now)


def _takes(comparison: Comparison, was: ScriptProgram, now: ScriptProgram) -> Takes:
    """A stage takes over from the one that means the same, a bucket from all in which its rows can lie.

    A new stage learns how far its sources are.
    """

    def takes(stage: int, bucket: int) -> list[At]:
        giver = comparison.takes[stage]
        if giver is not None:
            return [(giver, old) for old in comparison.givers(stage, now.stages[stage], bucket)]
        sources = {s.name for s in now.stages[stage].sources}
        return [(i, 0) for i, old in enumerate(was.stages) if sources & {s.name for s in old.sources}]

    return takes


def tried_before(storage: Storage, facts: Checkpoint) -> int | None:
    """The number under which a batch may have been published that is now another one, if Spark has not committed it.

    The generation before may have planned it; or a run that said the end, which does not count since that run was killed.
    """
    planned = max((int(name) for name in storage.names(join(facts.spark, "offsets")) if name.isdigit()), default=-1)
    if facts.generation > 0 and planned <= 0:
        return facts.first_batch + planned + 1
    committed = last_committed(storage, facts.spark)
    said = facts.ending or facts.goes_on
    return facts.first_batch + planned if said and planned > (-1 if committed is None else committed) else None


def sweep(storage: Storage, facts: Checkpoint, program: ScriptProgram) -> None:
    """Remove what is not of the generation that counts: of one before it, or of one that was never finished.

    A stream that is gone begins anew if it comes back, so what was spooled of it goes too.
    """
    for name in storage.names(facts.path):
        made = MADE.fullmatch(name)
        if made is not None and (made[1] in ("handover", "backfill") or int(made[2] or 0) != facts.generation):
            storage.delete(join(facts.path, name))
    spools = join(facts.path, "spool")
    for name in storage.names(spools) if facts.generation > 0 else ():
        if name not in program.spools:
            storage.delete(join(spools, name))
