"""Plan to stages: which queries share a stage, what each reads, and what is left to do with its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import QueryError
from headrace.optimize import optimize
from headrace.plan.aggregates import Aggregate, Laws
from headrace.plan.aggregates.ends import LAST
from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import (
    Filter,
    Late,
    Merge,
    Node,
    Project,
    Rejected,
    Scan,
    WindowAggregate,
    WindowReport,
    base_stream,
    base_streams,
    retracts,
)
from headrace.plan.patterns import Pattern
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import StageSource, Stream, longest_delay
from headrace.plan.triggers import EveryTime
from headrace.plan.windows import RangeWindow, UnboundedWindow
from headrace.program.outputs import Output
from headrace.program.stage import Disorder, Door, Source, Stage
from headrace.program.windows import Report
from headrace.stages.builder import StageBuilder
from headrace.stages.cut import Cuts
from headrace.stages.flatten import FALSE, TRUE, Exprs, Flat, Flats, flatten, split_top, window_chain
from headrace.stages.joins import lower_join
from headrace.stages.kept import Kept
from headrace.stages.meaning import meaning
from headrace.stages.patterns import lower_pattern
from headrace.stages.routes import beyond, partition_of, routes_of, sorted_route, unique_of

TypeOf = "Callable[[Expr, Schema], str]"
NOTHING = Kept()
LATE = "late"  # apart from stages over the same streams that have admitted rows
EARLY = "early"  # what stages are called that compute again what others have of a feed once it is final


def guess_type(expr: Expr, schema: Schema) -> str:
    """What sqlglot knows about types; Spark knows better and is asked where there is one."""
    name = expr.as_column
    return schema.field(name).type if name is not None and schema.has(name) else expr.type_in(schema)


@dataclass(frozen=True, slots=True)
class Finish:
    """What is left to do with the rows of a query: predicates, then columns, over what its stage gives."""

    query: Query
    columns: Schema
    predicates: tuple[Expr, ...]
    items: tuple[tuple[str, Expr], ...]
    rejected: str | None = None  # the stream whose rejected rows it reads, instead of a stage


@dataclass(frozen=True, slots=True)
class Lowered:
    """A script, ready to run."""

    script: Script
    streams: tuple[Stream, ...]
    stages: tuple[Stage[Any], ...]
    finishes: tuple[Finish, ...]
    rules: tuple[tuple[str, str, str, str], ...] = field(default=(), compare=False)  # query, rule, before, after
    feeds: tuple[Finish, ...] = ()  # what stages give to others
    apart: dict[str, str] = field(default_factory=dict)  # queries with stages of their own, and what these are called
    called: dict[str, str] = field(default_factory=dict)  # what queries are called, if not as in the stages: they were renamed

    @property
    def levels(self) -> int:
        """How many stages a row may have to pass, one after the other."""
        return max((s.level for s in self.stages), default=1)


def disorder_of(stream: Stream) -> Disorder:
    """What the stages need to know of a stream's order."""
    return Disorder(
        stream.delay, stream.single_partition, stream.idle, stream.ahead, stream.end_after, stream.keep, stream.static,
        stream.punctuated,
    )  # fmt: skip


