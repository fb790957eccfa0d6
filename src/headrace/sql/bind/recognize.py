"""MATCH_RECOGNIZE -> a pattern over one stream, for what means the same in both.

Symbols that stand side by side are neighbours among the rows of their partition: a STRICT pattern. `A X*? B`, with any rows in
between and as few as can be, is a pattern with NEXT MATCH. The standard takes one match for every first row, the one that it
prefers: where there could be several (a row that fits B and C in `B+ C`) it is refused, because ours would give all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from headrace.errors import unknown
from headrace.plan.expr import Expr, conjuncts
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan
from headrace.plan.patterns import Place, Selection, place_columns
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.columns import project
from headrace.sql.bind.exclusive import exclude
from headrace.sql.bind.pattern import Drawn, place_of
from headrace.sql.bind.scope import Scope, extent
from headrace.sql.bind.symbols import Reader
from headrace.sql.errors import Text
from headrace.sql.parse.syntax import From, Item, Recognize, Scalar, Star, Symbol


@dataclass(frozen=True)
class Part:
    """One place of the pattern: the symbol it is of."""

    symbol: Symbol
    name: str  # of the place


def bind_recognize(given: Recognize, catalog: Catalog, read: Callable[[From, Catalog], Node]) -> Node:
    """The plan of MATCH_RECOGNIZE: one row per match, the partition's columns and the measures."""
    text, node = catalog.text, read(given.source, catalog)
    scope = Scope(text, node.schema, given.source.qualifiers)
    _check_order(given, node, scope)
    _check_symbols(given, text)
    parts = _parts(given.symbols)
    selection = Selection.NEXT if any(s.skipped for s in given.symbols) else Selection.STRICT
    if selection is Selection.STRICT and len(parts) > 1 and _drops(node):
        message = "neighbours are rows that nothing lies between, also none that a WHERE has dropped"
        raise text.error(message, given.source.span, hint="read the stream itself, and put the condition into DEFINE")
    with text.at(given.source.span):
        places = [(place_of(p.name, node, repeated=p.symbol.repeated), p.symbol.span) for p in parts]
    drawn = Drawn(text, places)
    reader = Reader(text, tuple(parts), frozenset(s.name.text.lower() for s in given.symbols if s.skipped))
    keys = [scope.bind(key, "PARTITION BY") for key in given.partition_by]
    single = next(i for i, place in enumerate(drawn.places) if not place.repeated)
    _partition(drawn, keys, single)
    items = [_key_item(key, drawn.places[single], scope) for key in given.partition_by]
    items += [_measure(item, reader, text) for item in given.measures]
    if not items:
        hint = "MEASURES says what is shown of it, PARTITION BY of whom it is"
        raise text.error("a match has no columns", given.span, hint=hint)
    bound = drawn.columns(items, text)
    _define(given, parts, reader, drawn, text, strict=selection is Selection.STRICT)
    _check_preferred(given, parts, selection, text)
    with text.at(given.within_span):
        found = drawn.node(given.within, selection)
    return project(items, given.span, found, drawn.shown(text), bound)


# What is read


def _check_order(given: Recognize, node: Node, scope: Scope) -> None:
    bound = scope.bind(given.order_by, "ORDER BY")
    if not _is_time(bound, node):
        message = "rows are matched in the order of time, and this is not the TIMESTAMP BY of the stream"
        raise scope.text.error(message, given.order_by.span)


def _is_time(expr: Expr, node: Node) -> bool:
    """Whether an expression over a node is the time of its rows."""
    match node:
        case Scan(stream=stream):
            return expr == stream.timestamp
        case Filter(input=below):
            return _is_time(expr, below)
        case Project(input=below, items=items):
            given = dict((name.lower(), value) for name, value in items)
            name = expr.as_column
            return _is_time(given[name.lower()] if name is not None else expr.substitute(given), below)
        case Merge(inputs=inputs):
            return all(_is_time(expr, i) for i in inputs)
    return False


