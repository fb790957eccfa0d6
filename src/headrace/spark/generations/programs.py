"""The program of a generation: what state is of, kept beside it, so that the next one knows whom it takes over from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.errors import StateError
from headrace.evolution.buckets import noted
from headrace.plan.query import Script
from headrace.program.script import ScriptProgram
from headrace.program.written import read, write
from headrace.spark.exchange.control import CONTROL_SOURCE, TICK_SOURCE
from headrace.spark.storage.checkpoint import Checkpoint, identity
from headrace.spark.storage.storage import Storage, join
from headrace.stages.kept import Kept, as_before, kept_of
from headrace.stages.lower import Lowered
from headrace.stages.meaning import program_of as script_program

Make = Callable[["Script", Kept], "Lowered"]


def program_of(lowered: Lowered, buckets: int) -> ScriptProgram:
    """What state of a script depends on."""
    streams = tuple(s.name for s in lowered.streams if not s.static)
    ticks = any(s.idle is not None or s.end_after is not None for s in lowered.streams)
    sources = (*streams, CONTROL_SOURCE, *((TICK_SOURCE,) if ticks else ()))
    spools = tuple(dict.fromkeys(s.rows_of for s in lowered.streams))
    return replace(script_program(lowered), buckets=buckets, noted=True, sources=sources, spools=spools)


def unchanged(facts: Checkpoint, was: ScriptProgram | None, script: Script, make: Make) -> Lowered | None:
    """The script as it was, if all that is new is what queries are called and where they stand."""
    asked, called = (script, {}) if was is None else as_before(was, script)
    lowered = make(asked, Kept() if was is None else kept_of(was, asked))
    return replace(lowered, called=called) if facts.script == identity(lowered) else None


def no_other_buckets(facts: Checkpoint, was: ScriptProgram, buckets: int) -> StateError | None:
    """Why state cannot go to so many buckets, if it cannot."""
    if buckets == facts.buckets or was.noted or not any(map(noted, was.stages)):
        return None
    return StateError(
        f"the checkpoint {facts.path!r} does not say of every key in which bucket it belongs: an earlier version began it",
        hint=f"leave --buckets out, to keep the {facts.buckets} that it has",
    )


def program_file(facts: Checkpoint, generation: int) -> str:
    """Where it lies."""
    return join(facts.path, f"program.{generation}")


def store_program(storage: Storage, facts: Checkpoint, generation: int, program: ScriptProgram) -> None:
    """Keep it, in the place of one that nobody has gone on with."""
    path = program_file(facts, generation)
    storage.delete(path)
    storage.add(path, write(program).encode() + b"\n")


def stored_program(storage: Storage, facts: Checkpoint) -> ScriptProgram | None:
    """That of the generation that counts; None if a version wrote it that kept none."""
    text = storage.read(program_file(facts, facts.generation))
    return None if text is None else read(text.decode())