class _Lowering:
    def __init__(self, type_of: Callable[[Expr, Schema], str], label: str) -> None:
        self.type_of, self.label, self.level = type_of, label, 1
        self.width: dict[str, int] = {}  # feeds: how many base streams are below them
        self.steady: set[str] = set()  # feeds that take nothing back
        self.builders: dict[tuple[object, ...], StageBuilder] = {}

    def builder(self, streams: tuple[Stream, ...], route: tuple[Exprs, ...] | None, apart: object = None) -> StageBuilder:
        """The stage for these streams and route; `apart` keeps stages with other rows from being shared."""
        key = (tuple(s.name for s in streams), None if route is None else sorted_route(route), apart)
        if key not in self.builders:
            types, schema = self.type_of, streams[0].schema
            builder = StageBuilder(self._sources(streams), route, lambda e: types(e, schema), self.label + meaning(apart))
            builder.level = self.level
            unique = unique_of(streams)
            if unique is not None and apart != LATE:
                builder.unique(tuple((e,) for e in unique.by), unique.within)
            self.builders[key] = builder
        return self.builders[key]

    def _sources(self, streams: tuple[Stream, ...]) -> tuple[Source, ...]:
        """Rows of one time stand by which base stream they come from, also those that other stages have merged."""
        out, rank = [], 0
        for stream in streams:
            out.append(Source(stream.name, disorder_of(stream), isinstance(stream.source, StageSource), rank))
            rank += self.width.get(stream.name, 1)
        return tuple(out)

    def query(self, query: Query, node: Node, route: tuple[Exprs, ...]) -> Finish:
        above, core = split_top(node)
        match core:
            case Rejected(stream=stream):
                return self._finish(query, above, core.schema, rejected=stream.name)
            case Late():
                self._late(query, core)
                return self._finish(query, above, core.schema)
            case Scan() | Merge():
                return self._rows(query, node)
            case WindowAggregate():
                return self._windows(query, above, core, route)
            case WindowReport():
                return self._report(query, above, core, route)
            case Join():
                width = lambda name: self.width.get(name, 1)  # noqa: E731
                columns = lower_join(query, core, _needed(above, core.schema), self.type_of, self.builder, width)
                return self._finish(query, above, columns)
            case Pattern():
                columns = lower_pattern(query, core, _needed(above, core.schema), self.type_of, self.builder, self.steady)
                return self._finish(query, above, columns)
        raise AssertionError(f"unknown plan node {core}")

    def _late(self, query: Query, node: Late) -> None:
        """Put a query over `late(s)` into its stage. Streams taken together with s say how far they are; their rows stay away."""
        streams = base_streams(node)
        builder = self.builder(streams, None, LATE)
        builder.doors = tuple(Door(tuple(map(streams.index, some)), longest_delay(some)) for some in node.together)
        masks = () if len(streams) == 1 else builder.masks(((TRUE, *(FALSE for _ in streams[1:])),))
        builder.want(masks)
        columns = []
        for column in node.stream.schema.fields:
            nothing = Expr.of(f"CAST(NULL AS {column.type})")
            columns.append((column.name, builder.input((Expr.column(column.name), *(nothing for _ in streams[1:])))))
        builder.late.append(Output(query.name, Emit.CHANGES, tuple(columns), masks=masks))

    def _rows(self, query: Query, node: Node) -> Finish:
        """A query without a window: its rows pass as they are."""
        flat = flatten(node)
        unique = unique_of(flat.streams)
        builder = self.builder(flat.streams, None if unique is None else tuple((e,) for e in unique.by), apart="rows")
        masks = builder.masks(flat.predicates)
        # A row that a filter drops still makes a later one with its UNIQUE columns come twice.
        builder.want(masks if unique is None else ())
        fields = tuple(Field(f.name, self.type_of(flat.column(f.name)[0], flat.stream.schema)) for f in node.schema.fields)
        columns = tuple((f.name, builder.input(flat.column(f.name))) for f in node.schema.fields)
        builder.outputs.append(Output(query.name, query.emit, columns, (), masks))
        schema = Schema(fields)
        return Finish(query, schema, (), tuple((n, Expr.column(n)) for n in schema.names))

    def _windows(self, query: Query, above: list[Filter | Project], top: WindowAggregate, route: tuple[Exprs, ...]) -> Finish:
        chain = window_chain(top)
        flat = flatten(chain[0].input)
        # Rows outside WHERE count for ROWS, and end the silence of a key for KEEP, so they are wanted too; what a filter below
        # the window drops is not.
        all_count = any(n.window.counts_rows or (n.window.keeps_keys and _forgets(flat)) for n in chain)
        counted = flat.predicates if all_count else None
        peers = any(n.window.waits for n in chain)  # its rows are final later than those of others
        builder = self.builder(flat.streams, route, apart=("peers", counted) if peers else counted or None)
        needed = _needed(above, top.schema)
        metrics, masks = [], builder.masks(flat.predicates)
        for node in chain:
            where = (*flat.predicates, *((flat.rewrite(node.where),) if node.where else ()))
            masks = tuple(sorted({*masks, *builder.masks(where)}))
            group, partitions = self._tables(builder, flat, node)
            window = builder.window(node.window, partitions)
            for call in node.aggregates:
                if call.name in needed:
                    calls = (*where, *((flat.rewrite(call.filter),) if call.filter else ()))
                    arguments = tuple(map(flat.rewrite, call.arguments))
                    metrics.append(builder.metric(call, arguments, builder.masks(calls), builder.tallies, window, group))
        wanted = masks if counted is None else builder.masks(counted)
        unique = unique_of(flat.streams)
        builder.want(wanted if unique is None else ())
        if counted and unique is not None:
            builder.members = builder.masks(counted)
        own = [f for f in chain[0].input.schema.fields if f.name in needed]
        columns = tuple((f.name, builder.input(flat.column(f.name))) for f in own)
        builder.outputs.append(Output(query.name, query.emit, columns, tuple(metrics), masks))
        fields = tuple(Field(n, builder.inputs[i].type) for n, i in columns) + tuple(Field(m.name, m.type) for m in metrics)
        return self._finish(query, above, Schema(fields))

    def _report(self, query: Query, above: list[Filter | Project], node: WindowReport, route: tuple[Exprs, ...]) -> Finish:
        flat = flatten(node.input)
        policy = beyond(node)
        # Where rows are counted or measured, the stage must have exactly those that pass the filters below the window.
        builder = self.builder(flat.streams, route, apart=(policy, flat.predicates) if policy else None)
        below = builder.masks(flat.predicates)
        masks = builder.masks((*flat.predicates, *((flat.rewrite(node.where),) if node.where else ())))
        keys = tuple(flat.rewrite(e) for _, e in node.keys)
        if node.window.ends_by_itself:
            names = [name for expr in node.window.exprs for name in expr.columns]
            group = builder.segments(keys, node.window, {n.lower(): flat.rewrite(Expr.column(n)) for n in names})
        else:
            group = builder.group(keys)
        by = tuple(map(flat.rewrite, partition_of(node)))
        partition = builder.group(by) if by else None
        if node.window.ends_by_itself:
            window = builder.window(UnboundedWindow(), None)  # its rows are those of a life
        else:
            measured = node.window.field
            field = None if measured is None else builder.field(flat.rewrite(measured))
            window = builder.window(node.window, partition if node.window.partition_by else None, field)
        needed = _needed(above, node.schema)
        metrics = []
        for (name, _), key in zip(node.keys, keys, strict=True):
            # All rows of a group have its keys, so the last one in the window can say them.
            shown = self._shown(key, flat.stream)
            metrics.append(builder.metric(Aggregate(name, LAST, shown[:1]), (shown,), masks, builder.tallies, window, group))
        bounds = len(metrics)
        windows = [(window, node.aggregates), *((builder.window(w, None), some) for w, some in node.beside)]
        for of, call in ((w, call) for w, some in windows for call in some):
            if call.name in needed:
                calls = tuple(sorted({*masks, *builder.masks((flat.rewrite(call.filter),) if call.filter else ())}))
                arguments = tuple(map(flat.rewrite, call.arguments))
                metrics.append(builder.metric(call, arguments, calls, builder.tallies, of, group))
        wanted = below if policy else masks
        builder.want(wanted if unique_of(flat.streams) is None else ())
        if policy and below and unique_of(flat.streams) is not None:
            builder.members = below
        presence = builder.presence(masks, window, group)
        counted = partition if node.trigger.counts_rows else None
        counter = None if counted is None else builder.presence((), builder.window(UnboundedWindow(), None), counted)
        batch, on, ends = node.trigger.batch, node.trigger.field, node.window.bounds
        builder.reports.append(Report(
            query.name, query.emit, node.trigger, presence, tuple(metrics), bounds, len(ends),
            partition=counted, counter=counter,
            batch=None if batch is None else builder.group((flat.rewrite(batch),)),
            field=None if on is None else builder.field(flat.rewrite(on)),
            closed_by_rows=node.window.closed_by_rows, moved=self._moved(builder, node, masks, group),
        ))  # fmt: skip
        fields = [Field(m.name, m.type) for m in metrics]
        return self._finish(query, above, Schema((*fields[:bounds], *ends, *fields[bounds:])))

    def _moved(self, builder: StageBuilder, node: WindowReport, masks: tuple[int, ...], group: int) -> tuple[int, ...]:
        """What came since the last look, and what went: each is a window of its own, as long as the time between looks."""
        if not node.on_change:
            return ()
        assert isinstance(node.trigger, EveryTime)
        windows = (RangeWindow(node.trigger.every, edge) for edge in node.window.edges)
        return tuple(builder.presence(masks, builder.window(window, None), group) for window in windows)

    def _shown(self, key: Exprs, stream: Stream) -> Exprs:
        """A key as it is shown: zeros of either sign are one group, which is 0.0."""
        kind = self.type_of(key[0], stream.schema)
        return tuple(Expr.of(f"CAST({e} + 0.0D AS {kind})") for e in key) if kind in ("FLOAT", "DOUBLE") else key

    def _tables(self, builder: StageBuilder, flat: Flats, node: WindowAggregate) -> tuple[int, int | None]:
        """The tables that number the keys of a window aggregate, and the partitions of its window."""
        keys = tuple(map(flat.rewrite, node.keys))
        by = tuple(map(flat.rewrite, node.window.partition_by))
        selective = [call for call in node.aggregates if call.function.laws is Laws.SELECTIVE]
        if selective and not set(by) <= set(keys):
            # Rows of a group would leave out of turn, and a queue of candidates cannot take one out of its middle.
            raise QueryError(
                f"{selective[0]} over {node.window} needs GROUP BY to name what the window is PARTITIONED BY",
                hint=f"add {', '.join(map(str, by))} to GROUP BY",
            )
        if not _forgets(flat) or not node.window.keeps_keys:
            return builder.group(keys), builder.group(by) if by else None
        if not by:
            return builder.lives(keys), None
        if set(by) != set(keys):
            raise QueryError(
                f"KEEP of stream {flat.stream.name!r} cannot end partitions that are not the groups",
                hint="GROUP BY what the window is PARTITIONED BY, or leave KEEP out",
            )
        lives = builder.lives(by)
        return lives, lives

    def _finish(self, query: Query, above: list[Filter | Project], columns: Schema, rejected: str | None = None) -> Finish:
        current = {n.lower(): Expr.column(n) for n in columns.names}
        names, predicates = columns.names, []
        for step in reversed(above):
            flat = Flat(base_stream(query.node), current, ())
            match step:
                case Filter(predicate=predicate):
                    predicates.append(flat.rewrite(predicate))
                case Project(items=items):
                    current = {n.lower(): flat.rewrite(e) for n, e in items}
                    names = tuple(n for n, _ in items)
        return Finish(query, columns, tuple(predicates), tuple((n, current[n.lower()]) for n in names), rejected)


