"""What a window in square brackets means: what is in it, when it is looked at, and in which order its rows stand."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan import windows
from headrace.plan.arrival import application_time, by_arrival
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, base_streams
from headrace.plan.profiles import PROFILES, Ability, Model, Policy, Settings, changed, unable
from headrace.plan.schema import Field, Schema
from headrace.plan.triggers import ONCE, EveryField, EveryInstant, EveryRows, EveryTime, OnClose, Trigger
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import CannotRun, Span, Text
from headrace.sql.parse import windows as written
from headrace.sql.parse.syntax import Scalar, Select, WindowClause, WindowSpec

ABILITIES: dict[type[WindowSpec], Ability] = {  # of windows that need the same, whatever they say
    written.RowsSpec: Ability.ROWS, written.UnboundedSpec: Ability.UNBOUNDED, written.SessionSpec: Ability.SESSION,
    written.DeltaSpec: Ability.DELTA, written.SpanSpec: Ability.SPAN,
}  # fmt: skip
_FIRST = "__first_"  # in front of the columns of the first row of a window, while names are looked up


@dataclass(frozen=True, slots=True)
class Looking:
    """A window that is looked at when something fires; `node` are its rows, in the order in which they count."""

    node: Node
    window: windows.LookedAt
    trigger: Trigger
    partition_by: tuple[Expr, ...]
    on_change: bool = False


def settings_of(select: Select, scope: Scope, default: Settings) -> Settings:
    """WITH (..) of a SELECT over what holds for the whole script. BATCH BY asks for the batch-driven model."""
    found = default
    for setting in sorted(select.settings, key=lambda s: s.key.text.lower() != "profile"):
        micros = None
        if setting.key.text.lower() == "origin":
            micros = written.instant_of(scope.text, setting.value)
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
        case written.RangeSpec(system=True):
            return Ability.SYSTEM
        case written.RangeSpec(lag=lag):
            return Ability.LAG if lag else Ability.RANGE
        case written.SizeSpec():
            return _ability_of_size(spec)
    return ABILITIES.get(type(spec), Ability.OURS)


def _ability_of_size(spec: written.SizeSpec) -> Ability:
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


def check_used(select: Select, look: Looking | windows.Window | None, spec: WindowSpec | None, scope: Scope) -> None:
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
        if key == "origin" and not (isinstance(spec, written.SizeSpec) and isinstance(trigger, EveryTime)):
            raise scope.text.error("origin says when the clock looks at a window, and it does not here", setting.key.span)
        if key == "order" and not spec.counts_rows:
            raise scope.text.error("order says how rows are counted, and none are here", setting.key.span)


def in_order(spec: WindowSpec, node: Node, settings: Settings) -> Node:
    """The rows of a window that every event looks at, by arrival if it says SYSTEM, or counts rows as they come."""
    system = (isinstance(spec, written.RangeSpec) and spec.system) or (isinstance(spec, written.RowsSpec) and settings.by_arrival)
    return by_arrival(node) if system else node


def looking(
    clause: WindowClause, node: Node, scope: Scope, settings: Settings, batch: Expr | None = None
) -> Looking | windows.Window:
    """How a window is looked at, or the window itself if every event looks at it."""
    spec = clause.spec
    by = tuple(scope.bind(b, "PARTITIONED BY") for b in spec.partition_by)
    together = settings.model is Model.TIME or (settings.model is Model.BATCH and batch is not None)
    match spec:
        case written.SizeSpec():
            return _sized(spec, node, scope, by, settings, EveryInstant(1, (), batch) if together else None)
        case written.SpanSpec(start=None, stop=int(stop), every=int(every)):
            return Looking(node, windows.UntilWindow(stop), EveryTime(every, stop), by)
        case written.SpanSpec(start=int(start), stop=None, every=int(every)):
            if settings.report is Policy.CHANGE:
                raise QueryError("LANDMARK is told at every slide", hint="WITH (report = 'every slide')")
            return Looking(node, windows.SpanWindow(start), EveryTime(every, start), by)
        case written.SpanSpec(start=int(start), stop=int(stop)):
            return Looking(node, windows.SpanWindow(start, stop), EveryTime(ONCE, stop), by)
        case written.SessionSpec(gap=gap):
            return Looking(node, windows.SessionWindow(gap), OnClose(), by)
        case written.DeltaSpec(limit=limit, on=on):
            return Looking(node, windows.DeltaWindow(limit, _delta(on, scope)), OnClose(), by)
        case written.RangeSpec() | written.RowsSpec() | written.UnboundedSpec():
            window = event_window(spec, scope)
            return Looking(in_order(spec, node, settings), window, EveryInstant(batch=batch), by) if together else window
    raise AssertionError(f"no meaning: {spec}")


def event_window(spec: written.EventSpec, scope: Scope) -> windows.Window:
    """The window that every event looks at."""
    match spec:
        case written.RangeSpec(size=size, lag=lag):
            return windows.RangeWindow(size, lag)
        case written.RowsSpec(rows=rows, partition_by=by):
            return windows.RowsWindow(rows, tuple(scope.bind(b, "PARTITIONED BY") for b in by))
        case written.UnboundedSpec():
            return windows.UnboundedWindow()


def _sized(
    spec: written.SizeSpec, node: Node, scope: Scope, by: tuple[Expr, ...], settings: Settings, instants: EveryInstant | None
) -> Looking:
    """`[SIZE .. EVERY ..]`: each in application time, system time, rows, or on a field."""
    system = spec.size.system or spec.every.system or (spec.counts_rows and settings.by_arrival)
    ordered = by_arrival(node) if system else node
    window = _eviction(spec, node, scope, by, system=system)
    trigger = _trigger(spec, node, scope, by, settings.origin, system=system)
    if settings.open_above and isinstance(trigger, EveryTime):
        trigger = windows.starting(trigger.every, window)
    if instants is not None and isinstance(trigger, EveryRows):
        trigger = EveryInstant(trigger.every, by, instants.batch)
    # A look that rows let happen always comes with a change; one of the clock may not.
    changes = settings.report is Policy.CHANGE and isinstance(trigger, EveryTime)
    if changes and not isinstance(window, windows.RangeWindow):
        hint = "give SIZE a time, or WITH (report = 'every slide')"
        raise QueryError("only a window of time can be told on content change, and this one is measured otherwise", hint=hint)
    return Looking(ordered, window, trigger, by, on_change=changes)


def _eviction(spec: written.SizeSpec, node: Node, scope: Scope, by: tuple[Expr, ...], *, system: bool) -> windows.LookedAt:
    if spec.size.unit == "rows":
        return windows.RowsWindow(int(spec.size.value), by)
    on = _field(spec.size, node, scope, system=system)
    return windows.RangeWindow(int(spec.size.value), spec.lag) if on is None else windows.FieldWindow(spec.size.value, on)


def _trigger(spec: written.SizeSpec, node: Node, scope: Scope, by: tuple[Expr, ...], origin: int, *, system: bool) -> Trigger:
    if spec.every.unit == "rows":
        return EveryRows(int(spec.every.value), by)
    on = _field(spec.every, node, scope, system=system)
    return EveryTime(int(spec.every.value), origin) if on is None else EveryField(spec.every.value, on)


def _field(amount: written.Amount, node: Node, scope: Scope, *, system: bool) -> Expr | None:
    """What a distance is measured on, if not on the time by which the rows stand."""
    if amount.on is None:
        return _clock(node) if system and not amount.system else None
    found = scope.bind(amount.on, "ON")
    kind = found.type_in(scope.schema).split("(")[0]
    if kind in ("STRING", "BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT", "TIMESTAMP", "DATE"):
        is_time = kind in ("TIMESTAMP", "DATE")
        hint = "for a time write a duration, for example SIZE 10 SECONDS" if is_time else "a number is needed"
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
    return Expr.of(exp.func("ABS", exp.Sub(this=exp.paren(bound), expression=exp.paren(of_first))))
