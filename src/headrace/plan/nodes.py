"""The nodes of a plan. A node that exists is valid; facts about it are stored on it, not rediscovered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headrace.errors import QueryError
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.joins import Join, join_bound
from headrace.plan.patterns import Pattern
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import Bound, Stream
from headrace.plan.time import format_duration
from headrace.plan.triggers import EveryTime, Trigger
from headrace.plan.windows import LookedAt, RangeWindow, Window

# A late row is the row and its event time; a rejected one is its text, why, and where it stood.
LATE_EXTRA = (Field("_time", "TIMESTAMP"),)
REJECTED = Schema((*(Field(name, "STRING") for name in ("row", "reason", "source", "position", "file")), Field("line", "BIGINT")))


@dataclass(frozen=True, slots=True)
class Scan:
    """The admitted rows of a base stream."""

    stream: Stream
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.stream.schema)

    def __str__(self) -> str:
        return str(self.stream)


@dataclass(frozen=True, slots=True)
class Late:
    """`late(s)`: the rows of a stream that came behind its frontier, or behind what a query had taken of it; in arrival order.

    `together` has the streams of every query of the script that takes rows of this one USING KSLACK (`plan.query.Script`).
    """

    stream: Stream
    together: tuple[tuple[Stream, ...], ...] = ()
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", Schema(self.stream.schema.fields + LATE_EXTRA))

    def __str__(self) -> str:
        behind = (f", and behind K-slack over {', '.join(s.name for s in streams)}" for streams in self.together)
        return f"Late {self.stream.name}{''.join(behind)}"


@dataclass(frozen=True, slots=True)
class Rejected:
    """`rejected(s)`: the rows of a stream that could not be read, with the reason."""

    stream: Stream
    schema: Schema = field(init=False, default=REJECTED)

    def __str__(self) -> str:
        return f"Rejected {self.stream.name}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the predicate is true."""

    input: Node
    predicate: Expr
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        self.predicate.check(self.input.schema)
        object.__setattr__(self, "schema", self.input.schema)

    def __str__(self) -> str:
        return f"Filter {self.predicate}"


@dataclass(frozen=True, slots=True)
class Project:
    """New columns from old: (name, expression) pairs."""

    input: Node
    items: tuple[tuple[str, Expr], ...]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        if not self.items:
            raise QueryError("a SELECT needs at least one column")
        columns = self.input.schema
        fields = tuple(Field(name, _type(expr.check(columns), columns)) for name, expr in self.items)
        object.__setattr__(self, "schema", Schema(fields))

    def __str__(self) -> str:
        return "Project " + ", ".join(e.sql if e.as_column == n else f"{e} AS {n}" for n, e in self.items)


