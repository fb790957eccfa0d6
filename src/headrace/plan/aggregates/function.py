"""What an aggregate function is: what it takes and returns, what is kept for it per key, and how it is read from that.

The planner goes by these alone, never by the name of a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.schema import Field, Schema
from headrace.plan.types import NUMERIC, base_type


class Laws(Enum):
    """What can be done with that which is kept, when rows leave a window."""

    ADDITIVE = "additive: what is kept of two sets of rows adds up, and subtracts, so windows may share slices"
    INVERTIBLE = "invertible: any row is taken out again exactly"
    SELECTIVE = "selective: the result is of some of the rows, which wait in a queue and leave in the order they came"


class TallyKind(Enum):
    """What is kept per key: how EXPLAIN calls it, its laws, and whether values of the rows are read from it."""

    COUNT = "count of {value}", Laws.ADDITIVE, False
    SUM = "exact sum of {value}", Laws.ADDITIVE, False
    MOMENTS = "exact sums of {value} and its squares", Laws.ADDITIVE, False
    DISTINCT = "rows per distinct {value}", Laws.INVERTIBLE, False
    QUEUE = "queue of candidates for the {mode} {value}", Laws.SELECTIVE, True
    LIST = "{mode} {value}, in order", Laws.SELECTIVE, True
    RANKS = "values of {value} by size", Laws.INVERTIBLE, True

    def __init__(self, says: str, laws: Laws, shows: bool) -> None:
        self.says, self.laws, self.shows = says, laws, shows


class Values(Enum):
    """How the values lie that a tally is kept of."""

    EXACT = "as numbers that are summed, or told apart"
    ORDERED = "as words that compare as the values do"
    BITS = "as they are, bit for bit"


@dataclass(frozen=True, slots=True)
class Keeps:
    """The tally that a function needs."""

    kind: TallyKind
    values: Values = Values.EXACT
    mode: str = ""  # QUEUE: least, greatest, oldest or newest
    by: int = 0  # QUEUE: the argument that is compared; the first is shown
    double: bool = False  # the values are cast to DOUBLE first, as Spark does
    counted: bool = False  # beside it stands the count of the same values, which tells an empty window from a sum of zero


@dataclass(frozen=True, slots=True)
class Reads:
    """How the result is read from the tally."""

    part: str = "value"  # of what the tally says; {} is a constant among the arguments
    least: int = 1  # the result of fewer values than this is NULL, where they are counted
    root: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a function."""

    types: tuple[str, ...] | None = None  # by first word; None: any
    what: str = "a value"
    least: float | None = None  # a constant from here on, and up to the other
    most: float = math.inf
    examples: tuple[str, ...] = ()  # of a constant
    optional: bool = False

    def check(self, function: str, kind: str) -> None:
        """Refuse what Spark does not take."""
        if self.types is not None and kind != UNKNOWN_TYPE and base_type(kind) not in self.types:
            raise QueryError(f"{function} takes {self.what}, and got {kind}", hint="CAST it to DOUBLE or DECIMAL")

    def constant(self, function: str, given: Expr) -> str:
        """The number that stands there, if it is one that is taken."""
        number = given.tree
        value = float(number.this) if isinstance(number, exp.Literal) and not number.is_string else math.nan
        if self.least is None or not self.least <= value <= self.most:
            raise QueryError(f"{function} takes {self.what}, and got {given}")
        return repr(value)


ANY = Parameter()
NUMBER = Parameter(NUMERIC, "a number")


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function, as the rest of the engine sees it."""

    name: str
    keeps: Keeps
    returns: Callable[[str], str]  # the type of the result, from that of the first argument
    takes: tuple[Parameter, ...] = (ANY,)
    reads: Reads = field(default_factory=Reads)
    aliases: tuple[str, ...] = ()
    written: str = ""  # in SQL, where it is not its name and its arguments
    distinct: str = ""  # the function that f(DISTINCT x) is
    stars: bool = False  # f(*) is of rows, whatever is in them
    place: int | None = None  # the result is the value of the row at this place of the window
    overflows: bool = False  # unless the result is DOUBLE

    @property
    def laws(self) -> Laws:
        """What it can do when rows leave."""
        return self.keeps.kind.laws

    def check_number(self, given: int) -> None:
        """Refuse too many arguments, and too few."""
        most = len(self.takes)
        if not most - sum(p.optional for p in self.takes) <= given <= most:
            wanted = ("no argument", "one argument", "two arguments", "two arguments or three")[most]
            raise QueryError(f"{self.name} takes {wanted}", hint=f"{self.name}(*) counts rows" if self.stars else None)


def same(kind: str) -> str:
    """The result is a value of the argument."""
    return kind


def double(kind: str) -> str:
    """The result is DOUBLE, once it is known that the argument is a number."""
    return kind if kind == UNKNOWN_TYPE else "DOUBLE"


def result_type(f: Function, types: Sequence[str]) -> str:
    """The type of the result, by the rules of Spark SQL, from those of the arguments."""
    for parameter, kind in zip(f.takes, types, strict=False):
        parameter.check(f.name, kind)
    return f.returns(types[0] if types else UNKNOWN_TYPE)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One call: `name = function(arguments) FILTER (WHERE filter)`; COUNT(*) has no arguments."""

    name: str
    function: Function
    arguments: tuple[Expr, ...] = ()
    filter: Expr | None = None

    def __post_init__(self) -> None:
        """As many arguments as the function takes; none stands for whole rows."""
        if self.arguments or not self.function.stars:
            self.function.check_number(len(self.arguments))
        self.reads  # noqa: B018  (constants are checked)

    @property
    def reads(self) -> Reads:
        """How its result is read, constants included."""
        pairs = zip(self.function.takes, self.arguments, strict=False)
        constants = [p.constant(self.function.name, a) for p, a in pairs if p.least is not None]
        return replace(self.function.reads, part=self.function.reads.part.format(*constants))

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All that it reads of a row."""
        return self.arguments if self.filter is None else (*self.arguments, self.filter)

    def column(self, columns: Schema) -> Field:
        """The column that it gives, over rows of these."""
        for expr in self.exprs:
            expr.check(columns)
        return Field(self.name, result_type(self.function, [a.type_in(columns) for a in self.arguments]))

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.arguments)) or "*"
        text = (self.function.written or f"{self.function.name}({{}})").format(inner)
        return f"{text} FILTER (WHERE {self.filter})" if self.filter else text
