"""SELECT over a window that is looked at when something fires: one row for every group that is in it."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.plan.expr import Expr
from headrace.plan.nodes import WindowReport
from headrace.plan.schema import Schema
from headrace.sql.bind.calls import Calls, Group
from headrace.sql.bind.policy import Looking
from headrace.sql.bind.scope import Scope, place
from headrace.sql.parse.syntax import Item, Scalar, Select, Star, WindowClause

GROUP_HINT = "there are the keys of GROUP BY and PARTITIONED BY, window_start, window_end, and aggregates"


class Report:
    """The parts of such a SELECT while it is bound: keys under their names, and the calls of aggregates."""

    def __init__(self, select: Select, clause: WindowClause, looking: Looking, scope: Scope, keys: tuple[Expr, ...]) -> None:
        """`keys` are those of GROUP BY; what the window is partitioned by comes in front of them."""
        self.clause, self.looking, self.scope = clause, looking, scope
        by = looking.partition_by
        self.where = scope.condition(select.where, "WHERE") if select.where else None
        unique = list(dict.fromkeys((*by, *keys)))
        self.keys = tuple((k.as_column or f"_key{i}", k) for i, k in enumerate(unique))
        self.bounds = looking.window.bounds
        bounds = tuple(f for f in self.bounds if not scope.schema.has(f.name))
        self.wide = replace(scope, schema=Schema(scope.schema.fields + bounds))
        self.calls = Calls(scope, Group(looking.window, tuple(unique)))

    def items(self, select: Select) -> list[tuple[Item, Expr]]:
        """The columns of the SELECT, over those of the report."""
        out = []
        for item in select.items:
            if isinstance(item, Star):
                raise self.scope.text.error("* has no meaning for a group of rows", item.span, hint=GROUP_HINT)
            name = item.alias.text if item.alias else None
            out.append((item, self._over_groups(self.calls.bind(item.value, name=name, scope=self.wide), item.value)))
        return out

    def having(self, select: Select, bound: list[tuple[Item, Expr]]) -> Expr | None:
        """The condition of HAVING, over the columns of the report."""
        if select.having is None:
            return None
        named = {i.alias.text.lower(): e for i, e in bound if i.alias}
        condition = self.calls.bind(select.having, scope=replace(self.wide, aliases=named))
        return self._over_groups(condition, select.having, set(named.values()))

    def plan(self) -> WindowReport:
        """The node, once all calls are known."""
        with self.scope.text.at(self.clause.span):
            ((_, aggregates),) = self.calls.found.items()
            look = self.looking
            return WindowReport(look.node, look.window, look.trigger, self.keys, tuple(aggregates), self.where, look.on_change)

    def _over_groups(self, expr: Expr, written: Scalar, known: set[Expr] | None = None) -> Expr:
        """The same over the columns of the report: a key by its name. What is no key has no one value in a group."""
        names = {k.tree: n for n, k in self.keys}
        shown = {n.lower() for n, _ in self.keys} | {f.name for f in self.bounds}
        shown |= {a.name.lower() for a in next(iter(self.calls.found.values()))}
        if known and expr in known:
            return expr

        def visit(tree: exp.Expr) -> exp.Expr:
            return Expr.column(names[tree]).tree if tree in names else tree

        found = Expr.of(expr.tree.transform(visit))
        for name in found.columns:
            if name.lower() not in shown:
                at = next((c for c in written.tree.find_all(exp.Column) if c.name.lower() == name.lower()), written.tree)
                where = place(at, written.span)
                hint = f"add it to GROUP BY; {GROUP_HINT}"
                raise self.scope.text.error(f"{name!r} has no one value in a group", where, hint=hint)
        return found