@dataclass(frozen=True, slots=True)
class Merge:
    """The rows of several streams as one, in the total order: by time, then by which comes first here, then by position."""

    inputs: tuple[Node, ...]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        """All have the columns of the first, by place and type; the names are those of the first."""
        if any(map(in_arrival_order, self.inputs)):
            raise QueryError("late and rejected rows stand in the order of arrival, and cannot be merged by time")
        first = self.inputs[0].schema
        for other in self.inputs[1:]:
            if not _alike(other.schema, first):
                message = f"streams that are merged have the same columns; one has {first}, another {other.schema}"
                raise QueryError(message, hint="bring them into one form with SELECT first")
        object.__setattr__(self, "schema", first)

    def __str__(self) -> str:
        return f"Merge of {len(self.inputs)} streams"


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregates over a window of the rows with the event's keys, evaluated for every event.

    One row per event: the columns of the event, then the aggregates. A row for which `where` does not hold is in the
    window (it counts for ROWS) but in no aggregate, and gives no result.
    """

    input: Node
    window: Window
    keys: tuple[Expr, ...]
    aggregates: tuple[Aggregate, ...]
    where: Expr | None = None
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        """Names must exist, types must fit, results must not hide columns of the event."""
        columns = self.input.schema
        for expr in (*self.keys, *((self.where,) if self.where else ())):
            expr.check(columns)
        results = tuple(call.column(columns) for call in self.aggregates)
        for expr in self.window.exprs:
            expr.check(columns)
        object.__setattr__(self, "schema", Schema(columns.fields + results))

    def __str__(self) -> str:
        where = f" WHERE {self.where}" if self.where else ""
        by = f" GROUP BY {', '.join(map(str, self.keys))}" if self.keys else ""
        calls = ", ".join(f"{a} AS {a.name}" for a in self.aggregates)
        return f"WindowAggregate {self.window}{where}{by}: {calls}"


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Aggregates over a window that is looked at when its trigger fires: one row for every group that is then in it.

    The columns are the keys under their names, the bounds of the window, and the aggregates. A row for which `where` does not
    hold is in the window but in no group. With `on_change`, a group is told only if a row of it has entered or left since the
    last look. `beside` are aggregates of the same group over other windows of time, at the same looks.
    """

    input: Node
    window: LookedAt
    trigger: Trigger
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[Aggregate, ...]
    where: Expr | None = None
    on_change: bool = False
    beside: tuple[tuple[RangeWindow, tuple[Aggregate, ...]], ...] = ()
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        """Names must exist, types must fit, and no two columns share a name."""
        columns = self.input.schema
        if (self.on_change or self.beside) and not (self.window.edges and isinstance(self.trigger, EveryTime)):
            message = "only a window of time that is looked at by the clock can be compared with what it was at the last look"
            raise QueryError(message, hint="every other look comes with rows, and so with a change: leave the setting out")
        for expr in (*(e for _, e in self.keys), *policy_exprs(self), *((self.where,) if self.where else ())):
            expr.check(columns)
        keys = tuple(Field(name, _type(expr, columns)) for name, expr in self.keys)
        calls = (*self.aggregates, *(call for _, calls in self.beside for call in calls))
        results = tuple(call.column(columns) for call in calls)
        object.__setattr__(self, "schema", Schema(keys + self.window.bounds + results))

    def __str__(self) -> str:
        where = f" WHERE {self.where}" if self.where else ""
        by = f" GROUP BY {', '.join(str(e) for _, e in self.keys)}" if self.keys else ""
        calls = ", ".join(f"{a} AS {a.name}" for a in self.aggregates)
        changed = " IF CHANGED" if self.on_change else ""
        more = "".join(f"; {w}: {', '.join(f'{a} AS {a.name}' for a in some)}" for w, some in self.beside)
        return f"WindowReport {self.window} {self.trigger}{changed}{where}{by}: {calls}{more}"


def policy_exprs(node: WindowReport) -> tuple[Expr, ...]:
    """What of the rows decides when the window is looked at, and what is in it."""
    return tuple(dict.fromkeys((*node.window.exprs, *node.trigger.exprs)))


STATEFUL = Join | Pattern | WindowAggregate | WindowReport  # steps that keep state
Node = Scan | Late | Rejected | Filter | Project | Merge | STATEFUL


def _alike(one: Schema, other: Schema) -> bool:
    """Whether rows fit together, column by column; a type that only Spark knows is settled there."""
    pairs = [(a.type, b.type) for a, b in zip(one.fields, other.fields, strict=False)]
    return len(one.fields) == len(other.fields) and all(a == b or UNKNOWN_TYPE in (a, b) for a, b in pairs)


def _type(expr: Expr, columns: Schema) -> str:
    """The type of a plain column is that of the column, to the letter."""
    name = expr.as_column
    return columns.field(name).type if name is not None else expr.type_in(columns)


def base_streams(node: Node) -> tuple[Stream, ...]:
    """The base streams below a node, each as often as it is read."""
    match node:
        case Late(stream=stream, together=together):
            return tuple(dict.fromkeys((stream, *(s for streams in together for s in streams))))
        case Scan(stream=stream) | Rejected(stream=stream):
            return (stream,)
    return tuple(stream for child in children(node) for stream in base_streams(child))


