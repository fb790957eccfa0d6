"""What runs in a bucket, as data: the program of a stage. It holds no arrays and no code, so it travels as it is.

    Input    a scalar expression over the rows of the stream, computed before the rows reach the bucket
    Table    a numbering of keys: group keys, (key, value) pairs of COUNT(DISTINCT), values that are not numbers
    Vector   what an aggregate reads of each row: fixed-width values and a code (value, NULL, NaN, .., kept out)
    Tally    an aggregate state per key of a table and window: count, exact sum, moments, distinct, queue
    Metric   how a column of the result is read from tallies
    Output   the rows one query gets: columns of the event, metrics, which events, and when
    Report   the rows of a query that looks at a window by the clock: metrics of every key in it
    Join     the rows of a query that are pairs of rows of two sides
    Slices   reports that look at windows of different lengths at the same times, and add up what lies between once

Equal tables, vectors and tallies of different queries are one: that is how plans share their prefixes (003, 3.3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.plan.expr import Expr
from headrace.plan.query import Emit
from headrace.plan.stream import Bound
from headrace.plan.windows import (
    DeltaWindow,
    EveryField,
    EveryInstant,
    EveryRows,
    FieldWindow,
    LookedAt,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    Trigger,
    UnboundedWindow,
    UntilWindow,
    Window,
)
from headrace.program.patterns import PatternProgram, Sequencing

RESULT = -1  # in the place of the group of a tally: every result of a pattern has rows of its own


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


class TallyKind(Enum):
    """What is kept per key."""

    COUNT = "count"
    SUM = "sum"
    MOMENTS = "moments"
    DISTINCT = "distinct"
    QUEUE = "queue"


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
    window: SessionWindow | DeltaWindow | None = None  # LIFE: what ends one; None: KEEP
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
class WindowProgram:
    """A window; ROWS PARTITIONED BY names the table that numbers its partitions, ON the vector of the field it is measured on."""

    window: LookedAt
    partitions: int | None = None
    field: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """An aggregate state per key of table `group`, over one window. If the group is RESULT, there is neither table nor window."""

    kind: TallyKind
    window: int
    group: int
    vector: int
    pairs: int | None = None  # DISTINCT: the table of (key, value) pairs
    mode: str = ""  # QUEUE: MIN, MAX, FIRST, LAST


@dataclass(frozen=True, slots=True)
class Metric:
    """A result column: a function of one tally, and of the count of values beside it where it needs one."""

    name: str
    function: str
    type: str
    tally: int
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The rows of one query: for every event where the masks hold, its own columns and its metrics."""

    query: str
    emit: Emit
    columns: tuple[tuple[str, int], ...]  # (name, input)
    metrics: tuple[Metric, ...] = ()
    masks: tuple[int, ...] = ()
    late: bool = False  # instead of the admitted rows, those that came too late, at once


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of one query that looks at a window when a trigger fires: the metrics of every key that is in it."""

    query: str
    emit: Emit
    trigger: Trigger
    presence: int  # a tally: how many rows of a key are in the window
    metrics: tuple[Metric, ...]  # the keys first, then the aggregates
    bounds: int  # how many metrics stand before the bounds of the window
    ends: int = 2  # how many bounds are shown: both, or only the end
    partition: int | None = None  # the table whose keys have a count of rows, or a look, of their own
    counter: int | None = None  # the tally that counts the rows of each of those
    batch: int | None = None  # a table: rows of one time and one number in it are one batch
    field: int | None = None  # EVERY n ON: the vector of the field
    closed_by_rows: bool = False  # a window that ends by itself ends with the row that no longer fits
    moved: tuple[int, ...] = ()  # tallies of what came and went since the last look: a group without any is not told

    @property
    def by_rows(self) -> bool:
        """Whether rows let it look, and not time alone."""
        return isinstance(self.trigger, EveryRows | EveryField) or self.closed_by_rows


@dataclass(frozen=True, slots=True)
class SharedSlices:
    """Reports over windows that differ only in their length, and the tallies that nobody else reads."""

    reports: tuple[int, ...]
    tallies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinColumn:
    """A column of a joined row: the vector that holds it in the rows of its side."""

    name: str
    type: str
    side: int  # 0: left, 1: right
    vector: int


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """The rows of one query that are pairs. All joins of a stage differ in the query, what they show, and when."""

    query: str
    emit: Emit
    split: int  # the rank of the first source of the right side
    key: int  # the table that numbers what rows are joined on
    live: int  # the vector that says which rows have a key that is not NULL
    windows: tuple[Window, Window]
    preserved: tuple[bool, bool]
    columns: tuple[JoinColumn, ...]

    @property
    def moving(self) -> bool:
        """Whether a row that comes late can undo a pair: it may push another out of a window, or be what a row waited for."""
        return any(self.preserved) or any(isinstance(w, RowsWindow) for w in self.windows)


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
class Stage:
    """The program of one stage."""

    name: str
    sources: tuple[Source, ...]
    route: tuple[int, ...] | None  # inputs whose values decide the bucket; (): one bucket; None: anywhere
    inputs: tuple[Input, ...]
    keep: tuple[tuple[int, ...], ...]  # a row is wanted if, for one of these, all masks hold; none: every row
    tables: tuple[Table, ...]
    windows: tuple[WindowProgram, ...]
    vectors: tuple[Vector, ...]
    tallies: tuple[Tally, ...]
    outputs: tuple[Output, ...]
    unique_within: int | None = None  # rows of one number in the UNIQUE table no further apart than this are one row
    members: tuple[int, ...] = ()  # with UNIQUE: masks of the rows that are then in the stream at all
    reports: tuple[Report, ...] = ()
    level: int = 1  # a stage comes after those whose results it reads
    joins: tuple[JoinProgram, ...] = ()
    pattern: Sequencing | None = None
    patterns: tuple[PatternProgram, ...] = ()
    slices: tuple[SharedSlices, ...] = ()
    doors: tuple[Door, ...] = ()  # a row that comes behind one of them is late here, though it is not for its stream

    @property
    def sliced(self) -> frozenset[int]:
        """The tallies that slices keep."""
        return frozenset(t for s in self.slices for t in s.tallies)

    @property
    def signed(self) -> bool:
        """Whether rows that have come may be taken back."""
        return any(s.follows for s in self.sources)

    @property
    def queries(self) -> tuple[str, ...]:
        """Whose rows it makes."""
        own = (*(o.query for o in self.outputs), *(r.query for r in self.reports))
        return (*own, *(j.query for j in self.joins), *(p.query for p in self.patterns))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All that is read from tallies, by any query."""
        return (*(m for o in self.outputs for m in o.metrics), *(m for r in self.reports for m in r.metrics))

    @property
    def keeps_for(self) -> int | None:
        """How long a key that is silent is kept, if not for ever: for the longest of its sources."""
        found = [s.disorder.keep for s in self.sources]
        return None if None in found else max(k for k in found if k is not None)

    @property
    def unique_table(self) -> int | None:
        """The table that numbers what UNIQUE BY compares."""
        found = [i for i, t in enumerate(self.tables) if t.role is TableRole.UNIQUE]
        return found[0] if found else None

    def used_where(self, index: int) -> tuple[tuple[int, ...], ...]:
        """Of which rows an input is used: for each use the masks that must hold; empty masks are all rows."""
        tested = [*(v.masks for v in self.vectors), *(o.masks for o in self.outputs), self.members, *self.keep]
        if any(index in masks for masks in tested):
            return ((),)
        uses = [v.masks for v in self.vectors if v.input == index]
        uses += [o.masks for o in self.outputs if any(i == index for _, i in o.columns)]
        if any(index in t.inputs for t in self.tables) or (self.route and index in self.route):
            uses += self.keep or ((),)
        return tuple(dict.fromkeys(uses))

    @property
    def eager(self) -> bool:
        """Whether any output wants results before they are final."""
        return any(o.emit is Emit.CHANGES for o in self.outputs) or any(r.emit is Emit.CHANGES for r in self.reports)

    @property
    def keeps(self) -> bool:
        """Whether keys have lives."""
        return any(t.role is TableRole.LIFE for t in self.tables)

    @property
    def lets_go(self) -> bool:
        """Whether every row leaves every window in the end, so that keys nobody holds can be forgotten."""
        if len(self.windows) == 1 and isinstance(self.windows[0].window, FieldWindow):
            return True
        return all(isinstance(w.window, RangeWindow) for w in self.windows)

    @property
    def stores_rows(self) -> bool:
        """Whether rows must stay in the reservoir after they are final."""
        kept = (RangeWindow, FieldWindow, UntilWindow)
        counted = [isinstance(w.window, RowsWindow) and w.partitions is None for w in self.windows]
        return any(counted) or any(isinstance(w.window, kept) for w in self.windows)

    @property
    def by_instant(self) -> bool:
        """Whether rows of one time are seen together, and so must all be there before any of them is final."""
        return self.has_peers or any(isinstance(r.trigger, EveryInstant) for r in self.reports)

    @property
    def has_peers(self) -> bool:
        """Whether an event sees rows of its time that stand behind it."""
        return any(isinstance(w.window, RangeWindow | UnboundedWindow) and w.window.waits for w in self.windows)

    @property
    def unbounded(self) -> bool:
        """Whether some window keeps every row."""
        return any(isinstance(w.window, UnboundedWindow) for w in self.windows)
