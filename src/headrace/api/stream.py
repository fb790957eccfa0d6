"""Streams in Python: immutable builders of the same plan that SQL makes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.api import run
from headrace.api.aggregates import Call
from headrace.api.joins import joined
from headrace.api.run import Frames, schema_of
from headrace.api.texts import bind, condition, duration, named, read
from headrace.api.windows import Size, Written, bind_window, names
from headrace.errors import QueryError, unknown
from headrace.plan import stream as base
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Project, Rejected, Scan, WindowAggregate, WindowReport, in_arrival_order
from headrace.plan.query import Emit, Using
from headrace.plan.time import unit_micros
from headrace.sql.bind.calls import Calls, Group
from headrace.sql.bind.policy import Looking
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from headrace.api.windows import WindowLike
    from headrace.plan.aggregates import Aggregate
    from headrace.plan.windows import Window

    Duration = str | int | timedelta

LEVELS = {level.value.lower(): level for level in Emit}
WAYS = {way.value.lower(): way for way in Using}
Items = list[tuple[str, Expr]]


@dataclass(frozen=True)
class Stream:
    """Rows in the order of time. Every method gives a new stream and leaves this one alone."""

    node: Node
    frames: Frames = field(default_factory=dict, repr=False, compare=False)

    def where(self, predicate: str) -> Stream:
        """Only rows for which the predicate is true."""
        return replace(self, node=Filter(self.node, condition(predicate, self.node.schema, "where")))

    having = where  # the same, by the word that SQL has behind an aggregate

    def select(self, *columns: str, **expressions: str) -> Stream:
        """New columns from old: names, `'expression AS name'`, `'*'`, or `name='expression'`."""
        schema = self.node.schema
        items: Items = []
        for column in columns:
            items += [(n, Expr.column(n)) for n in schema.names] if column == "*" else [named(column, schema, "select")]
        items += [(name, bind(sql, schema, name)) for name, sql in expressions.items()]
        return replace(self, node=Project(self.node, tuple(items)))

    def window(self, window: WindowLike) -> Windowed:
        """A window that is evaluated for every event."""
        _refuse_arrival_order(self.node)
        if not isinstance(window, Written):
            bind_window(window, self.node.schema)
        return Windowed(self, window)

    def score(self, *carry: str, **metrics: Call | str) -> Stream:
        """Several metrics of one event in one row, each over keys and a window of its own (`.over(..)`), beside its columns."""
        _refuse_arrival_order(self.node)
        schema = self.node.schema
        calls = Calls(Scope(Text(""), schema), None)
        items = [named(c, schema, "score") for c in carry]
        for name, call in metrics.items():
            if not isinstance(call, Call) or call.window is None:
                raise QueryError(
                    f"{name!r} needs a window of its own", hint="hr.sum('amount').over('card', hr.range('5 minutes'))"
                )
            keys = tuple(bind(k, schema, "over") for k in call.keys)
            items.append((name, _metric(calls, call.sql, name, Group(bind_window(call.window, schema), keys))))
        node = _stack(self.node, calls)
        return replace(self, node=Project(node, tuple(items)))

    def late(self) -> Stream:
        """The rows that came behind the frontier, in the order of arrival."""
        return replace(self, node=Late(self._base("late")))

    def rejected(self) -> Stream:
        """The rows that could not be read, or on which an expression failed, with the reason."""
        return replace(self, node=Rejected(self._base("rejected")))

    def emit(self, level: str, using: str = "optimistic") -> Output:
        """What leaves, and when: 'changes', 'final' or 'final in order', which of a pattern may be `using='kslack'`."""
        found, way = LEVELS.get(" ".join(str(level).lower().split())), WAYS.get(str(using).lower())
        if found is None:
            raise QueryError(unknown("level of emit", str(level), LEVELS))
        if way is None:
            raise QueryError(unknown("way to put rows in order", str(using), WAYS))
        return Output(self, found, way)

    def to_df(self) -> Any:
        """A Spark DataFrame of the changes; `.emit(..)` first for another level."""
        return self.emit("changes").to_df()

    def explain(self) -> str:
        """The plan, and what each rule of the optimizer made of it."""
        return run.explain_node(self.node)

    def _base(self, side: str) -> base.Stream:
        if not isinstance(self.node, Scan):
            raise QueryError(f"{side}() belongs to a stream as it is read", hint=f"call {side}() on what hr.stream(..) gave")
        return self.node.stream


@dataclass(frozen=True)
class Windowed:
    """A stream with a window; group it, or aggregate over all of it."""

    stream: Stream
    of: WindowLike
    keys: tuple[str, ...] = ()
    predicate: str | None = None

    def where(self, predicate: str) -> Windowed:
        """Drop rows behind the window: for ROWS they still take a place in it."""
        if self.predicate is not None:
            predicate = f"({self.predicate}) AND ({predicate})"
        condition(predicate, self.stream.node.schema, "where")
        return replace(self, predicate=predicate)

    def group_by(self, *keys: str) -> Windowed:
        """Look at the rows of the window that have the event's keys."""
        for key in keys:
            bind(key, self.stream.node.schema, "group_by")
        return replace(self, keys=self.keys + keys)

    def join(self, other: Windowed, on: str | Sequence[str] | Mapping[str, str] = (), how: str = "inner") -> Stream:
        """Pairs of rows that meet in their windows: `how` is inner, left, right or full.

        `on` names columns that both have, or maps expressions of this stream to those of the other. Columns of the other stream
        whose names are taken begin with `right_`.
        """
        for side in (self, other):
            if side.keys or side.predicate is not None:
                raise QueryError(
                    "a window that is joined has no where or group_by", hint="call where on the stream, before window"
                )
        node = joined((self.stream.node, self.of), (other.stream.node, other.of), on, how)
        return Stream(node, {**self.stream.frames, **other.stream.frames})

    def agg(self, *carry: str, **aggregates: Call | str) -> Stream:
        """One row per event: the keys, columns or expressions of the event (`carry`), and the aggregates.

        Over `hr.size(..)` one row per group and look instead: the keys, `window_start`, `window_end`, and the aggregates.

        An aggregate is a call such as `hr.sum("amount")`, or SQL text over calls: `share="SUM(amount) / COUNT(*)"`.
        """
        node, of = self._of()
        schema = node.schema
        items = [named(k, schema, "agg") for k in (*self.keys, *carry)]
        window = of.window if isinstance(of, Looking) else of
        group = Group(window, tuple(bind(k, schema, "group_by") for k in self.keys))
        calls = Calls(Scope(Text(""), schema), group)
        for name, call in aggregates.items():
            if isinstance(call, Call) and call.window is not None:
                raise QueryError(f"{name!r} has a window of its own", hint="use stream.score(..) for several windows in one row")
            items.append((name, _metric(calls, call.sql if isinstance(call, Call) else call, name, group)))
        if not calls.found[group]:
            raise QueryError("agg() needs at least one aggregate", hint="for example total=hr.sum('amount')")
        where = condition(self.predicate, schema, "where") if self.predicate else None
        if isinstance(of, Looking):
            return replace(self.stream, node=self._report(of, carry, items, calls.found[group], where))
        return replace(self.stream, node=Project(_stack(node, calls, where), tuple(items)))

    def _of(self) -> tuple[Node, Window | Looking]:
        """The rows of the window, and how it is looked at."""
        node = self.stream.node
        match self.of:
            case Written():
                return self.of.bind(node)
            case Size(window=window, trigger=trigger):
                return node, Looking(node, window, trigger, ())
        return node, bind_window(self.of, node.schema)

    def _report(
        self, look: Looking, carry: tuple[str, ...], items: list[tuple[str, Expr]], calls: list[Aggregate], where: Expr | None
    ) -> Node:
        if carry:
            raise QueryError(f"{carry[0]!r} has no one value in a group", hint="add it to group_by(..), or aggregate it")
        by = [(e.as_column or f"_key{i}", e) for i, e in enumerate(look.partition_by)]
        keys = tuple({e: (n, e) for n, e in (*by, *items[: len(self.keys)])}.values())
        node = WindowReport(look.node, look.window, look.trigger, keys, tuple(calls), where, look.on_change)
        names = [*(name for name, _ in keys), *(f.name for f in node.window.bounds)]
        return Project(node, (*((n, Expr.column(n)) for n in names), *items[len(self.keys) :]))


