"""Plan to stages: which queries share a stage, what each reads, and what is left to do with its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.errors import QueryError
from headrace.optimize import optimize
from headrace.plan.aggregates import Laws
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Project, Rejected, Scan, WindowAggregate, base_stream
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import Stream
from headrace.plan.windows import RowsWindow, UnboundedWindow, Window
from headrace.stages.builder import StageBuilder
from headrace.stages.flatten import Flat, flatten, split_top, stateless, window_chain
from headrace.stages.program import Disorder, Output, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

TypeOf = "Callable[[Expr, Schema], str]"


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
    stages: tuple[Stage, ...]
    finishes: tuple[Finish, ...]
    rules: tuple[tuple[str, str, str, str], ...] = field(default=(), compare=False)  # query, rule, before, after


def disorder_of(stream: Stream) -> Disorder:
    """What the stages need to know of a stream's order."""
    return Disorder(stream.delay, stream.single_partition, stream.idle, stream.ahead, stream.end_after, stream.keep)


class _Lowering:
    def __init__(self, type_of: Callable[[Expr, Schema], str]) -> None:
        self.type_of = type_of
        self.builders: dict[tuple[object, ...], StageBuilder] = {}

    def builder(self, stream: Stream, route: tuple[Expr, ...] | None, apart: object = None) -> StageBuilder:
        """The stage for this stream and route; `apart` keeps stages with other rows from being shared."""
        names = None if route is None else tuple(sorted(e.sql for e in route))
        key = (stream.name, names, apart)
        if key not in self.builders:
            types = self.type_of
            builder = StageBuilder(stream.name, disorder_of(stream), route, lambda e: types(e, stream.schema))
            if stream.unique is not None and apart != "late":
                builder.unique(stream.unique.by, stream.unique.within)
            self.builders[key] = builder
        return self.builders[key]

    def query(self, query: Query, node: Node, route: tuple[Expr, ...]) -> Finish:
        above, core = split_top(node)
        match core:
            case Rejected(stream=stream):
                return self._finish(query, above, core.schema, rejected=stream.name)
            case Late(stream=stream):
                return self._late(query, above, stream)
            case Scan():
                return self._rows(query, node)
            case WindowAggregate():
                return self._windows(query, above, core, route)
        raise AssertionError(f"unknown plan node {core}")

    def _rows(self, query: Query, node: Node) -> Finish:
        """A query without a window: its rows pass as they are."""
        flat = flatten(node)
        unique = flat.stream.unique
        builder = self.builder(flat.stream, None if unique is None else unique.by, apart="rows")
        masks = builder.masks(flat.predicates)
        # A row that a filter drops still makes a later one with its UNIQUE columns come twice.
        builder.want(masks if unique is None else ())
        fields = tuple(Field(f.name, self.type_of(flat.columns[f.name.lower()], flat.stream.schema)) for f in node.schema.fields)
        columns = tuple((f.name, builder.input(flat.columns[f.name.lower()])) for f in node.schema.fields)
        builder.outputs.append(Output(query.name, query.emit, columns, (), masks))
        schema = Schema(fields)
        return Finish(query, schema, (), tuple((n, Expr.column(n)) for n in schema.names))

    def _late(self, query: Query, above: list[Filter | Project], stream: Stream) -> Finish:
        builder = self.builder(stream, None, apart="late")
        builder.want(())
        columns = tuple((f.name, builder.input(Expr.column(f.name))) for f in stream.schema.fields)
        builder.outputs.append(Output(query.name, Emit.CHANGES, columns, late=True))
        return self._finish(query, above, Late(stream).schema)

    def _windows(self, query: Query, above: list[Filter | Project], top: WindowAggregate, route: tuple[Expr, ...]) -> Finish:
        chain = window_chain(top)
        if not _side_by_side(chain):
            raise QueryError(
                "a window over the results of another window is not there yet",
                hint="write one SELECT with OVER for each metric",
            )
        flat = flatten(chain[0].input)
        rows_filter = flat.predicates if any(isinstance(n.window, RowsWindow) for n in chain) else ()
        builder = self.builder(flat.stream, route, apart=rows_filter or None)
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
                    argument = None if call.argument is None else flat.rewrite(call.argument)
                    metrics.append(builder.metric(call, argument, builder.masks(calls), window, group))
        # Rows outside WHERE count for ROWS, so they are wanted too; what a filter below ROWS drops is not.
        counted = rows_filter if any(isinstance(n.window, RowsWindow) for n in chain) else None
        wanted = masks if counted is None else builder.masks(counted)
        builder.want(wanted if flat.stream.unique is None else ())
        if counted and flat.stream.unique is not None:
            builder.members = builder.masks(counted)
        own = [f for f in chain[0].input.schema.fields if f.name in needed]
        columns = tuple((f.name, builder.input(flat.columns[f.name.lower()])) for f in own)
        builder.outputs.append(Output(query.name, query.emit, columns, tuple(metrics), masks))
        fields = tuple(Field(n, builder.inputs[i].type) for n, i in columns) + tuple(Field(m.name, m.type) for m in metrics)
        return self._finish(query, above, Schema(fields))

    def _tables(self, builder: StageBuilder, flat: Flat, node: WindowAggregate) -> tuple[int, int | None]:
        """The tables that number the keys of a window aggregate, and the partitions of its window."""
        keys = tuple(map(flat.rewrite, node.keys))
        by = tuple(map(flat.rewrite, node.window.partition_by)) if isinstance(node.window, RowsWindow) else ()
        selective = [call for call in node.aggregates if call.function.laws is Laws.SELECTIVE]
        if selective and not set(by) <= set(keys):
            # Rows of a group would leave out of turn, and a queue of candidates cannot take one out of its middle.
            raise QueryError(
                f"{selective[0]} over {node.window} needs GROUP BY to name what the window is PARTITIONED BY",
                hint=f"add {', '.join(map(str, by))} to GROUP BY",
            )
        if flat.stream.keep is None or not _keeps_keys(node.window):
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