def _drops(node: Node) -> bool:
    """Whether rows of what brings them have been dropped on the way."""
    match node:
        case Filter():
            return True
        case Project(input=below):
            return _drops(below)
        case Merge(inputs=inputs):
            return any(map(_drops, inputs))
    return False


# Symbols


def _check_symbols(given: Recognize, text: Text) -> None:
    names = [s.name.text.lower() for s in given.symbols]
    for symbol, name in zip(given.symbols, names, strict=True):
        if names.count(name) > 1:
            raise text.error(
                f"the symbol {symbol.name.text} is there twice", symbol.name.span,
                hint="give each a symbol of its own, with the same DEFINE",
            )  # fmt: skip
    defined: set[str] = set()
    for said, _ in given.defines:
        if said.text.lower() not in names:
            raise text.error(unknown("symbol", said.text, [s.name.text for s in given.symbols]), said.span)
        if said.text.lower() in defined:
            raise text.error(f"{said.text} is defined twice", said.span, hint="put the conditions together with AND")
        defined.add(said.text.lower())
    _check_skipped(given.symbols, defined, text)


def _check_skipped(symbols: tuple[Symbol, ...], defined: set[str], text: Text) -> None:
    """Any rows in between stand in all gaps or in none: a pattern has one way to choose its events."""
    skipped = [s for s in symbols if s.skipped]
    for symbol in skipped:
        if symbol.name.text.lower() in defined:
            hint = f"leave {symbol.name.text} without a DEFINE: it is any row then"
            raise text.error("rows in between that must meet a condition are not there", symbol.span, hint=hint)
    kinds = [s.skipped for s in symbols]
    if skipped and (kinds[0] or kinds[-1] or any(a and b for a, b in pairwise(kinds))):
        raise text.error("rows in between stand between two symbols", skipped[0].span, hint="for example A X*? B")
    for one, other in pairwise(symbols):
        if skipped and not one.skipped and not other.skipped:
            message = f"{other.name.text} follows at once, and others after rows in between: a pattern has one or the other"
            raise text.error(message, other.span, hint="put a symbol with *? into every gap, or into none")
    several = next((s for s in symbols if skipped and (s.repeated or s.times > 1)), None)
    if several is not None:
        raise text.error("in a pattern with rows in between every symbol stands for one row", several.span)


def _parts(symbols: tuple[Symbol, ...]) -> list[Part]:
    """The places: A{3} has three."""
    names = {s.name.text.lower() for s in symbols}
    out = []
    for symbol in (s for s in symbols if not s.skipped):
        for number in range(1, symbol.times + 1):
            name = symbol.name.text if symbol.times == 1 else f"{symbol.name.text}{number}"
            while symbol.times > 1 and name.lower() in names:
                name += "_"
            names |= {name.lower()}
            out.append(Part(symbol, name))
    return out


def _check_preferred(given: Recognize, parts: list[Part], selection: Selection, text: Text) -> None:
    """Refuse what could match in several ways from one first row."""
    conditions = {name.text.lower(): conjuncts(value.tree) for name, value in given.defines}
    if parts[-1].symbol.repeated:
        symbol = parts[-1].symbol
        hint = "let another symbol follow them"
        raise text.error(f"nothing tells where the rows of {symbol.name.text} end", symbol.span, hint=hint)
    for one, other in pairwise(parts):
        if one.symbol.repeated:
            names = [p.symbol.name.text for p in (one, other)]
            if not exclude(*(_own(conditions.get(n.lower(), []), n) for n in names)):
                message = f"a row could be one of {names[0]} and {names[1]}, and then there are several matches from one row"
                hint = f"let DEFINE tell them apart: {names[1]} AS .. AND NOT (what {names[0]} is)"
                raise text.error(message, one.symbol.span.to(other.symbol.span), hint=hint)
    if selection is Selection.NEXT:
        _check_backtracking(given, parts, text)


