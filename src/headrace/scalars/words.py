"""What a condition between events reads of each: the largest parts that are about one event, and what word each becomes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.joins import common_type
from headrace.plan.types import base_type, decimal_parts
from headrace.scalars.source import Writer
from headrace.scalars.tree import Tree
from headrace.scalars.types import HASH, SCALED, Kind, Slot, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.plan.patterns import Pattern

    KindOf = Callable[[int, Expr], str]

MOST_SCALED = 18  # digits that always fit into 64 bits
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_NAME = re.compile(r"\bw(\d+)_(\d+)\b")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a condition that is about one event: an expression over `scope`, its type, and the type of its word."""

    expr: Expr
    type: str
    word: str


@dataclass(slots=True)
class WordParts:
    """The parts of the conditions of a pattern, by place. Part k of place p is column `w{p}_{k}` of what is left."""

    node: Pattern
    kind: KindOf
    of: list[list[Part]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.of = [[] for _ in self.node.places]

    def over(self, condition: Expr) -> Expr:
        """A condition over `scope` as one over words."""
        return Expr.of(self._replace(condition.tree))

    def _replace(self, tree: exp.Expr) -> exp.Expr:
        found = Expr.of(tree.copy())
        places = self.node.places_of(found)
        if len(places) == 1 and not isinstance(tree, exp.Paren):
            kind = self.kind(places[0], found)
            return self._name(places[0], Part(found, kind, word_type(kind)))
        if isinstance(tree, _EQUALITIES) and self._hashed(tree):
            return tree
        for child in list(tree.iter_expressions()):
            if self.node.places_of(Expr.of(child.copy())):
                child.replace(self._replace(child))
        return tree

    def _hashed(self, tree: exp.Expr) -> bool:
        """Values of types that have no word of their own are equal where hashes of both, in one type, are. Done if so."""
        sides = [Expr.of(side.unnest().copy()) for side in (tree.this, tree.expression)]
        places = [self.node.places_of(side) for side in sides]
        if any(len(own) != 1 for own in places):
            return False
        at = [own[0] for own in places]
        kinds = [self.kind(p, side) for p, side in zip(at, sides, strict=True)]
        common = common_type(*kinds)
        if common in (None, UNKNOWN_TYPE) or "MAP<" in str(common) or not any(_wide(k) for k in kinds):
            return False
        if base_type(str(common)) in ("FLOAT", "DOUBLE"):
            return False
        cast = (s if k == common else Expr.of(f"CAST({s} AS {common})") for s, k in zip(sides, kinds, strict=True))
        names = [self._name(p, Part(side, str(common), f"{HASH}{common}")) for p, side in zip(at, cast, strict=True)]
        tree.this.replace(names[0])
        tree.expression.replace(names[1])
        return True

    def _name(self, place: int, part: Part) -> exp.Expr:
        own = self.of[place]
        if part not in own:
            own.append(part)
        return exp.column(f"w{place}_{own.index(part)}")

    def said(self, text: str) -> str:
        """A text about words as one about what they are of events."""
        return _NAME.sub(lambda m: self.node.said(self.of[int(m[1])][int(m[2])].expr), text)


def word_type(kind: str) -> str:
    """The type of the word that a value of a type is."""
    if kind.startswith("DECIMAL(") and not _wide(kind):
        digits, scale = decimal_parts(kind)
        return f"{SCALED}({digits}, {scale})"
    return kind


def _wide(kind: str) -> bool:
    """Whether no word holds the value itself."""
    found = kind_of(kind)
    return found is None or (found is Kind.DECIMAL and decimal_parts(kind)[0] > MOST_SCALED)


def check_between(node: Pattern, condition: Expr, kind: KindOf) -> None:
    """Refuse what cannot be evaluated between events, in the words of the user. Types that only Spark knows wait for it."""
    parts = WordParts(node, kind)
    over = parts.over(condition)
    every = [(p, k, part) for p, own in enumerate(parts.of) for k, part in enumerate(own)]
    if any(part.type in (UNKNOWN_TYPE, "DECIMAL") for _, _, part in every):
        return
    columns = {("", f"w{p}_{k}"): Slot(part.word, i) for i, (p, k, part) in enumerate(every)}
    try:
        found = Tree(Writer(len(every)), columns).value(over.tree)
        if found.kind not in (Kind.BOOLEAN, Kind.VOID):
            raise QueryError(f"it is a {found.kind.value}, not a condition", hint="compare it with something")
    except QueryError as error:
        said = parts.said(error.message)
        hint = None if error.hint is None else parts.said(error.hint)
        raise QueryError(f"{node.said(condition)} cannot be evaluated between events: {said}", hint=hint) from error
