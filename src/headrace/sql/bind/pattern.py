"""EVENT -> a pattern: whose column is meant, what is a condition of one event, of several, or of what repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.expr import Expr, all_of, conjuncts
from headrace.plan.joins import KEY_HINT, common_type
from headrace.plan.nodes import Filter, Node, in_arrival_order
from headrace.plan.patterns import Pattern, Place, Selection, Spill, check_neighbours, compares_negated, pattern
from headrace.plan.query import is_table
from headrace.scalars.words import check_between
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.columns import project
from headrace.sql.bind.scope import extent, has_aggregate
from headrace.sql.bind.scope_pattern import GroupCalls, PatternScope
from headrace.sql.errors import Span, SqlError, Text
from headrace.sql.parse.syntax import Element, Event, From, Item, Scalar, Star

Written = Sequence[Item | Star]


def bind_event(event: Event, catalog: Catalog, read: Callable[[From, Catalog], Node]) -> Node:
    places = [(_place(e, catalog, read), e.span) for e in event.elements]
    drawn = Drawn(catalog.text, places)
    bound = drawn.columns(event.items, catalog.text)  # first, so that aggregates are called what RETURN calls them
    if event.where:
        drawn.add(event.where, catalog.text)
    with catalog.text.at(event.within_span):
        node = drawn.node(event.within, event.selection, event.spill)
    return project(event.items, event.span, node, drawn.shown(catalog.text), bound)


def _place(element: Element, catalog: Catalog, read: Callable[[From, Catalog], Node]) -> Place:
    source = element.source
    node = read(source, catalog)
    assert source.qualifier is not None, "the parser wants a name for what is no stream"
    with catalog.text.at(source.span):
        return place_of(source.qualifier, node, negated=element.negated, repeated=element.repeated)


def place_of(name: str, node: Node, *, negated: bool = False, repeated: bool = False) -> Place:
    """A place for the rows of a node, if they can have one."""
    if in_arrival_order(node):
        raise QueryError("late and rejected rows stand in the order of arrival, which has no sequences")
    if is_table(node):
        raise QueryError("the rows of a table have no time, and so no place in a sequence")
    return Place(name, node, negated, repeated)


class Drawn:
    """A pattern that is being put together: its places, then conditions, then what it returns."""

    def __init__(self, text: Text, places: Sequence[tuple[Place, Span]]) -> None:
        """Begin with the places, each with where it stands."""
        self.places = tuple(p for p, _ in places)
        _check_names(text, places)
        for (one, _), (other, at) in pairwise(places):
            with text.at(at):
                check_neighbours(one, other)
        with text.at(places[0][1].to(places[-1][1])):
            bare = Pattern(self.places, 1)
        self.scope = PatternScope(text, bare.scope, tuple(p.name for p in self.places), places=self.places)
        self.calls = GroupCalls(self.scope)
        self.between: list[Expr] = []
        self.unsure: list[tuple[Expr, Scalar, Text]] = []  # those of them whose meaning depends on the others
        self.after: list[tuple[Expr, Scalar, Text]] = []  # conditions on results: those with aggregates

    def shown(self, text: Text) -> PatternScope:
        """The columns that a result has."""
        return replace(self.scope, text=text, shown=True)

    def add(self, value: Scalar, text: Text, clause: str = "WHERE") -> None:
        """Conditions that AND puts together, each for itself."""
        for part in conjuncts(value.tree):
            one = Scalar(part, extent(text, part, value.span))
            if has_aggregate(one):
                self.after.append((self.calls.bind(one, self.shown(text)), one, text))
            else:
                self.between.append(self._condition(one, text, clause))

    def _condition(self, value: Scalar, text: Text, clause: str) -> Expr:
        bound = replace(self.scope, text=text).condition(value, clause)
        bare = Pattern(self.places, 1)
        between = len(bare.places_of(bound)) > 1
        if compares_negated(bound, bare):
            self.unsure.append((bound, value, text))
        else:
            with _said(bound, bare, value, text):
                pattern(self.places, (bound,), 1)  # refuses what has no meaning, where its place is known
        tree = bound.tree.unnest()
        if isinstance(tree, exp.EQ) and between:
            types = [Expr.of(side).type_in(bare.scope) for side in (tree.this, tree.expression)]
            if common_type(*types) is None:
                raise text.error(f"{types[0]} and {types[1]} cannot be equal", value.span, hint=KEY_HINT)
        if between:
            with _said(bound, bare, value, text):
                check_between(bare, bound, lambda _, part: part.type_in(bare.scope))
        return bound

    def columns(self, items: Written, text: Text) -> list[tuple[Item, Expr]]:
        named = ((i, i.alias.text if i.alias else None) for i in items if isinstance(i, Item))
        return [(item, self.calls.bind(item.value, self.shown(text), name)) for item, name in named]

    def node(self, within: int, selection: Selection, spill: Spill | None = None) -> Node:
        """The pattern, and above it the conditions on its results."""
        bare = Pattern(self.places, 1)
        with ExitStack() as names:
            for bound, value, text in self.unsure:
                names.enter_context(_said(bound, bare, value, text))
            node: Node = pattern(self.places, self.between, within, selection, tuple(self.calls.calls), spill)
        for condition, value, text in self.after:
            self.shown(text).check_condition(condition, value, "WHERE", node.schema)
        above = all_of(tuple(condition for condition, _, _ in self.after))
        return node if above is None else Filter(node, above)


@contextmanager
def _said(bound: Expr, bare: Pattern, value: Scalar, text: Text) -> Iterator[None]:
    """Errors about a condition, at its place and as it was written."""
    try:
        yield
    except SqlError:
        raise
    except QueryError as error:
        for known in (str(bound), bare.said(bound)):
            if known in error.message:
                said = error.message.replace(known, text.slice(value.span))
                raise text.error(said, value.span, hint=error.hint) from error
        raise


def _check_names(text: Text, places: Sequence[tuple[Place, Span]]) -> None:
    seen: set[str] = set()
    for found, at in places:
        if found.name.lower() in seen:
            hint = "give each a name of its own: SEQ(payments a, payments b)"
            raise text.error(f"two events of the pattern are called {found.name!r}", at, hint=hint)
        seen.add(found.name.lower())