def _forgets(flat: Flats) -> bool:
    """Whether keys that have been silent are forgotten."""
    return all(s.keep is not None for s in flat.streams)


def _needed(above: list[Filter | Project], schema: Schema) -> set[str]:
    """The columns that the steps above a window read; all of them if none of the steps projects."""
    if not any(isinstance(step, Project) for step in above):
        return set(schema.names)
    names: set[str] = set()
    for step in reversed(above):
        exprs = [step.predicate] if isinstance(step, Filter) else [e for _, e in step.items]
        names |= {schema.field(c).name for e in exprs for c in e.columns if schema.has(c)}
        if isinstance(step, Project):
            break
    return names


def lower(script: Script, type_of: Callable[[Expr, Schema], str] = guess_type, kept: Kept = NOTHING) -> Lowered:
    """Optimise every query, cut them into levels, and lower all of a level together; those that stand apart by themselves."""
    groups: dict[str, list[Query]] = {}
    apart = {q.name: EARLY for q in script.queries if _hurries(q, kept)} | kept.apart
    for query in script.queries:
        groups.setdefault(apart.get(query.name, ""), []).append(query)
    done: dict[str, Finish] = {}
    stages: list[Stage[Any]] = []
    feeds: list[Finish] = []
    rules: list[tuple[str, str, str, str]] = []
    for label, queries in groups.items():
        part = _Group(type_of, kept, label, len(feeds))
        done |= part.lower(queries)
        stages += [b.build() for b in part.lowering.builders.values()]
        feeds += [done[part.cuts.name(n)] for n in part.cuts.eager]
        rules += part.rules
    streams = tuple({s.name: s for q in script.queries for s in base_streams(q.node)}.values())
    finishes = tuple(done[q.name] for q in script.queries)
    return Lowered(script, streams, tuple(stages), finishes, tuple(rules), tuple(feeds), apart)