def base_stream(node: Node) -> Stream:
    """The first base stream below a node: the only one, where nothing is merged."""
    return base_streams(node)[0]


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Scan() | Late() | Rejected():
            return ()
        case Merge(inputs=inputs):
            return inputs
        case Join(left=left, right=right):
            return left, right
        case Pattern(places=places):
            return tuple(p.input for p in places)
    return (node.input,)


def over(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same step over other inputs; if they are its own, the step itself."""
    if all(new is old for new, old in zip(inputs, children(node), strict=True)):
        return node
    match node:
        case Scan() | Late() | Rejected():
            return node
        case Merge():
            return Merge(inputs)
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case Pattern(places=places):
            return replace(node, places=tuple(replace(p, input=new) for p, new in zip(places, inputs, strict=True)))
    return replace(node, input=inputs[0])


def in_arrival_order(node: Node) -> bool:
    """Whether rows come from `late(s)` or `rejected(s)`, which have no order of time."""
    return isinstance(node, Late | Rejected) or any(map(in_arrival_order, children(node)))


def retracts(node: Node) -> bool:
    """Whether a row of this node can be taken back while the frontier has not passed it."""
    match node:
        case Scan(stream=stream):
            return stream.unique is not None and stream.delay != 0
        case Late() | Rejected():
            return False
        case WindowAggregate() if waits_for_peers(node):
            return True
        case WindowAggregate() | WindowReport():
            streams = base_streams(node)
            return len(streams) > 1 or any(s.delay != 0 for s in streams)
        case Filter() | Project():
            return retracts(node.input)
        case Merge(inputs=inputs):
            return any(map(retracts, inputs))
        case Join():
            moving = any(w.counts_rows for w in node.windows)
            return moving or any(node.kind.preserved) or any(map(retracts, children(node)))
        case Pattern():
            streams = base_streams(node)
            disorder = len({s.name for s in streams}) > 1 or any(s.delay != 0 for s in streams)
            return (node.can_be_undone and disorder) or any(map(retracts, children(node)))


def waits_for_peers(node: Node) -> bool:
    """Whether a row that comes at the frontier itself can change a result of this node at that time."""
    own = isinstance(node, WindowAggregate) and node.window.waits
    return own or any(map(waits_for_peers, children(node)))


def settles(node: Node) -> int:
    """How long after its time a result of this node may still come to be known, once all input up to it is there."""
    own = node.waits if isinstance(node, Pattern) else 0
    return own + max(map(settles, children(node)), default=0)


def _slack(streams: tuple[Stream, ...]) -> str:
    """How far rows can be apart before they are final."""
    delays = [s.delay for s in streams if isinstance(s.delay, int)]
    promised = any(s.delay is None and s.punctuated for s in streams)
    parts = [format_duration(max(delays))] if delays else [] if promised else [format_duration(0)]
    parts += ["how far punctuation is behind"] if promised else []
    parts += ["how far the streams are read apart"] if len(set(s.name for s in streams)) > 1 else []
    return " + ".join(parts)


def state_bound(node: Node) -> str:
    """In words: how much state a node keeps."""
    streams = base_streams(node)
    endless = any(s.delay is Bound.UNBOUNDED for s in streams)
    match node:
        case Scan() | Late() | Rejected():
            return "none"
        case Filter() | Project():
            return state_bound(node.input)
        case Merge(inputs=inputs):
            return state_bound(inputs[0])
        case Pattern() if endless:
            return "all rows of the streams, because DELAY is UNBOUNDED"
        case Pattern(within=within):
            reach = f"{format_duration(within)} + {_slack(streams)}"
            return f"rows of ({reach}) at the rate of the streams, and the results that wait"
        case Join():
            return join_bound(node, _slack(streams), endless)
        case WindowAggregate() | WindowReport() if endless:
            return "all rows of the stream, because DELAY is UNBOUNDED"
        case WindowAggregate() | WindowReport():
            keep = streams[0].keep
            return node.window.bound(_slack(streams), f", until silent for {format_duration(keep)}" if keep else "")
