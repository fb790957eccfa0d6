"""Collects the parts of a stage. Asking twice for the same part gives the same part: that is all of the sharing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.plan.aggregates import Aggregate, TallyKind, Values, result_type
from headrace.plan.expr import Expr
from headrace.plan.types import INTEGRAL, base_type
from headrace.plan.windows import LookedAt
from headrace.program.aggregates import RESULT, Metric, Tally
from headrace.program.outputs import Output
from headrace.program.rows import RowsProgram
from headrace.program.stage import (
    Anywhere,
    ByHash,
    Door,
    Input,
    OneBucket,
    Route,
    Source,
    Stage,
    StepProgram,
    Table,
    TableRole,
    UniqueRows,
    Vector,
    VectorKind,
)
from headrace.program.windows import Report, WindowProgram, WindowsProgram
from headrace.stages.slices import share_slices

T = TypeVar("T")
Exprs = tuple[Expr, ...]  # one thing of every row: an expression for each source
FIXED_WIDTH = (*INTEGRAL, "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN")


def _index(parts: list[T], part: T) -> int:
    if part not in parts:
        parts.append(part)
    return parts.index(part)


class StageBuilder:
    """A stage under construction."""

    def __init__(
        self, sources: tuple[Source, ...], route: tuple[Exprs, ...] | None, type_of: Callable[[Expr], str], apart: str = ""
    ) -> None:
        """An empty stage; `type_of` tells the type of an expression over the first source."""
        self.sources, self._type_of, self._apart = sources, type_of, apart
        self.inputs: list[Input] = []
        self.tables: list[Table] = []
        self.windows: list[WindowProgram] = []
        self.vectors: list[Vector] = []
        self.tallies: list[Tally] = []
        self.outputs: list[Output] = []
        self.reports: list[Report] = []
        self.late: list[Output] = []
        self.program: StepProgram | None = None  # of a join or a pattern; else it is that of windows, or of rows
        self.doors: tuple[Door, ...] = ()
        self.wanted: list[tuple[int, ...]] = []
        self._unique: tuple[int, int] | None = None  # table, within
        self.members: tuple[int, ...] = ()
        self.level = 1
        self.route_exprs = route
        self.route = None if route is None else tuple(self.input(e) for e in route)

    def input(self, exprs: Exprs) -> int:
        for i, known in enumerate(self.inputs):
            if known.exprs == exprs:
                return i
        self.inputs.append(Input(exprs, self._type_of(exprs[0])))
        return len(self.inputs) - 1

    def masks(self, predicates: tuple[Exprs, ...]) -> tuple[int, ...]:
        """Boolean columns, one per predicate."""
        return tuple(sorted({self.input(p) for p in predicates}))

    def want(self, masks: tuple[int, ...]) -> None:
        """Some output needs the rows for which these masks hold."""
        _index(self.wanted, masks)

    def unique(self, by: tuple[Exprs, ...], within: int) -> None:
        """Rows that come twice count once."""
        self._unique = _index(self.tables, Table(TableRole.UNIQUE, tuple(self.input(e) for e in by))), within

    def group(self, keys: tuple[Exprs, ...]) -> int:
        return _index(self.tables, Table(TableRole.GROUP, tuple(self.input(k) for k in keys)))

    def lives(self, keys: tuple[Exprs, ...]) -> int:
        """The numbering of the lives of keys, where KEEP ends them."""
        base = self.group(keys)
        return _index(self.tables, Table(TableRole.LIFE, self.tables[base].inputs, base=base))

    def segments(self, keys: tuple[Exprs, ...], window: LookedAt, columns: dict[str, Exprs]) -> int:
        """The numbering of the windows of keys that end by what comes; `columns` are those that DELTA compares."""
        base = self.group(keys)
        vectors = tuple((name, self._vector(VectorKind.BITS, self.input(e), ())) for name, e in columns.items())
        return _index(self.tables, Table(TableRole.LIFE, self.tables[base].inputs, base=base, window=window, vectors=vectors))

    def window(self, window: LookedAt, partitions: int | None, field: int | None = None) -> int:
        """A window over the rows of the stage; `partitions` is the table that numbers those of ROWS PARTITIONED BY."""
        return _index(self.windows, WindowProgram(window, partitions, field))

    def field(self, exprs: Exprs) -> int:
        """The vector of a field that something is measured on: whole numbers, or doubles."""
        if self._value_kind(self._type_of(exprs[0])) is VectorKind.INT:
            return self._vector(VectorKind.INT, self.input(exprs), ())
        return self._vector(VectorKind.DOUBLE, self.input(self._double(exprs)), ())

    def metric(
        self, call: Aggregate, arguments: tuple[Exprs, ...], masks: tuple[int, ...], tallies: list[Tally], window: int, group: int
    ) -> Metric:
        """How a call reads the tallies that it needs, which are added to those given."""
        function, keeps = call.function, call.function.keeps
        if keeps.double and self._type_of(arguments[0][0]) != "DOUBLE":
            arguments = (self._double(arguments[0]), *arguments[1:])
        returns = result_type(function, [self._type_of(a[0]) for a in arguments])
        column = self.input(arguments[0]) if arguments else None
        pairs = None
        if keeps.kind is TallyKind.DISTINCT and group != RESULT:
            assert column is not None
            pairs = self._pairs(group, column)
        of = column if not keeps.by else self.input(arguments[keeps.by])
        vector = self._vector(VectorKind.ROW, None, masks) if of is None else self._values(keeps.values, of, masks)
        shown = None if column is None or not keeps.by else self._values(Values.BITS, column, masks)
        count = _index(tallies, Tally(TallyKind.COUNT, window, group, vector)) if keeps.counted else None
        tally = _index(tallies, Tally(keeps.kind, window, group, vector, pairs, keeps.mode, shown, count))
        return Metric(call.name, function.name, returns, tally, count, call.reads)

    def _values(self, lie: Values, column: int, masks: tuple[int, ...]) -> int:
        """The vector of the values of an input, as a tally needs them to lie."""
        kind = self.inputs[column].type
        exact = lie is Values.EXACT
        return self._vector(self._value_kind(kind) if exact else self._selective_kind(kind, lie is Values.ORDERED), column, masks)

    def _double(self, exprs: Exprs) -> Exprs:
        return tuple(Expr.of(f"CAST({e} AS DOUBLE)") for e in exprs)

    def presence(self, masks: tuple[int, ...], window: int, group: int) -> int:
        """The tally of how many rows of a key are in a window."""
        return _index(self.tallies, Tally(TallyKind.COUNT, window, group, self._vector(VectorKind.ROW, None, masks)))

    def row(self, masks: tuple[int, ...]) -> int:
        """The vector that says for which rows all masks hold."""
        return self._vector(VectorKind.ROW, None, masks)

    def shown(self, exprs: Exprs, kind: str, masks: tuple[int, ...] = ()) -> int:
        """The vector of values that are kept to be shown, of the rows for which all masks hold."""
        return self._vector(self._selective_kind(kind, ordered=False), self.input(exprs), masks)

    def word(self, exprs: Exprs, kind: str, masks: tuple[int, ...]) -> int:
        """The vector of values that conditions between rows compare."""
        fixed = base_type(kind) in FIXED_WIDTH
        return self._vector(VectorKind.BITS if fixed else VectorKind.HASHED, self.input(exprs), masks)

    def _pairs(self, group: int, column: int) -> int:
        inputs = (*self.tables[group].inputs, column)
        pairs = _index(self.tables, Table(TableRole.PAIR, inputs))
        if self.tables[group].role is not TableRole.LIFE:
            return pairs
        return _index(self.tables, Table(TableRole.LIFE_PAIR, inputs, base=pairs, life=group))

    def _value_kind(self, kind: str) -> VectorKind:
        match base_type(kind):
            case "DECIMAL":
                return VectorKind.DECIMAL
            case "FLOAT" | "DOUBLE":
                return VectorKind.DOUBLE
            case base if base in FIXED_WIDTH:
                return VectorKind.INT
        return VectorKind.NUMBERED

    def _selective_kind(self, kind: str, ordered: bool) -> VectorKind:
        if base_type(kind) not in FIXED_WIDTH:
            return VectorKind.NUMBERED
        return VectorKind.ORDERED if ordered else VectorKind.BITS

    def _vector(self, kind: VectorKind, column: int | None, masks: tuple[int, ...]) -> int:
        table = None
        if kind is VectorKind.NUMBERED:
            assert column is not None
            table = _index(self.tables, Table(TableRole.VALUE, (column,)))
        return _index(self.vectors, Vector(kind, column, masks, table))

    def build(self) -> Stage[StepProgram]:
        """The finished stage. Its name says what it is partitioned by."""
        route, by = self._routed()
        everything = any(not masks for masks in self.wanted)
        return Stage(
            name=f"{' and '.join(dict.fromkeys(s.name for s in self.sources))} by {by}",
            sources=self.sources,
            route=route,
            inputs=tuple(self.inputs),
            keep=() if everything else tuple(self.wanted),
            tables=tuple(self.tables),
            vectors=tuple(self.vectors),
            program=self.program or self._own_program(),
            unique=None if self._unique is None else UniqueRows(*self._unique, self.members),
            level=self.level,
            late=tuple(self.late),
            doors=self.doors,
            apart=self._apart,
        )

    def _routed(self) -> tuple[Route, str]:
        match self.route_exprs:
            case None:
                return Anywhere(), "anywhere"
            case ():
                return OneBucket(), "one bucket"
            case keys:
                return ByHash(self.route or ()), ", ".join(str(k[0]) for k in keys)

    def _own_program(self) -> StepProgram:
        if not self.windows:
            return RowsProgram(tuple(self.outputs))
        return WindowsProgram(
            tuple(self.windows), tuple(self.tallies), tuple(self.outputs), tuple(self.reports), share_slices(self)
        )
