"""Names in DEFINE and MEASURES: which row of the match a column is of, and what PREV, FIRST and LAST mean there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.plan.aggregates import function
from headrace.sql.bind.scope import aggregate_name, place

if TYPE_CHECKING:
    from headrace.sql.bind.recognize import Part
    from headrace.sql.errors import Span, Text
    from headrace.sql.parse.syntax import Scalar

NAVIGATION = ("PREV", "NEXT", "CLASSIFIER", "MATCH_NUMBER")
PREV_HINT = "PREV(x) is the row of the symbol before, which must stand for one row"


@dataclass(frozen=True)
class Reader:
    """Turns expressions over symbols into expressions over the places of a pattern."""

    text: Text
    parts: tuple[Part, ...]
    skipped: frozenset[str]  # symbols of rows in between, in small letters

    def condition(self, value: Scalar, at: int) -> exp.Expr:
        """A condition of DEFINE for the row at one place: bare columns are its own, others stand before it."""
        return self._rewrite(value, at)

    def measure(self, value: Scalar) -> exp.Expr:
        """A measure: bare columns are those of the last row of the match."""
        return self._rewrite(value, None)

    def _rewrite(self, value: Scalar, at: int | None) -> exp.Expr:
        def visit(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Anonymous) and str(node.this).upper() in NAVIGATION:
                return self._previous(node, at, value.span)
            if isinstance(node, exp.Filter):
                return self._filtered(node, at, value.span)
            name = aggregate_name(node)
            if name is not None:
                return self._call(node, name, at, value.span)
            return self._column(node, at, value.span) if isinstance(node, exp.Column) else node

        return value.tree.transform(visit)

    # --- columns

    def _column(self, node: exp.Column, at: int | None, where: Span) -> exp.Expr:
        symbol, rest = self._split(node)
        if node.parts[0].name.lower() in self.skipped and len(node.parts) > 1:
            message = f"{node.parts[0].name} is any rows in between, and a match has no columns of them"
            raise self.text.error(message, place(node.parts[0], where))
        if symbol is None:
            return self._of(len(self.parts) - 1 if at is None else at, node, rest, where)
        places = self._places(symbol)
        if at is not None and at in places:
            return self._of(at, node, rest, where)
        self._check_before(places, at, node, where)
        if self.parts[places[-1]].symbol.repeated:
            written = ".".join(p.name for p in rest)
            hint = f"write LAST({symbol}.{written}), FIRST({symbol}.{written}) or another aggregate"
            raise self.text.error(f"{symbol} stands for several rows", place(node.parts[0], where), hint=hint)
        return self._of(places[-1], node, rest, where)

    def _split(self, node: exp.Column) -> tuple[str | None, list[exp.Identifier]]:
        """The symbol in front of a column, and the column with its fields."""
        parts = [p for p in node.parts if isinstance(p, exp.Identifier)]
        if isinstance(node.this, exp.Star):
            return parts[0].name if parts else None, []
        if len(parts) > 1 and self._places(parts[0].name):
            return parts[0].name, parts[1:]
        return None, parts

    def _places(self, symbol: str) -> list[int]:
        return [i for i, p in enumerate(self.parts) if p.symbol.name.text.lower() == symbol.lower()]

    def _of(self, at: int, node: exp.Column, rest: list[exp.Identifier], where: Span) -> exp.Expr:
        """A column, and its fields, of one place."""
        owner = exp.to_identifier(self.parts[at].name, quoted=True)
        first = node.parts[0]
        owner.meta.update(first.meta)
        names = [owner, *(p.copy() for p in rest)]
        if len(names) > 4:
            raise self.text.error("a name has at most four parts", place(node, where))
        return exp.Column(**dict(zip(("this", "table", "db", "catalog"), reversed(names), strict=False)))

    def _check_before(self, places: list[int], at: int | None, node: exp.Expr, where: Span) -> None:
        if at is not None and places[0] > at:
            own, other = self.parts[at].symbol.name.text, self.parts[places[0]].symbol.name.text
            hint = f"compare them in DEFINE {other}"
            raise self.text.error(f"{other} comes after {own}, and is not known yet", place(node, where), hint=hint)

    # --- functions

    def _call(self, node: exp.Expr, name: str, at: int | None, where: Span) -> exp.Expr:
        """FIRST and LAST of a symbol that stands for a fixed number of rows are columns; the rest is about repeated ones."""
        columns = [c for c in node.find_all(exp.Column)]
        symbols = {symbol for symbol, _ in map(self._split, columns)}
        of, counted = function(name), node.expressions[0] if node.expressions else None
        if of.stars and isinstance(counted, exp.Column) and len(counted.parts) == 1 and self._places(counted.name):
            symbols = {counted.name}
        if len(symbols) != 1 or None in symbols:
            hint = "for example COUNT(B.*), SUM(B.x), LAST(B.x)"
            raise self.text.error(f"{name} does not say of which symbol", place(node, where), hint=hint)
        symbol = str(next(iter(symbols)))
        places = self._places(symbol)
        if not places:
            known = ", ".join(dict.fromkeys(p.symbol.name.text for p in self.parts))
            raise self.text.error(f"there is no symbol {symbol}; there are: {known}", place(node, where))
        self._check_before(places, at, node, where)
        if self.parts[places[0]].symbol.repeated:
            if at in places:
                message = f"{name} of {symbol} in its own DEFINE would change from row to row"
                raise self.text.error(message, place(node, where), hint="put it into the DEFINE of the next symbol")
            return node.copy()  # as a whole: what stands in it is about the rows of the symbol
        if of.place is None or len(columns) != 1 or counted is not columns[0]:
            hint = "use its columns one by one"
            raise self.text.error(f"{name} is for a symbol with +, and {symbol} has none", place(node, where), hint=hint)
        found = at if at is not None and at in places and of.place == -1 else places[of.place]
        return self._of(found, columns[0], self._split(columns[0])[1], where)

    def _filtered(self, node: exp.Filter, at: int | None, where: Span) -> exp.Expr:
        name = aggregate_name(node.this)
        if name is None or isinstance(self._call(node.this, name, at, where), exp.Column):
            raise self.text.error("FILTER belongs to an aggregate of a symbol with +", place(node, where))
        return node.copy()

    def _previous(self, node: exp.Anonymous, at: int | None, where: Span) -> exp.Expr:
        """PREV(x) of a row is x of the row before it."""
        name, arguments = str(node.this).upper(), node.expressions
        here = place(node, where)
        if name != "PREV":
            raise self.text.error(f"{name} is not there", here)
        if at is None:
            raise self.text.error("PREV is for DEFINE", here, hint="name the symbol of the row before")
        column = arguments[0] if len(arguments) == 1 else None
        if not isinstance(column, exp.Column):
            raise self.text.error("PREV takes one column, and looks one row back", here)
        symbol, rest = self._split(column)
        own = self.parts[at].symbol
        if symbol is not None and symbol.lower() != own.name.text.lower():
            raise self.text.error(f"PREV of {symbol} looks outside of it", here, hint=PREV_HINT)
        if at == 0:
            raise self.text.error("before the first row of a match there is none that it knows", here, hint=PREV_HINT)
        if self.skipped:
            raise self.text.error("the row before is any row in between", here, hint="name the symbol that is meant")
        if own.repeated or self.parts[at - 1].symbol.repeated:
            raise self.text.error("PREV beside a symbol with + is of another row each time", here, hint=PREV_HINT)
        return self._of(at - 1, column, rest, where)
