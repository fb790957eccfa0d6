"""How engines of the CQL family differ (002, chapter 3; SECRET): when they react, what they report, where windows begin.

A profile bundles these, so that a query can be run as another engine would run it. Ours is the default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from headrace.errors import QueryError, unknown


class Model(Enum):
    """What the engine reacts to (002, 3.1)."""

    TUPLE = "tuple"  # every row; rows of one time stand in the total order
    TIME = "time"  # the passing of time; all rows of one time are seen together
    BATCH = "batch"  # a batch: rows of one time with the same batch id


class Policy(Enum):
    """When a look at a window is told."""

    EVERY = "every slide"
    CHANGE = "on content change"
    CLOSE = "on window close"
    FILLED = "on non-empty"


class Ability(Enum):
    """What a query may need of the engine that runs it, as it is written."""

    RANGE = "[RANGE ..]"  # our own: open below, without peers
    LAG = "a window with a LAG"
    ROWS = "[ROWS ..]"
    UNBOUNDED = "[UNBOUNDED]"
    OVER = "OVER (..)"
    HOP = "[SIZE ..] of time"
    JUMP = "[SIZE ..] of time with a longer EVERY"
    SYSTEM = "windows of SYSTEM time"
    COUNT = "[SIZE ..] of rows"
    MIXED = "[SIZE ..] with size and slide of different kinds"
    FIELD = "[SIZE ..] ON a field"
    SESSION = "[SESSION ..]"
    DELTA = "[DELTA ..]"
    SPAN = "[LANDMARK ..] and [FIXED ..]"
    JOIN = "joins of windows"
    RECOGNIZE = "MATCH_RECOGNIZE"
    PATTERN = "EVENT SEQ(..)"
    OURS = "such windows, which no other engine has"


MODELS = [model.value for model in Model]
EVERYTHING = frozenset(Ability)
A = Ability
# The CQL of the thesis: what its engines share. Oracle CEP and StreamBase also measure windows on a field.
CQL = frozenset({A.RANGE, A.ROWS, A.UNBOUNDED, A.HOP, A.JUMP, A.SYSTEM, A.COUNT, A.JOIN})


@dataclass(frozen=True, slots=True)
class Settings:
    """How a query is executed.

    `origin` moves the times at which windows end; `open_above` makes them [l, u), which start where others end; `by_arrival` lets
    rows be counted as they come. `engine` is whose abilities bound what can be asked.
    """

    model: Model = Model.TUPLE
    report: Policy = Policy.EVERY
    origin: int = 0
    by_arrival: bool = False
    open_above: bool = False
    engine: str = "headrace"


@dataclass(frozen=True, slots=True)
class Profile:
    """An engine, what sets it apart, and what it can run at all."""

    name: str
    settings: Settings
    words: str
    can: frozenset[Ability] = EVERYTHING


PROFILES = {
    p.name: p
    for p in (
        Profile(
            "headrace", Settings(),
            "reacts to every event in the total order of time, and looks at windows (l, u] when the clock passes u",
        ),
        Profile(
            "flink", Settings(by_arrival=True, open_above=True, engine="flink"),
            "reacts to every event; windows are [l, u) and told at every slide, changed or not; rows are counted as they arrive",
            frozenset({A.ROWS, A.UNBOUNDED, A.OVER, A.HOP, A.JUMP, A.SYSTEM, A.COUNT, A.SESSION, A.RECOGNIZE}),
        ),
        Profile(
            "oracle-cep", Settings(Model.TIME, Policy.CHANGE, engine="oracle-cep"),
            "reacts when time moves on and sees all events of one time together; tells a window when its content has changed",
            CQL | {A.FIELD, A.RECOGNIZE},
        ),
        Profile(
            "coral8", Settings(Model.BATCH, Policy.CHANGE, engine="coral8"),
            "reacts to every batch (without BATCH BY each event is one); tells a window when its content has changed",
            CQL,
        ),
        Profile(
            "stream", Settings(Model.TIME, Policy.CHANGE, engine="stream"),
            "Stanford's prototype of CQL: as oracle-cep; the last of several events of one time is the one that counts",
            CQL,
        ),
        Profile(
            "streambase", Settings(report=Policy.CLOSE, by_arrival=True, engine="streambase"),
            "reacts to every event as it arrives; tells a window when it closes, if it is not empty",
            CQL | {A.FIELD},
        ),
        Profile(
            "spark", Settings(open_above=True, engine="spark"),
            "Structured Streaming: windows are [l, u) by event time; it has windows of time only, none of rows",
            frozenset({A.HOP, A.SESSION}),
        ),
    )
}  # fmt: skip


def profile(name: str) -> Profile:
    if name.lower() not in PROFILES:
        raise QueryError(unknown("profile", name, PROFILES))
    return PROFILES[name.lower()]


def unable(settings: Settings, needs: Ability) -> str | None:
    """Why the engine of a profile cannot run what needs this; None if it can."""
    engine = PROFILES[settings.engine]
    if needs in engine.can:
        return None
    return f"{engine.name} cannot run {needs.value}"


def changed(settings: Settings, key: str, value: str, micros: int | None = None) -> Settings:
    """The settings with one of them changed; `micros` is the value as a time."""
    match key.lower():
        case "profile":
            return profile(value).settings
        case "model" if value.lower() in MODELS:
            return replace(settings, model=Model(value.lower()))
        case "model":
            raise QueryError(unknown("model", value, MODELS))
        case "report":
            return replace(settings, report=_policy(value))
        case "origin" if micros is not None:
            return replace(settings, origin=micros, open_above=False)  # it says where windows (l, u] end
        case "order" if value.lower() in ("time", "arrival"):
            return replace(settings, by_arrival=value.lower() == "arrival")
        case "order":
            raise QueryError(f"order {value!r} is not known", hint="'time' (the total order) or 'arrival'")
    raise QueryError(unknown("setting", key, ("profile", "model", "report", "origin", "order")))


def _policy(value: str) -> Policy:
    short = {"every": Policy.EVERY, "change": Policy.CHANGE, "close": Policy.CLOSE, "nonempty": Policy.FILLED}
    known = short | {p.value: p for p in Policy} | {p.value.replace("-", ""): p for p in Policy}
    if value.lower() not in known:
        raise QueryError(unknown("report policy", value, [*short, *(p.value for p in Policy)]))
    return known[value.lower()]
