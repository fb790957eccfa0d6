"""What a run would do with a checkpoint, said beforehand and without Spark."""

from __future__ import annotations

from headrace.errors import StateError
from headrace.evolution.compare import compare
from headrace.plan.expr import Expr
from headrace.plan.query import Script
from headrace.plan.schema import Schema
from headrace.spark.generations.programs import no_other_buckets, stored_program, unchanged
from headrace.spark.sources.growth import grown
from headrace.spark.storage.checkpoint import Checkpoint, another_script, read_checkpoint
from headrace.spark.storage.storage import LOCAL, absolute, is_local
from headrace.stages.kept import kept_of
from headrace.stages.lower import guess_type, lower
from headrace.stages.meaning import program_of


def foreseen(script: Script, checkpoint: str, buckets: int | None = None) -> list[str]:
    """Line by line. Types that Spark found out are taken from the checkpoint, where it has the same expression."""
    path = absolute(checkpoint)
    if not is_local(path):
        raise StateError(f"{checkpoint!r} is on no local disk", hint="explain it where it lies, or copy it")
    facts = read_checkpoint(path, LOCAL)
    if facts is None:
        return [f"{checkpoint}: there is none yet, all queries begin with it"]
    was = stored_program(LOCAL, facts)
    if was is None:
        raise another_script(path)
    known = {e.sql: i.type for stage in was.stages for i in stage.inputs for e in i.exprs}

    def type_of(expr: Expr, schema: Schema) -> str:
        return known.get(expr.sql) or guess_type(expr, schema)

    count = buckets or facts.buckets
    told = [] if count == facts.buckets else [f"{facts.buckets} buckets become {count}: keys take their state along"]
    refusal = no_other_buckets(facts, was, count)
    if refusal is not None:
        told = [f"refused: {refusal.message}"]
    if unchanged(facts, was, script, lambda asked, kept: lower(asked, type_of, kept)) is not None:
        return [*_of_the_end(facts, script, changed=bool(told)), *(told or ["nothing changes: all queries go on"])]
    lowered = lower(script, type_of, kept_of(was, script))
    return [*_of_the_end(facts, script, changed=True), *told, *compare(was, program_of(lowered)).lines()]


def _of_the_end(facts: Checkpoint, script: Script, *, changed: bool) -> list[str]:
    """What becomes of what only the end released."""
    if not facts.ended:
        return []
    if not facts.ending:
        return ["the run has ended, with a version of Headrace that kept nothing to go on from: it is refused"]
    if not changed and not grown(facts, script.streams):
        return ["the run has ended, and its sources have not grown: there is nothing to do, but with --follow"]
    told = "the run has ended: what only its end released is taken back, and it goes on"
    final = [q.name for q in script.queries if not q.emit.early]
    return [f"{told}; if any of that was final ({', '.join(final)}), it is refused" if final else told]
