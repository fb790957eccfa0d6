"""What a window in square brackets means: what is in it, when it is looked at, and in which order its rows stand."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.arrival import application_time, by_arrival
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, base_streams
from headrace.plan.profiles import PROFILES, Ability, Model, Policy, Settings, changed, unable
from headrace.plan.schema import Field, Schema
from headrace.plan.triggers import ONCE, EveryField, EveryInstant, EveryRows, EveryTime, OnClose, Trigger
from headrace.plan.windows import (
    DeltaWindow,
    FieldWindow,
    LookedAt,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SpanWindow,
    UnboundedWindow,
    UntilWindow,
    Window,
    starting,
)
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import CannotRun, Span, Text
from headrace.sql.parse.syntax import Scalar, Select, WindowClause, WindowSpec
from headrace.sql.parse.windows import (
    Amount,
    DeltaSpec,
    EventSpec,
    RangeSpec,
    RowsSpec,
    SessionSpec,
    SizeSpec,
    SpanSpec,
    UnboundedSpec,
    instant_of,
)

_FIRST = "__first_"  # in front of the columns of the first row of a window, while names are looked up


@dataclass(frozen=True, slots=True)
class Looking:
    """A window that is looked at when something fires; `node` are its rows, in the order in which they count."""

    node: Node
    window: LookedAt
    trigger: Trigger
    partition_by: tuple[Expr, ...]
    on_change: bool = False


def settings_of(select: Select, scope: Scope, default: Settings) -> Settings:
    """WITH (..) of a SELECT over what holds for the whole script. BATCH BY asks for the batch-driven model."""
    found = default
    for setting in sorted(select.settings, key=lambda s: s.key.text.lower() != "profile"):
        micros = None
        if setting.key.text.lower() == "origin":
            micros = instant_of(scope.text, setting.value)
        at = setting.key.span.to(setting.value.span)
        with scope.text.at(at):
            found = changed(found, setting.key.text, setting.value.text, micros)
    if select.batch_by is not None and found.model is not Model.BATCH:
        return changed(found, "model", "batch")
    return found


def check_able(text: Text, settings: Settings, needs: Ability, span: Span) -> None:
    """Refuse what the engine of a profile cannot run: it would have no such answer."""
    why = unable(settings, needs)
    if why is not None:
        can = ", ".join(a.value for a in Ability if a in PROFILES[settings.engine].can)
        hint = f"it has {can}; leave the profile out, or give this query one of its own, WITH (profile = ..)"
        raise CannotRun(why, text, span, hint=hint)


def ability_of(spec: WindowSpec) -> Ability:
    """What a window in square brackets needs of an engine."""
    match spec:
        case RangeSpec(system=True):
            return Ability.SYSTEM
        case RangeSpec(lag=lag):
            return Ability.LAG if lag else Ability.RANGE
        case RowsSpec():
            return Ability.ROWS
        case SessionSpec():
            return Ability.SESSION
        case DeltaSpec():
            return Ability.DELTA
        case SpanSpec():
            return Ability.SPAN
        case SizeSpec():
            return _ability_of_size(spec)
        case UnboundedSpec():
            return Ability.UNBOUNDED
    return Ability.OURS


def _ability_of_size(spec: SizeSpec) -> Ability:
    size, every = spec.size, spec.every
    if (size.unit, size.system) != (every.unit, every.system):
        return Ability.MIXED
    match size.unit:
        case "rows":
            return Ability.COUNT
        case "field":
            return Ability.FIELD
    if spec.lag or size.system:
        return Ability.LAG if spec.lag else Ability.SYSTEM
    return Ability.JUMP if every.value > size.value else Ability.HOP


def check_used(select: Select, look: Looking | Window | None, spec: WindowSpec | None, scope: Scope) -> None:
    """Refuse what is said about the execution of a query and would change nothing: whoever wrote it expects something else."""
    trigger = look.trigger if isinstance(look, Looking) else None
    if select.batch_by is not None and (trigger is None or trigger.batch is None):
        hint = "it goes with windows that rows let be looked at, such as [ROWS 1], [RANGE 5 MINUTES] or [SIZE 10]"
        raise scope.text.error("BATCH BY changes nothing here", select.batch_by.span, hint=hint)
    seen: set[str] = set()
    for setting in select.settings:
        key = setting.key.text.lower()
        if key in seen:
            raise scope.text.error(f"{key} is there twice", setting.key.span)
        seen.add(key)
        if spec is None:
            raise scope.text.error("settings are about a window in square brackets, and there is none", setting.key.span)
        if key == "origin" and not (isinstance(spec, SizeSpec) and isinstance(trigger, EveryTime)):
            raise scope.text.error("origin says when the clock looks at a window, and it does not here", setting.key.span)
        if key == "order" and not _counts_rows(spec):
            raise scope.text.error("order says how rows are counted, and none are here", setting.key.span)


def _counts_rows(spec: WindowSpec) -> bool:
    return isinstance(spec, RowsSpec) or (isinstance(spec, SizeSpec) and "rows" in (spec.size.unit, spec.every.unit))


def in_order(spec: WindowSpec, node: Node, settings: Settings) -> Node:
    """The rows of a window that every event looks at, by arrival if it says SYSTEM, or counts rows as they come."""
    system = (isinstance(spec, RangeSpec) and spec.system) or (isinstance(spec, RowsSpec) and settings.by_arrival)
    return by_arrival(node) if system else node


def looking(clause: WindowClause, node: Node, scope: Scope, settings: Settings, batch: Expr | None = None) -> Looking | Window:
    """How a window is looked at, or the window itself if every event looks at it."""
    spec = clause.spec
    by = tuple(scope.bind(b, "PARTITIONED BY") for b in spec.partition_by)
    together = settings.model is Model.TIME or (settings.model is Model.BATCH and batch is not None)
    match spec:
        case SizeSpec():
            return _sized(spec, node, scope, by, settings, EveryInstant(1, (), batch) if together else None)
        case SpanSpec(start=None, stop=int(stop), every=int(every)):
            return Looking(node, UntilWindow(stop), EveryTime(every, stop), by)
        case SpanSpec(start=int(start), stop=None, every=int(every)):
            if settings.report is Policy.CHANGE:
                raise QueryError("LANDMARK is told at every slide", hint="WITH (report = 'every slide')")
            return Looking(node, SpanWindow(start), EveryTime(every, start), by)
        case SpanSpec(start=int(start), stop=int(stop)):
            return Looking(node, SpanWindow(start, stop), EveryTime(ONCE, stop), by)
        case SessionSpec(gap=gap):
            return Looking(node, SessionWindow(gap), OnClose(), by)
        case DeltaSpec(limit=limit, on=on):
            return Looking(node, DeltaWindow(limit, _delta(on, scope)), OnClose(), by)
        case RangeSpec() | RowsSpec() | UnboundedSpec():
            window = event_window(spec, scope)
            return Looking(in_order(spec, node, settings), window, EveryInstant(batch=batch), by) if together else window
    raise AssertionError(f"no meaning: {spec}")


def event_window(spec: EventSpec, scope: Scope) -> Window:
    """The window that every event looks at."""
    match spec:
        case RangeSpec(size=size, lag=lag):
            return RangeWindow(size, lag)
        case RowsSpec(rows=rows, partition_by=by):
            return RowsWindow(rows, tuple(scope.bind(b, "PARTITIONED BY") for b in by))
        case UnboundedSpec():
            return UnboundedWindow()


def _sized(
    spec: SizeSpec, node: Node, scope: Scope, by: tuple[Expr, ...], settings: Settings, instants: EveryInstant | None
) -> Looking:
    """`[SIZE .. EVERY ..]`: each in application time, system time, rows, or on a field."""
    rows = "rows" in (spec.size.unit, spec.every.unit)
    system = spec.size.system or spec.every.system or (rows and settings.by_arrival)
    ordered = by_arrival(node) if system else node
    window = _eviction(spec, node, scope, by, system=system)
    trigger = _trigger(spec.every, node, scope, by, settings, system=system)
    if settings.open_above and isinstance(trigger, EveryTime):
        trigger = starting(trigger.every, window)
    if instants is not None and isinstance(trigger, EveryRows):
        trigger = EveryInstant(trigger.every, by, instants.batch)
    # A look that rows let happen always comes with a change; one of the clock may not.
    changes = settings.report is Policy.CHANGE and isinstance(trigger, EveryTime)
    if changes and not isinstance(window, RangeWindow):
        hint = "give SIZE a time, or WITH (report = 'every slide')"
        raise QueryError("only a window of time can be told on content change, and this one is measured otherwise", hint=hint)
    return Looking(ordered, window, trigger, by, on_change=changes)


def _eviction(spec: SizeSpec, node: Node, scope: Scope, by: tuple[Expr, ...], *, system: bool) -> LookedAt:
    size = spec.size
    match size.unit:
        case "rows":
            return RowsWindow(int(size.value), by)
        case "field":
            return FieldWindow(size.value, _field(size, scope))
    if system and not size.system:
        return FieldWindow(size.value, _clock(node))
    return RangeWindow(int(size.value), spec.lag)


def _trigger(every: Amount, node: Node, scope: Scope, by: tuple[Expr, ...], settings: Settings, *, system: bool) -> Trigger:
    match every.unit:
        case "rows":
            return EveryRows(int(every.value), by)
        case "field":
            return EveryField(every.value, _field(every, scope))
    if system and not every.system:
        return EveryField(every.value, _clock(node))
    return EveryTime(int(every.value), settings.origin)


def _field(amount: Amount, scope: Scope) -> Expr:
    assert amount.on is not None
    found = scope.bind(amount.on, "ON")
    kind = found.type_in(scope.schema).split("(")[0]
    if kind in ("STRING", "BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT", "TIMESTAMP", "DATE"):
        hint = (
            "for a time write a duration, for example SIZE 10 SECONDS" if kind in ("TIMESTAMP", "DATE") else "a number is needed"
        )
        raise scope.text.error(f"a window cannot be measured on a {kind}", amount.on.span, hint=hint)
    return found


def _clock(node: Node) -> Expr:
    """Application time beside system time: measured as a field of rows that stand in the order of arrival."""
    streams = base_streams(node)
    if len(streams) > 1:
        raise QueryError("application and system time can be mixed over one stream only", hint="read one stream")
    return application_time(streams[0])


def _delta(on: Scalar, scope: Scope) -> Expr:
    """The distance of a row from the first of its window: what is written, or of one value the absolute difference."""
    tree = on.tree.copy()
    named = [c for c in tree.find_all(exp.Column) if c.table.lower() == "first"]
    for column in named:
        if not isinstance(column.this, exp.Identifier):
            raise scope.text.error("expected a column after 'first.'", on.span)
        column.replace(exp.column(exp.to_identifier(_FIRST + column.name, quoted=column.this.quoted)))
    both = Schema((*scope.schema.fields, *(Field(_FIRST + f.name, f.type) for f in scope.schema.fields)))
    wide = Scope(scope.text, both, scope.qualifiers, later=scope.later)
    bound = wide.bind(Scalar(tree, on.span), "DELTA").tree

    def first(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name.lower().startswith(_FIRST):
            return exp.column(exp.to_identifier(node.name[len(_FIRST) :], quoted=node.this.quoted), table="first")
        return node

    if named:
        return Expr.of(bound.transform(first))
    of_first = bound.copy()
    for column in list(of_first.find_all(exp.Column)):
        column.set("table", exp.to_identifier("first"))
    if isinstance(of_first, exp.Column):
        of_first.set("table", exp.to_identifier("first"))
    return Expr.of(exp.func("ABS", exp.Sub(this=exp.paren(bound), expression=exp.paren(of_first))))