def _hurries(query: Query, kept: Kept) -> bool:
    """Whether a query is new and asks for results early that a running script reads once they are final: it cannot share them."""
    if not kept.patient or not query.emit.early or kept.known(query):
        return False
    cuts = Cuts()
    cuts.note(optimize(query.node)[0], True)
    return any(meaning(node) in kept.patient for node in cuts.eager)


class _Group:
    """Queries that may share stages."""

    def __init__(self, type_of: Callable[[Expr, Schema], str], kept: Kept, label: str, first: int) -> None:
        self.lowering, self.cuts, self.kept = _Lowering(type_of, f"{label}: " if label else ""), Cuts(kept.eager, first), kept
        self.rules: list[tuple[str, str, str, str]] = []

    def lower(self, asked: list[Query]) -> dict[str, Finish]:
        nodes, cuts, lowering = {}, self.cuts, self.lowering
        for query in asked:
            nodes[query.name], applied = optimize(query.node)
            self.rules += [(query.name, *change) for change in applied]
        for query in asked:
            cuts.note(nodes[query.name], query.emit.early)
        queries = [(q, nodes[q.name]) for q in asked]
        queries += [(Query(cuts.name(n), n, Emit.CHANGES if eager else Emit.FINAL), n) for n, eager in cuts.eager.items()]
        done: dict[str, Finish] = {}
        while len(done) < len(queries):
            ready = [(q, n) for q, n in queries if q.name not in done and cuts.level(n) == lowering.level]
            over = [cuts.apply(n) for _, n in ready]
            fixed = [self.kept.route(q.emit, q.node) for q, _ in ready]
            for (query, node), cut, route in zip(ready, over, routes_of(over, fixed), strict=True):
                done[query.name] = lowering.query(query, cut, route)
                if node in cuts.eager and query.name == cuts.name(node):
                    cuts.add(node, done[query.name].columns)
                    lowering.width[query.name] = len(base_streams(node))
                    if not query.emit.early or not retracts(node):
                        lowering.steady.add(query.name)
            lowering.level += 1
        return done