def _own(conditions: list[exp.Expr], symbol: str) -> list[exp.Expr]:
    """Conditions with the columns of the row itself without its symbol, all in small letters."""

    def bare(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        parts = [p.name.lower() for p in node.parts]
        own = len(parts) > 1 and parts[0] == symbol.lower()
        return exp.column(exp.to_identifier(".".join(parts[1:] if own else parts), quoted=True))

    return [c.transform(bare) for c in conditions]


def _check_backtracking(given: Recognize, parts: list[Part], text: Text) -> None:
    """The standard tries the second row that fits B if no C follows the first; C must not depend on which it is."""
    middle = {p.symbol.name.text.lower() for p in parts[1:-1]}
    for name, value in given.defines:
        for column in value.tree.find_all(exp.Column):
            symbol = column.parts[0].name  # also before a field of a struct, where sqlglot has it for a database or a catalog
            if len(column.parts) > 1 and symbol.lower() in middle - {name.text.lower()}:
                message = f"{name.text} depends on which row is taken for {symbol}, and only the first that fits is tried"
                hint = f"with rows in between, conditions compare a row with that of {parts[0].symbol.name.text}"
                raise text.error(message, extent(text, column, value.span), hint=hint)


# Clauses


def _partition(drawn: Drawn, keys: list[Expr], single: int) -> None:
    """All events of a match have the key of one that is single."""
    columns = [{old.lower(): Expr.column(new) for old, new in own.items()} for own in place_columns(drawn.places)]

    def at(key: Expr, place: int) -> Expr:
        name = key.as_column
        return columns[place][name.lower()] if name is not None else key.substitute(columns[place])

    others = [i for i in range(len(drawn.places)) if i != single]
    drawn.between += [Expr.of(f"{at(key, single)} = {at(key, i)}") for key in keys for i in others]


def _key_item(key: Scalar, place: Place, scope: Scope) -> Item:
    """A column of PARTITION BY, as one of an event."""
    plain = isinstance(key.tree, exp.Column)
    name = key.tree.name if plain else " ".join(scope.text.slice(key.span).split())

    def own(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        column, *fields = scope.own([p for p in node.parts if isinstance(p, exp.Identifier)], key.span)
        tree: exp.Expr = exp.column(column.copy(), table=place.name)
        for field in fields:
            tree = exp.Dot(this=tree if isinstance(tree, exp.Dot) else exp.paren(tree), expression=field.copy())
        return tree

    return Item(Scalar(key.tree.transform(own), key.span), None, name)


def _measure(item: Item | Star, reader: Reader, text: Text) -> Item:
    if not isinstance(item, Item):
        raise text.error("MEASURES are expressions with names", item.span, hint="for example A.id AS first_id")
    if item.alias is None and not isinstance(item.value.tree, exp.Column):
        raise text.error("a measure has a name", item.value.span, hint="write AS and a name behind it")
    return Item(Scalar(reader.measure(item.value), item.value.span), item.alias, item.name)


def _define(given: Recognize, parts: list[Part], reader: Reader, drawn: Drawn, text: Text, *, strict: bool) -> None:
    for name, value in given.defines:
        for at, part in enumerate(parts):
            if part.symbol.name.text.lower() == name.text.lower():
                for condition in conjuncts(value.tree):
                    span = extent(text, condition, value.span)
                    tree = reader.condition(Scalar(condition, span), at)
                    drawn.add(Scalar(_no_key(tree) if strict else tree, span), text, "DEFINE")


def _no_key(tree: exp.Expr) -> exp.Expr:
    """An equality between rows in other words: as one it would part the rows by key, and neighbours are those of PARTITION BY."""
    inner = tree.unnest()
    if not isinstance(inner, exp.EQ) or len({c.parts[0].name for c in inner.find_all(exp.Column)}) < 2:
        return tree
    return exp.Not(this=exp.Paren(this=exp.NEQ(this=inner.this.copy(), expression=inner.expression.copy())))
