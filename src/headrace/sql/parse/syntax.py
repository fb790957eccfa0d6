"""What the statements of a script say, as frozen values with their place in the text; names are not looked up yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from headrace.plan.patterns import Selection, Spill
from headrace.plan.query import Emit, Sink, Using
from headrace.plan.stream import Bound, Source
from headrace.sql.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name or string, and where it stands."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression as sqlglot reads it. The tree is shared and never changed: copy before rewriting."""

    tree: exp.Expr = field(compare=False)
    span: Span


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a schema."""

    name: Name
    type: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns between brackets, and the schema they extend."""

    columns: tuple[Column, ...]
    parent: Name | None = None


class WindowSpec:
    """What stands between square brackets; its kinds are in `windows.py`."""

    __slots__ = ()
    partition_by: tuple[Scalar, ...] = ()

    @property
    def counts_rows(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window in square brackets; `predicate` applies before it."""

    spec: WindowSpec
    predicate: Scalar | None
    span: Span


@dataclass(frozen=True, slots=True)
class FromStream:
    """A stream by name, or `late(name)`, `rejected(name)`."""

    name: Name
    side: str | None = None  # None | late | rejected


@dataclass(frozen=True, slots=True)
class From:
    """What a SELECT reads."""

    relation: FromStream | Select | Event | Recognize
    window: WindowClause | None
    alias: Name | None
    span: Span

    @property
    def qualifier(self) -> str | None:
        """What may stand before its columns: its alias, or the name of the stream."""
        if self.alias is not None:
            return self.alias.text
        return self.relation.name.text if isinstance(self.relation, FromStream) else None

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """That, if there is one."""
        return () if self.qualifier is None else (self.qualifier,)


@dataclass(frozen=True, slots=True)
class Joined:
    """Two streams in FROM; `kind` is CROSS, INNER, LEFT, RIGHT or FULL."""

    left: From
    right: From
    kind: str
    on: Scalar | None
    span: Span

    @property
    def window(self) -> None:
        """Its sides have windows, it has none."""
        return


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `s.*`."""

    qualifier: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Item:
    """One column of a SELECT; `name` is the alias, or what stands there."""

    value: Scalar
    alias: Name | None
    name: str


@dataclass(frozen=True, slots=True)
class EmitClause:
    """`EMIT .. USING ..`."""

    emit: Emit
    span: Span
    using: Using = Using.OPTIMISTIC


@dataclass(frozen=True, slots=True)
class IntoClause:
    """`INTO ..`."""

    sink: Sink
    span: Span


@dataclass(frozen=True, slots=True)
class Setting:
    """One of `WITH (key = 'value', ..)`."""

    key: Name
    value: Name


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT with its sink, if it has one."""

    items: tuple[Item | Star, ...]
    source: From | Joined
    where: Scalar | None
    group_by: tuple[Scalar, ...]
    group_window: WindowClause | None  # the window written after GROUP BY
    having: Scalar | None
    emit: EmitClause | None
    into: IntoClause | None
    span: Span
    batch_by: Scalar | None = None
    settings: tuple[Setting, ...] = ()
    relation: Name | None = None  # ISTREAM, DSTREAM or RSTREAM


@dataclass(frozen=True, slots=True)
class Element:
    """One place of SEQ: `shelf s`, `!(checkout c)`, `shelf+ s`."""

    source: From  # its alias is the name of the event
    negated: bool
    repeated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Event:
    """`EVENT SEQ(..) .. WHERE .. WITHIN .. RETURN ..` with its sink, if it has one."""

    elements: tuple[Element, ...]
    selection: Selection
    where: Scalar | None
    within: int
    within_span: Span
    items: tuple[Item | Star, ...]
    emit: EmitClause | None
    into: IntoClause | None
    span: Span
    spill: Spill | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of PATTERN (..): how often its rows are there, or `skipped` for any rows in between, as few as can be."""

    name: Name
    times: int
    repeated: bool
    skipped: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Recognize:
    """`stream MATCH_RECOGNIZE (..)`."""

    source: From
    partition_by: tuple[Scalar, ...]
    order_by: Scalar
    measures: tuple[Item | Star, ...]
    symbols: tuple[Symbol, ...]
    within: int
    within_span: Span
    defines: tuple[tuple[Name, Scalar], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Timing:
    """The clauses of CREATE STREAM about time and disorder; None where there is none."""

    timestamp: Scalar | None = None
    timestamp_unit: int | None = None
    delay: int | Bound | None = None
    punctuation: Scalar | None = None
    idle: int | None = None
    ahead: int | None = None
    end_after: int | None = None
    keep: int | None = None
    unique_by: tuple[Scalar, ...] = ()
    unique_within: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """`CREATE SCHEMA name (..) EXTENDS parent`."""

    name: Name
    columns: Columns


@dataclass(frozen=True, slots=True)
class CreateStream:
    """`CREATE STREAM name columns SOURCE ..`; `columns` is given, named, or known from the source."""

    name: Name
    columns: Columns | Name | None
    source: Source
    source_span: Span
    timing: Timing
    table: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """`MERGE a, b, c`: the rows of all of them."""

    streams: tuple[Name, ...]
    span: Span


Body = Select | Event | Merged | Name  # what fills a stream: a query, several streams, or one


@dataclass(frozen=True, slots=True)
class CreateDerived:
    """`CREATE STREAM name AS SELECT ..`, or `AS` another stream; with columns, those it must have."""

    name: Name
    body: Body
    columns: Columns | Name | None = None


@dataclass(frozen=True, slots=True)
class CreateEmpty:
    """`CREATE STREAM name columns` without a source: filled by INSERT and split."""

    name: Name
    columns: Columns | Name


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO target stream | merge`, or `MERGE .. INTO target`. One with a SELECT or an EVENT is that with an INTO."""

    body: Merged | Name
    emit: EmitClause | None
    into: IntoClause | None
    span: Span


@dataclass(frozen=True, slots=True)
class Branch:
    """`INSERT INTO name SELECT .. WHERE ..` of a split."""

    into: IntoClause
    items: tuple[Item | Star, ...]
    where: Scalar | None
    span: Span


@dataclass(frozen=True, slots=True)
class Split:
    """`ON stream INSERT INTO .., INSERT INTO ..`: the first branch whose WHERE holds takes the row."""

    stream: Name
    branches: tuple[Branch, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW STREAMS | SCHEMAS | QUERIES`."""

    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Describe:
    """`DESCRIBE name`."""

    name: Name


@dataclass(frozen=True, slots=True)
class Drop:
    """`DROP STREAM name`, `DROP SCHEMA name`."""

    kind: str
    name: Name


Statement = Show | Describe | Drop | CreateSchema | CreateStream | CreateDerived | CreateEmpty | Select | Event | Insert | Split
