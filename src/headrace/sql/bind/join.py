"""Two streams in FROM -> a join: whose column is meant, what is a key, and what is a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.errors import unknown
from headrace.plan.expr import Expr, all_of, conjuncts
from headrace.plan.joins import KEY_HINT, Join, JoinKind, common_type
from headrace.plan.nodes import Filter, Node, Project, in_arrival_order
from headrace.plan.query import is_table
from headrace.plan.windows import RangeWindow, UnboundedWindow, Window
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.meeting import TIMES, meeting
from headrace.sql.bind.policy import event_window
from headrace.sql.bind.scope import Scope, place, renamed
from headrace.sql.errors import Span, Text
from headrace.sql.parse.syntax import From, Joined, Scalar, Select, Star
from headrace.sql.parse.windows import RangeSpec, RowsSpec, SizeSpec, UnboundedSpec

Pair = tuple[Expr, Expr]

KINDS = {"CROSS": JoinKind.INNER, "INNER": JoinKind.INNER, "LEFT": JoinKind.LEFT, "RIGHT": JoinKind.RIGHT, "FULL": JoinKind.FULL}
WINDOW_HINT = "for example [RANGE 5 MINUTES], [ROWS 1 PARTITIONED BY key], [UNBOUNDED] or [NOW]"
ON_HINT = "ON of an outer join takes equalities of the two streams; put the other condition into WHERE, or into FROM (SELECT ..)"


@dataclass(frozen=True)
class Named:
    """One side: what may stand before the dot, and its columns by lower-case name, each with its name in the joined row."""

    qualifier: str | None
    columns: dict[str, tuple[str, str]]  # -> (as it is spelt, in the joined row)


@dataclass(frozen=True)
class JoinScope(Scope):
    """The columns of both sides. A name that both have needs the stream before it."""

    sides: tuple[Named, ...] = ()

    def own(self, parts: list[exp.Identifier], where: Span) -> list[exp.Identifier]:
        """The column that is meant, by its name in the joined row, and the fields below it."""
        if len(parts) > 1:
            for side in self.sides:
                if side.qualifier is not None and parts[0].name.lower() == side.qualifier.lower():
                    found = side.columns.get(parts[1].name.lower())
                    if found is None:
                        names = [spelt for spelt, _ in side.columns.values()]
                        raise self.text.error(unknown("column", parts[1].name, names), place(parts[1], where))
                    return [renamed(parts[1], found[1]), *parts[2:]]
        name = parts[0].name.lower()
        if len(parts) == 1 and name in self.aliases:
            return parts
        holders = [side for side in self.sides if name in side.columns]
        if len(holders) > 1:
            qualified = " or ".join(f"{s.qualifier}.{parts[0].name}" for s in holders if s.qualifier)
            hint = f"write {qualified}" if qualified else "give the streams names with AS"
            raise self.text.error(f"both streams have a column {parts[0].name!r}", place(parts[0], where), hint=hint)
        return [renamed(parts[0], holders[0].columns[name][1]), *parts[1:]] if holders else parts

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of both sides, as they are spelt there."""
        return tuple(dict.fromkeys(spelt for side in self.sides for spelt, _ in side.columns.values()))

    def star(self, star: Star) -> list[tuple[str, Expr]]:
        """`*` is all columns of both sides, `x.*` those of one."""
        self.check_star(star)
        wanted = None if star.qualifier is None else star.qualifier.text.lower()
        sides = [s for s in self.sides if wanted is None or (s.qualifier or "").lower() == wanted]
        return [(spelt, Expr.column(name)) for s in sides for spelt, name in s.columns.values()]


def bind_join(
    select: Select, source: Joined, catalog: Catalog, read: Callable[[From, Catalog], Node], later: frozenset[str]
) -> tuple[Node, JoinScope, Select]:
    """The join, its columns, and what is left of the SELECT: conditions of WHERE are part of the join."""
    text, kind = catalog.text, KINDS[source.kind]
    nodes = [_side(side, catalog, read) for side in (source.left, source.right)]
    names = [side.qualifier for side in (source.left, source.right)]
    if names[0] is not None and names[1] is not None and names[0].lower() == names[1].lower():
        hint = f"name them: {names[0]} .. AS x JOIN {names[1]} .. AS y"
        raise text.error(f"both streams are called {names[0]!r} here", source.right.span, hint=hint)
    meets = meeting((source.left, source.right), nodes, text, outer=any(kind.preserved))
    if meets is not None:
        nodes = list(meets.nodes)
    sides, nodes = _tell_apart(names, nodes)
    columns = replace(nodes[0].schema, fields=nodes[0].schema.fields + nodes[1].schema.fields)
    scope = JoinScope(text, columns, tuple(n for n in names if n), later=later, sides=sides)
    tables = [is_table(node) for node in nodes]
    both = zip((source.left, source.right), sides, (tables, tables[::-1]), strict=True)
    windows = [_window(side, scope, named, *facts) for side, named, facts in both]
    on, rest = _conditions(source.on, "ON", nodes, scope)
    above: list[Expr] = []
    if any(kind.preserved):
        for predicate, at in rest:
            _push(predicate, at, kind, nodes, windows, text)
        above += [scope.condition(select.where, "WHERE")] if select.where else []
    else:
        keys, more = _conditions(select.where, "WHERE", nodes, scope)
        on += [pair for pair in keys if pair not in on]
        above += [predicate for predicate, _ in (*rest, *more)] + ([] if meets is None else [meets.predicate])
    with text.at(source.span):
        node: Node = Join(nodes[0], nodes[1], windows[0], windows[1], kind, tuple(on))
    condition = all_of(tuple(above))
    return Filter(node, condition) if condition is not None else node, scope, replace(select, where=None)


