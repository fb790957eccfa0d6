"""Running: the plan of streams and sinks as a script, handed to `headrace.spark`, the only part that knows Spark."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.errors import QueryError, unknown
from headrace.optimize import optimize
from headrace.plan.explain import explain
from headrace.plan.nodes import base_streams
from headrace.plan.query import ConsoleSink, Emit, FileSink, Query, Script, StreamSink, TableSink, Using
from headrace.plan.schema import Field, Schema
from headrace.plan.sinks import FORMATS
from headrace.sql.script import parse_script

if TYPE_CHECKING:
    from headrace.api.handle import Run
    from headrace.api.stream import Output, Stream
    from headrace.plan.nodes import Node
    from headrace.plan.query import Sink


Frames = Mapping[str, Any]  # the name of a FrameSource -> a Spark DataFrame


def schema_of(frame: Any) -> Schema:
    """The columns of a Spark DataFrame, classic or Connect, streaming or static."""
    fields = getattr(getattr(frame, "schema", None), "fields", None)
    if fields is None:
        raise QueryError(f"expected a Spark DataFrame, got {type(frame).__name__}")
    return Schema(tuple(Field(f.name, f.dataType.simpleString()) for f in fields))


def merge_frames(*parts: Frames) -> dict[str, Any]:
    """All frames of several streams; one name is one frame."""
    found: dict[str, Any] = {}
    for part in parts:
        for name, frame in part.items():
            if found.setdefault(name, frame) is not frame:
                raise QueryError(f"two streams are called {name!r}", hint="give each a name: hr.stream(df, name='payments', ..)")
    return found


def _spark() -> Any:
    return importlib.import_module("headrace.spark")


def file(path: str, format: str | None = None) -> FileSink:
    """A directory of files, published by batch, or one file if the path has an ending: parquet, csv or json."""
    if format is not None and format.lower() not in FORMATS:
        raise QueryError(unknown("format", format, FORMATS))
    return FileSink.of(path, format)


def table(name: str) -> TableSink:
    """A Spark table."""
    return TableSink(name)


def console() -> ConsoleSink:
    """Standard output."""
    return ConsoleSink()


def start(outputs: Mapping[str | Sink, Stream | Output], checkpoint: str | None = None, **options: Any) -> Run:
    """Run streams into sinks, all as one query: `hr.start({"profiles/": profile, "late/": payments.late()})`.

    A string is the path of a directory; `hr.file`, `hr.table` and `hr.console` name other sinks. It reads what its sources have
    and ends; `follow=True` goes on until it is stopped. `overwrite=True` replaces what another run wrote, `max_rejected=0.05` is
    the share of rows from which on it fails, `trigger_ms=..` how long a micro-batch waits for the next. Queries that a script has
    more than its checkpoint can be filled from their sources (`backfill=[..]`), or begin with nothing (`from_now=[..]`).
    """
    run: Run = _spark().start(*script_of(outputs), checkpoint=checkpoint, **options)
    return run


def to_df(output: Output) -> Any:
    """The results as a DataFrame."""
    return _spark().to_df(*script_of({StreamSink("result"): output}))


def script_of(outputs: Mapping[str | Sink, Stream | Output]) -> tuple[Script, dict[str, Any]]:
    if not outputs:
        raise QueryError("there is nothing to run", hint="hr.start({'profiles/': profile})")
    found = [_query(sink, output) for sink, output in outputs.items()]
    frames = merge_frames(*(frames for _, frames in found))
    queries = tuple(query for query, _ in found)
    return Script(queries, tuple(dict.fromkeys(s for q in queries for s in base_streams(q.node)))), frames


def _query(target: str | Sink, output: Stream | Output) -> tuple[Query, Frames]:
    from headrace.api.stream import Output, Stream

    sink = file(target) if isinstance(target, str) else target
    match output:
        case Output(stream=stream, level=level, using=using):
            pass
        case Stream():
            stream, level, using = output, Emit.CHANGES, Using.OPTIMISTIC
        case _:
            raise QueryError(f"expected a stream for {target}, got {type(output).__name__}")
    return Query(_name(sink), stream.node, level, sink, using), stream.frames


def _name(sink: Sink) -> str:
    match sink:
        case FileSink(path=path):
            return path
        case TableSink(name=name) | StreamSink(name=name):
            return name
    return "console"


def explain_node(node: Node) -> str:
    """The plan as written, each change of the optimizer, and the plan that runs."""
    optimized, changes = optimize(node)
    parts = [explain(node), *(f"-- {rule}\n{after}" for rule, _, after in changes)]
    if changes:
        parts.append(f"-- runs as\n{explain(optimized)}")
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Program:
    """A script and the DataFrames it reads."""

    script: Script
    frames: Frames

    def __getitem__(self, name: str) -> Stream:
        """One query of the script as a stream, by the name of its target."""
        from headrace.api.stream import Stream

        return Stream(self._query(name).node, self.frames)

    def start(self, checkpoint: str | None = None, **options: Any) -> Run:
        """Run every query into its sink."""
        run: Run = _spark().start(self.script, dict(self.frames), checkpoint=checkpoint, **options)
        return run

    def to_df(self, name: str | None = None) -> Any:
        """The results of one query as a DataFrame; the name may be left out where there is only one."""
        query = self._query(name)
        return _spark().to_df(Script((query,), tuple(dict.fromkeys(base_streams(query.node)))), dict(self.frames))

    def explain(self) -> str:
        """The plan of every query."""
        return "\n\n".join(f"{q.name}: EMIT {q.emit.value} INTO {q.sink}\n{explain_node(q.node)}" for q in self.script.queries)

    def _query(self, name: str | None) -> Query:
        queries = {q.name: q for q in self.script.queries}
        if name is None:
            if len(queries) != 1:
                raise QueryError(f"the script has {len(queries)} queries", hint=f"name one of: {', '.join(queries)}")
            return next(iter(queries.values()))
        if name not in queries:
            raise QueryError(unknown("query", name, queries))
        return queries[name]


def sql(text: str, **inputs: Any) -> Program:
    """Read a script over DataFrames and streams given by name.

    A stream of `hr.stream(..)` is read by its name here. A plain DataFrame has no time yet: the script declares it with
    `CREATE STREAM payments SOURCE DATAFRAME(df) TIMESTAMP BY at DELAY 10 SECONDS`.
    """
    from headrace.api.stream import Stream

    streams = {name: given.node for name, given in inputs.items() if isinstance(given, Stream)}
    schemas = {name: schema_of(given) for name, given in inputs.items() if name not in streams}
    frames = merge_frames(*(given.frames if name in streams else {name: given} for name, given in inputs.items()))
    return Program(parse_script(text, streams=streams, frames=schemas), frames)