@dataclass(frozen=True)
class Output:
    """A stream and its level of emit: something that can be written."""

    stream: Stream
    level: Emit
    using: Using = Using.OPTIMISTIC

    def to_df(self) -> Any:
        """A Spark DataFrame of the results, for a writeStream of one's own."""
        return run.to_df(self)

    def explain(self) -> str:
        """The plan, and what each rule of the optimizer made of it."""
        return f"EMIT {self.level.value}\n{self.stream.explain()}"


def _metric(calls: Calls, sql: str, name: str, group: Group) -> Expr:
    text, value, _ = read(sql, name)
    return calls.bind(value, name=name, scope=replace(calls.scope, text=text), group=group)


def _stack(node: Node, calls: Calls, where: Expr | None = None) -> Node:
    """One aggregate step per window and keys, each adding columns to the event."""
    for group, aggregates in calls.found.items():
        node = WindowAggregate(node, group.window, group.keys, tuple(aggregates), where)
    return node


def stream(
    frame: Any,
    timestamp: str | None = None,
    delay: Duration | None = None,
    *,
    punctuated_by: str | None = None,
    name: str | None = None,
    timestamp_unit: str = "millisecond",
    idle: Duration | None = None,
    ahead: Duration | None = None,
    end_after: Duration | None = None,
    keep: Duration | None = None,
    unique_by: str | Sequence[str] | None = None,
    unique_within: Duration | None = None,
    position: tuple[str, str] | None = None,
) -> Stream:
    """A stream of the rows of a Spark DataFrame, streaming or static.

    `timestamp` is the column or SQL expression of the event's time (an integer is in `timestamp_unit`s); without it, the time of
    arrival. `delay` is how late a row may come: '10 seconds', 0, or 'unbounded'. `name` identifies the stream in checkpoints.
    `punctuated_by` is a column or SQL expression; a row where it is not NULL is no event, but says that no more come up to then.
    `position` names the columns (partition, offset) that place a row in its source; those of Kafka, if the DataFrame has them.
    Without them rows stand in the order of the files that they are read from.
    """
    schema = schema_of(frame)
    called = name or "stream"
    for column in position or ():
        schema.field(column)
    found = base.Stream(
        name=called,
        source=base.FrameSource(called, position or base.kafka_position(schema)),
        schema=schema,
        timestamp=bind(timestamp, schema, "timestamp") if timestamp is not None else None,
        timestamp_unit=unit_micros(timestamp_unit),
        delay=_delay(delay),
        punctuation=bind(punctuated_by, schema, "punctuated_by") if punctuated_by is not None else None,
        unique=_unique(unique_by, unique_within, schema),
        idle=_optional(idle, "idle"),
        ahead=_optional(ahead, "ahead"),
        end_after=_optional(end_after, "end_after"),
        keep=_optional(keep, "keep"),
    )
    return Stream(Scan(found), {called: frame})


def _optional(value: Duration | None, clause: str) -> int | None:
    return None if value is None else duration(value, clause)


def _delay(delay: Duration | None) -> int | base.Bound | None:
    if isinstance(delay, str) and delay.strip().lower() == "unbounded":
        return base.Bound.UNBOUNDED
    return _optional(delay, "delay")


def _unique(by: str | Sequence[str] | None, within: Duration | None, schema: Any) -> base.Unique | None:
    if by is None and within is None:
        return None
    if by is None or within is None:
        raise QueryError("unique_by and unique_within go together")
    return base.Unique(tuple(bind(b, schema, "unique_by") for b in names(by)), duration(within, "unique_within"))


def _refuse_arrival_order(node: Node) -> None:
    if in_arrival_order(node):
        raise QueryError("late and rejected rows stand in the order of arrival, which has no windows")
