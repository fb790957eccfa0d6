"""Windows: `hr.range("5 minutes")`, `hr.rows(100)`, `hr.unbounded()`, `hr.size("1 hour", every="5 minutes")`, `hr.window(..)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.api.texts import bind, duration
from headrace.errors import QueryError
from headrace.plan.nodes import Filter, Node
from headrace.plan.profiles import Model, Settings, changed
from headrace.plan.schema import Schema
from headrace.plan.triggers import EveryTime
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window
from headrace.sql.bind.policy import Looking, ability_of, check_able, in_order, looking
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import Span, Text
from headrace.sql.parse.syntax import Name
from headrace.sql.parse.tokens import Cursor, tokenize
from headrace.sql.parse.windows import instant_of
from headrace.sql.parse.windows import window as window_clause


@dataclass(frozen=True, slots=True)
class Rows:
    """The last n rows; the columns it is partitioned by are looked up when it is used."""

    rows: int
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """A window that is looked at by the clock."""

    window: RangeWindow
    trigger: EveryTime


@dataclass(frozen=True, slots=True)
class Written:
    """A window as SQL writes it between square brackets, and how it is executed."""

    text: str
    settings: Settings = field(default_factory=Settings)
    batch_by: str | None = None

    def bind(self, node: Node) -> tuple[Node, Window | Looking]:
        """Its rows, and the window that every event looks at, or how it is looked at."""
        text = Text(f"[{self.text.strip().removeprefix('[').removesuffix(']')}]", "window")
        cursor = Cursor(text, tokenize(text), len(text.sql))
        clause = window_clause(cursor)
        if not cursor.done:
            raise cursor.expected("the end")
        scope = Scope(text, node.schema)
        if clause.predicate:
            node = Filter(node, scope.condition(clause.predicate, "WHERE"))
        batch = bind(self.batch_by, node.schema, "batch_by") if self.batch_by else None
        check_able(text, self.settings, ability_of(clause.spec), clause.span)
        with text.at(clause.span):
            look = looking(clause, node, scope, self.settings, batch)
            return (look.node if isinstance(look, Looking) else in_order(clause.spec, node, self.settings)), look


WindowLike = RangeWindow | Rows | UnboundedWindow | Size | Written


def window(text: str, *, batch_by: str | None = None, **settings: str) -> Written:
    """Any window of the language, as it stands between square brackets, with the settings of WITH (..).

    >>> window("SIZE 100 EVERY 10 PARTITIONED BY card").text
    'SIZE 100 EVERY 10 PARTITIONED BY card'
    >>> window("SIZE 5 SECONDS EVERY 1 SECOND", profile="flink").settings.open_above
    True
    """
    chosen = Settings(Model.BATCH) if batch_by else Settings()
    for key in sorted(settings, key=lambda k: k != "profile"):
        micros = (
            instant_of(Text(settings[key], key), Name(settings[key], Span(0, len(settings[key])))) if key == "origin" else None
        )
        chosen = changed(chosen, key, settings[key], micros)
    return Written(text, chosen, batch_by)


def range_(size: str | timedelta, lag: str | timedelta | None = None) -> RangeWindow:
    """A sliding window: at an event of time t, the events in (t - lag - size, t - lag].

    >>> str(range_("5 minutes", lag="1 hour"))
    '[RANGE 5 MINUTES LAG 1 HOUR]'
    """
    return RangeWindow(duration(size, "range"), duration(lag, "lag") if lag is not None else 0)


def rows(count: int, partition_by: str | Sequence[str] = ()) -> Rows:
    """The last `count` rows of the stream, or of each partition."""
    RowsWindow(count)  # refuses zero and less
    return Rows(count, names(partition_by))


def unbounded() -> UnboundedWindow:
    """Every row up to the event."""
    return UnboundedWindow()


def size(length: str | timedelta, every: str | timedelta | None = None, lag: str | timedelta | None = None) -> Size:
    """A window that is looked at `every` so often and not at every event: tumbling, hopping or jumping.

    It gives one row for every group that is in it, with `window_start` and `window_end`; without `every` it tumbles.

    >>> window = size("1 hour", every="5 minutes")
    >>> str(window.window), str(window.trigger)
    ('[RANGE 1 HOUR]', 'EVERY 5 MINUTES')
    """
    window = range_(length, lag)
    return Size(window, EveryTime(duration(every, "every") if every is not None else window.size))


def names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def bind_window(window: WindowLike, schema: Schema) -> Window:
    match window:
        case RangeWindow() | UnboundedWindow():
            return window
        case Size(window=inside):
            return inside
        case Rows(rows=count, partition_by=by):
            return RowsWindow(count, tuple(bind(b, schema, "partition_by") for b in by))
    hint = "hr.range('5 minutes'), hr.rows(100), hr.unbounded() or hr.size('1 hour')"
    raise QueryError(f"expected a window, got {window!r}", hint=hint)
