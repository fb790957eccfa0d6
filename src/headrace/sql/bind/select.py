"""SELECT -> plan nodes."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Rejected, Scan, WindowAggregate, base_stream, in_arrival_order
from headrace.plan.profiles import Ability
from headrace.plan.windows import Window
from headrace.sql.bind.calls import Calls, Group
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.columns import project
from headrace.sql.bind.join import bind_join
from headrace.sql.bind.pattern import bind_event
from headrace.sql.bind.policy import Looking, ability_of, check_able, check_used, in_order, looking, settings_of
from headrace.sql.bind.recognize import bind_recognize
from headrace.sql.bind.relation import HINT as LOOKS_HINT
from headrace.sql.bind.relation import leaving, to_stream
from headrace.sql.bind.report import Report
from headrace.sql.bind.scope import Scope, aggregate_name, find_over, has_aggregate, place
from headrace.sql.errors import Span
from headrace.sql.parse.syntax import Event, From, FromStream, Item, Joined, Recognize, Scalar, Select, WindowClause

WINDOW_HINT = "put a window behind the stream, for example [RANGE 5 MINUTES]"


def bind_select(select: Select, catalog: Catalog) -> Node:
    node: Node
    scope: Scope
    if isinstance(select.source, Joined):
        node, scope, select = bind_join(select, select.source, catalog, _relation, _aliases(select))
    else:
        node = _relation(select.source, catalog)
        scope = Scope(catalog.text, node.schema, select.source.qualifiers, later=_aliases(select))
    clause = _one_window(select, scope)
    over = _first_over(select)
    if (clause or over) and in_arrival_order(node):
        span = clause.span if clause else select.source.span
        raise scope.text.error("late and rejected rows stand in the order of arrival, which has no windows", span)
    settings = settings_of(select, scope, catalog.settings)
    if isinstance(select.source, Joined):
        check_able(scope.text, settings, Ability.JOIN, select.source.span)
    elif over is not None:
        check_able(scope.text, settings, Ability.OVER, over)
    elif clause is not None:
        check_able(scope.text, settings, ability_of(clause.spec), clause.span)
    if select.batch_by and clause is None:
        message = "BATCH BY says when a window is looked at, and there is none"
        raise scope.text.error(message, select.batch_by.span, hint=WINDOW_HINT)
    if select.relation and (clause is None or over is not None) and select.relation.text != "ISTREAM":
        message = f"{select.relation.text} needs a window that rows leave"
        raise scope.text.error(message, select.relation.span, hint=LOOKS_HINT)
    if over is not None or clause is None:
        check_used(select, None, None, scope)
        return _select_plain(select, node, scope) if over is None else _select_over(select, node, scope, over)
    if clause.predicate:
        node = Filter(node, scope.condition(clause.predicate, "WHERE"))
    batch = scope.bind(select.batch_by, "BATCH BY") if select.batch_by else None
    with scope.text.at(clause.span):
        look = looking(clause, node, scope, settings, batch)
        node = node if isinstance(look, Looking) else in_order(clause.spec, node, settings)
    check_used(select, look, clause.spec, scope)
    if isinstance(look, Looking):
        return _select_report(select, clause, look, scope)
    if select.relation is not None:
        found = _of_rows(select, select.relation.text, clause, look, node, scope)
        if found is not None:
            return found
    return _select_window(select, clause, look, node, scope)


def _relation(source: From, catalog: Catalog) -> Node:
    match source.relation:
        case Select():
            return bind_select(source.relation, catalog)
        case Event():
            return bind_pattern(source.relation, catalog)
        case Recognize():
            check_able(catalog.text, catalog.settings, Ability.RECOGNIZE, source.relation.span)
            return bind_recognize(source.relation, catalog, _relation)
    return _named(source.relation, catalog)


def bind_pattern(event: Event, catalog: Catalog) -> Node:
    check_able(catalog.text, catalog.settings, Ability.PATTERN, event.span)
    return bind_event(event, catalog, _relation)


def _named(relation: FromStream, catalog: Catalog) -> Node:
    node = catalog.stream(relation.name)
    if relation.side is None:
        return node
    if not isinstance(node, Scan):
        hint = f"write {relation.side}({base_stream(node).name})"
        message = f"{relation.name.text!r} is derived: it has no {relation.side} rows of its own"
        raise catalog.text.error(message, relation.name.span, hint=hint)
    return Late(node.stream) if relation.side == "late" else Rejected(node.stream)


def _aliases(select: Select) -> frozenset[str]:
    return frozenset(i.alias.text.lower() for i in select.items if isinstance(i, Item) and i.alias)


def _one_window(select: Select, scope: Scope) -> WindowClause | None:
    first, second = select.source.window, select.group_window
    if first and second:
        raise scope.text.error("there are two windows", second.span, hint="write it behind the stream or behind GROUP BY")
    return first or second


def _of_rows(select: Select, relation: str, clause: WindowClause, window: Window, node: Node, scope: Scope) -> Node | None:
    """ISTREAM or DSTREAM over a window that every event looks at; None where it gives what it would give without the word."""
    plain = not select.group_by and not any(has_aggregate(i.value) for i in select.items if isinstance(i, Item))
    if relation == "ISTREAM":
        return _select_plain(select, node, scope) if plain else None  # rows come into a window as they come
    if plain and relation == "DSTREAM" and window.edges:
        with scope.text.at(clause.span):
            node = leaving(node, window)
        return _select_plain(select, node, scope)
    assert select.relation is not None
    message = f"{relation} of a window that every event looks at would repeat its groups at every event"
    raise scope.text.error(message, select.relation.span, hint=LOOKS_HINT)


def _first_over(select: Select) -> Span | None:
    found = ((find_over(i.value), i.value.span) for i in select.items if isinstance(i, Item))
    return next((place(over, span) for over, span in found if over is not None), None)


# --- the three kinds of SELECT


def _select_plain(select: Select, node: Node, scope: Scope) -> Node:
    """No window: rows one by one."""
    text = scope.text
    for value in [i.value for i in select.items if isinstance(i, Item)] + [v for v in [select.having] if v]:
        if call := next(filter(aggregate_name, value.tree.walk()), None):
            where = place(call, value.span)
            raise text.error("an aggregate over an endless stream needs a window", where, hint=WINDOW_HINT)
    if select.group_by:
        raise text.error("GROUP BY needs a window and an aggregate", select.group_by[0].span, hint=WINDOW_HINT)
    if select.having:
        raise text.error("HAVING needs a window and an aggregate", select.having.span, hint="WHERE filters rows")
    if select.where:
        node = Filter(node, scope.condition(select.where, "WHERE"))
    bound = [(i, scope.bind(i.value, "SELECT")) for i in select.items if isinstance(i, Item)]
    return project(select.items, select.span, node, scope, bound)


def _select_window(select: Select, clause: WindowClause, window: Window, node: Node, scope: Scope) -> Node:
    """A window in square brackets: one row per event, with the aggregates of its group.

    WHERE applies after the window, so it is part of the aggregate and not below it.
    """
    where = scope.condition(select.where, "WHERE") if select.where else None
    keys = tuple(_key(select, key, scope) for key in select.group_by)
    calls = Calls(scope, Group(window, keys))
    bound = [(i, calls.bind(i.value, name=i.alias.text if i.alias else None)) for i in select.items if isinstance(i, Item)]
    having = None
    if select.having:
        named = {i.alias.text.lower(): e for i, e in bound if i.alias}
        having = calls.bind(select.having, scope=replace(scope, aliases=named))
    if not any(calls.found.values()):
        hint = "without one, leave the window out: every event gives one row"
        raise scope.text.error("a window needs an aggregate, such as SUM or COUNT", clause.span, hint=hint)
    with scope.text.at(clause.span):
        ((group, aggregates),) = calls.found.items()
        node = WindowAggregate(node, group.window, group.keys, tuple(aggregates), where)
    if having is not None and select.having is not None:
        node = Filter(node, scope.check_condition(having, select.having, "HAVING", node.schema))
    return project(select.items, select.span, node, scope, bound)


def _select_report(select: Select, clause: WindowClause, look: Looking, scope: Scope) -> Node:
    """A window that is looked at when something fires: one row per group in it."""
    report = Report(select, clause, look, scope, tuple(_key(select, key, scope) for key in select.group_by))
    bound = report.items(select)
    having = report.having(select, bound)
    node: Node = report.plan()
    if having is not None and select.having is not None:
        having = scope.check_condition(having, select.having, "HAVING", node.schema)
    with scope.text.at(clause.span):
        node = to_stream(node, select.relation, [value for _, value in bound], having, scope)
    return project(select.items, select.span, node, scope, bound)


def _select_over(select: Select, node: Node, scope: Scope, over: Span) -> Node:
    """OVER (..): several windows and keys beside each other, in one row per event.

    Here WHERE comes first, as in standard SQL: rows that it drops are in no window.
    """
    text = scope.text
    if select.source.window or select.group_window or select.group_by:
        raise text.error("OVER (..) cannot be mixed with GROUP BY or a window in square brackets", over)
    if select.having:
        raise text.error("HAVING goes with GROUP BY", select.having.span, hint="put the SELECT into FROM (..) and use WHERE")
    if select.where:
        node = Filter(node, scope.condition(select.where, "WHERE"))
    calls = Calls(scope, None, base_stream(node).timestamp)
    bound = [(i, calls.bind(i.value, name=i.alias.text if i.alias else None)) for i in select.items if isinstance(i, Item)]
    for group, aggregates in calls.found.items():
        with text.at(over):
            node = WindowAggregate(node, group.window, group.keys, tuple(aggregates))
    return project(select.items, select.span, node, scope, bound)


# --- parts


def _key(select: Select, key: Scalar, scope: Scope) -> Expr:
    """A key: an expression of the event, or the name of a SELECT item."""
    if isinstance(key.tree, exp.Literal):
        raise scope.text.error("GROUP BY takes columns and expressions, not positions", key.span)
    column = key.tree if isinstance(key.tree, exp.Column) else None
    if column is not None and len(column.parts) == 1 and not scope.schema.has(column.name):
        for item in select.items:
            if isinstance(item, Item) and item.alias and item.alias.text.lower() == column.name.lower():
                return scope.bind(item.value, "GROUP BY")
    return scope.bind(key, "GROUP BY")
