"""What is run in the experiments of 001, section IX: a stream of the generator, a query, and a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.generate import Options
from headrace.plan.expr import Expr
from headrace.plan.nodes import Project, Scan
from headrace.plan.patterns import Place, Spill, pattern
from headrace.plan.query import Emit, Query, Script, Using
from headrace.plan.schema import Schema
from headrace.plan.stream import FrameSource, Stream
from headrace.plan.time import SECOND

UNIT = SECOND
NEGATED = "C"
COLUMNS = Schema.of(id="BIGINT", value="INT", at="TIMESTAMP", pog="TIMESTAMP")


class Strategy(Enum):
    """How disorder is handled. BASIC is the engine that knows none: the rows must come in order."""

    BASIC = "basic"
    AGGRESSIVE = "aggressive"
    CONSERVATIVE = "conservative"
    KSLACK = "K-slack"


@dataclass(frozen=True)
class Disk:
    """Section VIII: how many events may be in memory, and when late events that wait for a frame are handled."""

    memory: int
    late_events: int = 1  # alpha_p: so many of one frame
    late_units: float = 10.0  # alpha_t: or so long, in time units

    @property
    def spill(self) -> Spill:
        """As the plan has it."""
        return Spill(self.memory, self.late_events, round(self.late_units * UNIT) if self.late_events > 1 else None)


@dataclass(frozen=True)
class Run:
    """One point of a figure. Shares are those of each type: late events by all events of the type."""

    strategy: Strategy
    length: int  # positive events: 3 is SEQ(A, B, !C, D), 7 is SEQ(A, B, !C, D, E, F, G, H)
    positive_share: float = 0.0
    negative_share: float = 0.0
    window: float = 20.0  # time units
    max_delay: float = 10.0
    pog_share: float = 0.0
    pog: str = "sent"
    rate: float = 4.0  # events of all ten types in a time unit
    rows: int = 20_000  # events and promises of all ten types
    seed: int = 1
    disk: Disk | None = None

    @property
    def types(self) -> str:
        """Those the query reads, in the order of the sequence."""
        return "ABCDEFGHIJ"[: self.length + 1]

    @property
    def events(self) -> int:
        """Of all types, without the promises between them."""
        return self.rows - int(self.rows * self.pog_share / (1.0 + self.pog_share))

    @property
    def options(self) -> Options:
        """For the generator. Types the query does not read are late like its positive ones; nobody looks at them."""
        return Options(
            rate=self.rate * SECOND / UNIT, late_share=self.positive_share, type_share=((NEGATED, self.negative_share),),
            late_max=round(self.max_delay * UNIT), pog_share=self.pog_share, pog=self.pog, seed=self.seed, rows=self.rows,
        )  # fmt: skip


def script_of(run: Run) -> Script:
    """The plan of a run: a stream for each type, the sequence, and the ids of its events."""
    streams = tuple(stream_of(run, name) for name in run.types)
    places = [Place(s.name.lower(), Scan(s), negated=s.name == NEGATED) for s in streams]
    node = pattern(places, (), round(run.window * UNIT), spill=None if run.disk is None else run.disk.spill)
    items = tuple((p.name, Expr.column(f"{p.name}_id")) for p in places if not p.negated)
    match run.strategy:
        case Strategy.BASIC | Strategy.AGGRESSIVE:
            emit, using = Emit.CHANGES, Using.OPTIMISTIC
        case Strategy.CONSERVATIVE:
            emit, using = Emit.FINAL, Using.OPTIMISTIC
        case Strategy.KSLACK:
            emit, using = Emit.FINAL_IN_ORDER, Using.KSLACK
    return Script((Query("matches", Project(node, items), emit, using=using),), streams)


def stream_of(run: Run, name: str) -> Stream:
    """Conservative knows nothing but promises; the others know the largest delay, and BASIC that there is none."""
    delay = {Strategy.BASIC: 0, Strategy.CONSERVATIVE: None}.get(run.strategy, round(run.max_delay * UNIT))
    promised = {"punctuation": Expr.column("pog")} if run.strategy is Strategy.CONSERVATIVE else {}
    return Stream(name, FrameSource(name), COLUMNS, Expr.column("at"), delay=delay, **promised)