def _keeps_keys(window: Window) -> bool:
    """Whether a window keeps something for a key that no longer comes."""
    return isinstance(window, UnboundedWindow) or (isinstance(window, RowsWindow) and bool(window.partition_by))


def _side_by_side(chain: list[WindowAggregate]) -> bool:
    """Whether stacked windows all look at the rows of the stream, so that they can be evaluated side by side."""
    if not stateless(chain[0].input) or any(node.where is not None for node in chain[:-1]):
        return False
    own = chain[0].input.schema
    for node in chain[1:]:
        by = node.window.partition_by if isinstance(node.window, RowsWindow) else ()
        calls = [e for call in node.aggregates for e in (call.argument, call.filter)]
        exprs = [e for e in (*node.keys, *by, node.where, *calls) if e is not None]
        if not all(own.has(name) for e in exprs for name in e.columns):
            return False
    return True


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


def routable(chain: list[WindowAggregate]) -> set[str]:
    """The keys (as base expressions) that all windows of a chain have in common."""
    flat = flatten(chain[0].input)
    common: set[str] | None = None
    for node in chain:
        keys = {flat.rewrite(k).sql for k in node.keys}
        if isinstance(node.window, RowsWindow):
            keys &= {flat.rewrite(k).sql for k in node.window.partition_by}
        common = keys if common is None else common & keys
    if flat.stream.unique is not None:  # rows that come twice must meet
        common = (common or set()) & {e.sql for e in flat.stream.unique.by}
    return common or set()


def _routes(nodes: list[Node]) -> list[tuple[Expr, ...]]:
    """A route per query. Queries over one stream whose keys nest take the smaller key set, so that they share a stage."""
    keys: list[tuple[str, frozenset[str]] | None] = []
    for node in nodes:
        _, core = split_top(node)
        if isinstance(core, WindowAggregate) and stateless(window_chain(core)[0].input):
            keys.append((base_stream(core).name, frozenset(routable(window_chain(core)))))
        else:
            keys.append(None)
    routes = []
    for own in keys:
        smaller = [k for k in keys if own and k and k[0] == own[0] and k[1] and k[1] <= own[1]]
        best = min(smaller, key=lambda k: (len(k[1]), sorted(k[1])), default=own)
        routes.append(tuple(Expr(e) for e in sorted(best[1])) if best else ())
    return routes


def lower(script: Script, type_of: Callable[[Expr, Schema], str] = guess_type) -> Lowered:
    """Optimise every query, and lower all of them together."""
    lowering = _Lowering(type_of)
    nodes, rules = [], []
    for query in script.queries:
        node, applied = optimize(query.node)
        nodes.append(node)
        rules += [(query.name, *change) for change in applied]
    routes = _routes(nodes)
    finishes = tuple(lowering.query(q, n, r) for q, n, r in zip(script.queries, nodes, routes, strict=True))
    streams = tuple({base_stream(q.node).name: base_stream(q.node) for q in script.queries}.values())
    stages = tuple(b.build() for b in lowering.builders.values())
    return Lowered(script, streams, stages, finishes, tuple(rules))