def _side(side: From, catalog: Catalog, read: Callable[[From, Catalog], Node]) -> Node:
    node = read(side, catalog)
    if in_arrival_order(node):
        raise catalog.text.error("late and rejected rows stand in the order of arrival, which has no joins", side.span)
    if side.window is not None and side.window.predicate is not None:
        scope = Scope(catalog.text, node.schema, side.qualifiers)
        node = Filter(node, scope.condition(side.window.predicate, "WHERE"))
    return node


def _tell_apart(names: Sequence[str | None], nodes: list[Node]) -> tuple[tuple[Named, ...], list[Node]]:
    """Columns of one name get others, with that of their stream in front."""
    fields = [{f.name.lower(): f.name for f in node.schema.fields} for node in nodes]
    both = set(fields[0]) & set(fields[1])
    taken = set(fields[0]) | set(fields[1])
    out, sides = [], []
    for i, (name, node) in enumerate(zip(names, nodes, strict=True)):
        own = {}
        for field in node.schema.fields:
            new = field.name
            if field.name.lower() in both:
                new = _free(f"{name or ('left', 'right')[i]}_{field.name}", taken)
            own[field.name.lower()] = (field.name, new)
        sides.append(Named(name, {n: column for n, column in own.items() if n not in TIMES}))
        items = tuple((new, Expr.column(old)) for old, new in own.values())
        out.append(Project(node, items) if both else node)
    return tuple(sides), out


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _window(side: From, scope: JoinScope, named: Named, table: bool, with_table: bool) -> Window:
    clause = side.window
    if clause is None and table:
        return UnboundedWindow()
    if clause is None and with_table:
        return RangeWindow(1)  # rows of a table never come later, so a row need not wait for them
    if clause is None:
        raise scope.text.error("a stream that is joined needs a window", side.span, hint=WINDOW_HINT)
    with scope.text.at(clause.span):
        match clause.spec:
            case RangeSpec() | RowsSpec() | UnboundedSpec():
                return event_window(clause.spec, replace(scope, sides=(named,)))
            case SizeSpec(size=size, lag=lag):
                return RangeWindow(int(size.value), lag)
    raise scope.text.error("a stream is joined by every row, not when its window is looked at", clause.span, hint=WINDOW_HINT)


def _conditions(
    value: Scalar | None, clause: str, nodes: list[Node], scope: JoinScope
) -> tuple[list[Pair], list[tuple[Expr, Span]]]:
    """The equalities between the two sides, and the other conditions with their place."""
    if value is None:
        return [], []
    keys: list[Pair] = []
    rest: list[tuple[Expr, Span]] = []
    for part in conjuncts(scope.condition(value, clause).tree):
        pair = _key(part, nodes)
        if pair is not None:
            types = [e.type_in(n.schema) for e, n in zip(pair, nodes, strict=True)]
            if common_type(*types) is None:
                raise scope.text.error(f"{types[0]} and {types[1]} cannot be equal", value.span, hint=KEY_HINT)
            keys.append(pair)
        else:
            rest.append((Expr.of(part), value.span))
    return keys, rest


def _key(part: exp.Expr, nodes: list[Node]) -> Pair | None:
    inner = part.unnest()
    if not isinstance(inner, exp.EQ):
        return None
    ends = [Expr.of(end.unnest()) for end in (inner.this, inner.expression)]
    for left, right in (ends, ends[::-1]):
        if side_of(left, nodes) == 0 and side_of(right, nodes) == 1:
            return left, right
    return None


def side_of(expr: Expr, nodes: Sequence[Node]) -> int | None:
    """The side that all columns of an expression are of; None if there is not one."""
    found = {next(i for i, node in enumerate(nodes) if node.schema.has(name)) for name in expr.columns}
    return found.pop() if len(found) == 1 else None


def _push(predicate: Expr, at: Span, kind: JoinKind, nodes: list[Node], windows: list[Window], text: Text) -> None:
    """A condition on the side whose rows need not be shown holds before its window, where that changes nothing."""
    side = side_of(predicate, nodes)
    if side is None or kind.preserved[side]:
        raise text.error(f"{predicate} cannot stand in ON of a {kind.value}", at, hint=ON_HINT)
    if windows[side].counts_rows:
        raise text.error(
            f"{predicate} in ON of a {kind.value} cannot tell which rows {windows[side]} counts", at,
            hint="put it into the brackets of the window: [ROWS .. WHERE ..]",
        )  # fmt: skip
    nodes[side] = Filter(nodes[side], predicate)
