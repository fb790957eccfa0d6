"""A script as it is served: its topics, who reads what of an event there, and what is left to do with the rows of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.query import Script
from headrace.plan.stream import Stream
from headrace.program.stage import Stage
from headrace.serve.topics import Topic, topics_of
from headrace.stages.lower import Finish, Lowered, lower

JOURNAL, REPLIES = "journal", "replies"
PARTITIONS = 8  # of a topic: all the units that can ever share it


@dataclass(frozen=True, slots=True)
class Reader:
    """A stage that reads a stream, and as which of its sources."""

    stage: int
    source: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """What fronts and units have to agree on."""

    name: str
    lowered: Lowered
    topics: tuple[Topic, ...]
    partitions: int
    fronts: int

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Those that are posted to, by number."""
        return self.lowered.streams

    def stage(self, number: int) -> Stage[Any]:
        return self.lowered.stages[number]

    def readers(self, topic: int, stream: int) -> tuple[Reader, ...]:
        """Who reads a stream in a topic."""
        name = self.streams[stream].name
        stages = self.topics[topic].stages
        return tuple(Reader(s, i) for s in stages for i, source in enumerate(self.stage(s).sources) if source.name == name)

    def topics_for(self, stream: int) -> tuple[int, ...]:
        """The topics that events of a stream go to."""
        return tuple(t for t, topic in enumerate(self.topics) if self.streams[stream].name in topic.streams)

    def log_topic(self, topic: int) -> str:
        """What a topic is called in the log."""
        return f"{self.name}.{self.topics[topic].name}"

    @property
    def journal(self) -> str:
        return f"{self.name}.{JOURNAL}"

    @property
    def replies(self) -> str:
        return f"{self.name}.{REPLIES}"

    def log_topics(self) -> dict[str, int]:
        """All topics of the log, with their partitions."""
        events = {self.log_topic(t): topic.partitions(self.partitions) for t, topic in enumerate(self.topics)}
        return {self.journal: self.fronts, self.replies: self.fronts, **events}

    def route(self, topic: int, stream: int) -> tuple[tuple[Expr, str], ...] | None:
        """What events of a stream are parted by, with the types that all streams of the topic have there; None: by nothing."""
        spec = self.topics[topic]
        if not spec.by:
            return None
        keyed = (self.stage(s) for s in spec.stages if _keys_of(self.stage(s)) is not None)
        stage = next(s for s in keyed if set(spec.by) <= set((_keys_of(s) or {}).keys()))
        keys, source = _keys_of(stage) or {}, next(i for i, s in enumerate(stage.sources) if s.name == self.streams[stream].name)
        inputs = [stage.inputs[keys[by]] for by in spec.by]
        return tuple((spec_.exprs[source], spec_.type) for spec_ in inputs)

    def finishes(self) -> tuple[Finish, ...]:
        """By the number of the query."""
        return self.lowered.finishes


def _keys_of(stage: Stage[Any]) -> dict[tuple[str, ...], int] | None:
    """The keys of a route, as topics name them, with their inputs."""
    inputs = getattr(stage.route, "inputs", None)
    return None if inputs is None else {tuple(e.sql for e in stage.inputs[i].exprs): i for i in inputs}


def deploy(
    script: Script, name: str = "headrace", partitions: int = PARTITIONS, fronts: int = 1,
    chosen: Mapping[str, Iterable[str]] | None = None,
) -> Deployment:  # fmt: skip
    """What serving a script takes; refused where it cannot be served."""
    for stream in script.streams:
        _refuse_stream(stream)
    lowered = lower(script)
    if not lowered.stages:
        raise QueryError("there is nothing to answer: the script has no query over a stream", hint="add a SELECT or EVENT SEQ")
    for stage in lowered.stages:
        _refuse_stage(stage, lowered)
    for finish in lowered.finishes:
        if finish.rejected is not None:
            message = f"query {finish.query.name!r} reads rejected({finish.rejected}): who posts an event is told at once"
            raise QueryError(message, hint="leave the query out of what is served")
    several = tuple(_of_fronts(s, fronts) for s in lowered.stages)
    return Deployment(name, replace(lowered, stages=several), topics_of(several, chosen), partitions, fronts)


def _of_fronts(stage: Stage[Any], fronts: int) -> Stage[Any]:
    """Every front is a partition of each source."""
    if fronts == 1:
        return stage
    sources = tuple(replace(s, disorder=replace(s.disorder, single_partition=False)) for s in stage.sources)
    return replace(stage, sources=sources)


def _refuse_stream(stream: Stream) -> None:
    for clause, value in (("IDLE", stream.idle), ("END AFTER", stream.end_after)):
        if value is not None:
            message = f"{clause} of stream {stream.name!r} would move time by the clock, and answers depend on events alone"
            raise QueryError(message, hint=f"leave {clause} out of what is served")
    if stream.static:
        message = f"table {stream.name!r} cannot be served: rows of tables come with files, and only events are posted"
        raise QueryError(message, hint="post the rows of the table as events of a stream, and join with [UNBOUNDED]")


def _refuse_stage(stage: Stage[Any], lowered: Lowered) -> None:
    """What no single event can be answered with."""
    feeds = [s.name for s in stage.sources if s.follows]
    if feeds:
        asked = ", ".join(map(repr, stage.queries))
        message = f"{asked} reads the results of another step that is parted by other keys, and chains are not served yet"
        raise QueryError(message, hint="group both steps by the same keys, or run the script with headrace run")
    for report in getattr(stage.program, "reports", ()):
        if not report.by_rows:
            message = f"query {report.query!r} reports by the clock alone, and no event is answered with that"
            raise QueryError(message, hint="use [RANGE ..], which answers every event, or run the query with headrace run")
