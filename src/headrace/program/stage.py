"""What runs in a bucket, as data: the stage of a plan. It holds no arrays and no code, so it travels as it is.

    Source   where rows come from, and what is known of their order
    Route    which bucket a row goes to
    Input    a scalar expression over the rows of the stream, computed before the rows reach the bucket
    Table    a numbering of keys: group keys, (key, value) pairs of COUNT(DISTINCT), values that are not numbers
    Vector   what a step reads of each row: fixed-width values and a code (value, NULL, NaN, .., kept out)
    program  what the step of its kind does with the rows (rows.py, windows.py, joins.py, patterns.py)

Equal parts of different queries are one: that is how plans share their prefixes (003, 3.3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from headrace.plan.expr import Expr
from headrace.plan.stream import Bound
from headrace.plan.windows import LookedAt
from headrace.program.outputs import Output


class VectorKind(Enum):
    """How values lie in memory."""

    ROW = "row"  # the row itself, no value
    DOUBLE = "double"  # float64, exact sums
    INT = "int"  # int64, exact sums
    DECIMAL = "decimal"  # two words, exact sums
    ORDERED = "ordered"  # int64 whose order is that of the values: MIN and MAX of numbers, dates, times
    BITS = "bits"  # int64 that is the value, bit for bit: FIRST and LAST
    HASHED = "hashed"  # int64 that is equal where the values are: strings that are only compared
    NUMBERED = "numbered"  # number of the value in a table: strings and whatever else has no fixed width


class TableRole(Enum):
    """What the numbers of a table stand for."""

    GROUP = "group"
    PAIR = "pair"
    VALUE = "value"
    UNIQUE = "unique"
    LIFE = "life"  # a key from its first row until KEEP or the end of a window ends it
    LIFE_PAIR = "life pair"


@dataclass(frozen=True, slots=True)
class Input:
    """A column that every row brings along: an expression over the rows of each source of the stage."""

    exprs: tuple[Expr, ...]
    type: str

    @property
    def expr(self) -> Expr:
        """The one of the first source."""
        return self.exprs[0]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers the distinct values of some inputs."""

    role: TableRole
    inputs: tuple[int, ...]
    base: int | None = None  # LIFE, LIFE_PAIR: the table of the keys or pairs that live
    life: int | None = None  # LIFE_PAIR: the table of the lives
    window: LookedAt | None = None  # LIFE: what ends one; None: KEEP
    vectors: tuple[tuple[str, int], ...] = ()  # LIFE: the columns that DELTA compares, by name

    @property
    def derived(self) -> bool:
        """Whether numbers follow from those of another table, and change as rows come."""
        return self.base is not None


@dataclass(frozen=True, slots=True)
class Vector:
    """What an aggregate reads: an input, kept out where any of the masks does not hold."""

    kind: VectorKind
    input: int | None
    masks: tuple[int, ...] = ()
    table: int | None = None  # for NUMBERED


@dataclass(frozen=True, slots=True)
class Disorder:
    """What is declared about the order of a stream."""

    delay: int | Bound | None
    single_partition: bool
    idle: int | None = None
    ahead: int | None = None
    end_after: int | None = None
    keep: int | None = None
    static: bool = False  # complete before anything begins
    punctuated: bool = False  # rows of its source say up to where it is complete

    @property
    def bounded(self) -> bool:
        """Whether anything can be late before the end."""
        return isinstance(self.delay, int) or self.punctuated


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows of a stage come from: a base stream, or the results of another stage, whose frontier it then follows.

    `rank` puts the rows of this source behind those of the sources before it, at one time: the number of base streams below them.
    """

    name: str
    disorder: Disorder
    follows: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Door:
    """K-slack: rows of these sources are taken together, once the largest time of any is so far past them; it is then shut."""

    sources: tuple[int, ...]
    slack: int


@dataclass(frozen=True, slots=True)
class ByHash:
    """Rows with equal values in these inputs meet in one bucket."""

    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OneBucket:
    """All rows meet."""


@dataclass(frozen=True, slots=True)
class Anywhere:
    """A row needs no others."""


Route = ByHash | OneBucket | Anywhere


@dataclass(frozen=True, slots=True)
class UniqueRows:
    """Of rows with one number in a table no further apart than this, only the first counts."""

    table: int
    within: int
    members: tuple[int, ...] = ()  # masks of the rows that are then in the stream at all


class StepProgram(Protocol):
    """What a step does, whatever its kind."""

    @property
    def queries(self) -> tuple[str, ...]:
        """Whose rows it makes."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Those of them that show columns of the rows as they come."""


P = TypeVar("P", bound=StepProgram, covariant=True)


@dataclass(frozen=True, slots=True)
class Stage(Generic[P]):
    """What needs one partitioning: inputs, a route, and the program of one kind of step."""

    name: str
    sources: tuple[Source, ...]
    route: Route
    inputs: tuple[Input, ...]
    keep: tuple[tuple[int, ...], ...]  # a row is wanted if, for one of these, all masks hold; none: every row
    tables: tuple[Table, ...]
    vectors: tuple[Vector, ...]
    program: P
    unique: UniqueRows | None = None
    level: int = 1  # a stage comes after those whose results it reads
    late: tuple[Output, ...] = ()  # rows of `late(s)`, at once
    doors: tuple[Door, ...] = ()  # a row that comes behind one of them is late here, though it is not for its stream
    apart: str = ""  # what keeps it from being one with a stage over the same sources and route

    def buckets(self, most: int) -> int:
        """How many buckets it has, where there are so many."""
        return 1 if isinstance(self.route, OneBucket) else most

    @property
    def signed(self) -> bool:
        """Whether rows that have come may be taken back."""
        return any(s.follows for s in self.sources)

    @property
    def queries(self) -> tuple[str, ...]:
        return (*self.program.queries, *(o.query for o in self.late))

    @property
    def keeps_for(self) -> int | None:
        """How long a key that is silent is kept, if not for ever: for the longest of its sources."""
        found = [s.disorder.keep for s in self.sources]
        return None if None in found else max(k for k in found if k is not None)

    def used_where(self, index: int) -> tuple[tuple[int, ...], ...]:
        """Of which rows an input is used: for each use the masks that must hold; empty masks are all rows."""
        outputs = (*self.program.outputs, *self.late)
        members = self.unique.members if self.unique is not None else ()
        tested = [*(v.masks for v in self.vectors), *(o.masks for o in outputs), members, *self.keep]
        if any(index in masks for masks in tested):
            return ((),)
        uses = [v.masks for v in self.vectors if v.input == index]
        uses += [o.masks for o in outputs if any(i == index for _, i in o.columns)]
        routed = isinstance(self.route, ByHash) and index in self.route.inputs
        if routed or any(index in t.inputs for t in self.tables):
            uses += self.keep or ((),)
        return tuple(dict.fromkeys(uses))


AnyStage = Stage[StepProgram]
