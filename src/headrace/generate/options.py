"""What can be asked of a generator, and how it is written in SQL and on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from headrace.errors import QueryError, unknown
from headrace.plan.time import SECOND, parse_duration

T = TypeVar("T")
MAX_KEYS = 50_000_000
MAX_ROWS = 2**40
MAX_SEED = 2**64 - 1
MAX_TYPES = 26  # A to Z
MAX_SPAN_S = 1_000 * 365 * 86_400


def _bad(name: str, value: object, expected: str) -> QueryError:
    return QueryError(
        f"option {name!r} cannot be {value!r}", hint=expected if expected.startswith("too ") else f"{name} is {expected}"
    )


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise _bad(name, value, expected)


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of a stream. Times are microseconds; rows None means without end.

    Rows come in arrival order, row i at `start + i / rate`. A share `late_share` of them happened up to `late_max` before
    they arrive, so a stream declared with `DELAY late_max` has no late rows.

    The rest is for `sequence`, whose events have types: what is different for some of them, how many promises there are for
    each event, and what a promise rests on: the largest delay (`delay`), or what the source has sent (`sent`).
    """

    rate: float = 1_000.0
    keys: int = 10_000
    skew: float = 0.0
    late_share: float = 0.0
    late_max: int = 10 * SECOND
    seed: int = 1
    start: int = 1_767_225_600 * SECOND  # 2026-01-01 00:00 UTC
    rows: int | None = None
    types: int = 10
    type_share: tuple[tuple[str, float], ...] = ()  # late_share of single types
    type_max: tuple[tuple[str, int], ...] = ()  # late_max of single types
    pog_share: float = 0.0
    pog: str = "delay"

    @property
    def row_rate(self) -> float:
        """Rows per second: promises come between the events."""
        return self.rate * (1.0 + self.pog_share)

    @property
    def type_names(self) -> tuple[str, ...]:
        """A, B, C, .."""
        return tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self.types])

    def __post_init__(self) -> None:
        share, lateness = "a share from 0 to 1", "a duration, for example '10 seconds'"
        rate, rows = "events per second of event time, from 0.000001 to 1000000", self.rows or 0
        _require(math.isfinite(self.rate) and 1e-6 <= self.rate <= 1e6, "rate", self.rate, rate)
        _require(1 <= self.keys <= MAX_KEYS, "keys", self.keys, f"a whole number from 1 to {MAX_KEYS}")
        _require(0 <= self.skew <= 10, "skew", self.skew, "a Zipf exponent from 0 (all keys alike) to 10")
        _require(0 <= self.late_share <= 1, "late_share", self.late_share, share)
        _require(self.late_max >= 0, "late_max", self.late_max, lateness)
        _require(0 <= self.seed <= MAX_SEED, "seed", self.seed, f"a whole number from 0 to {MAX_SEED}")
        _require(0 <= rows <= MAX_ROWS, "rows", self.rows, f"a whole number from 0 to {MAX_ROWS}")
        _require(1 <= self.types <= MAX_TYPES, "types", self.types, f"a whole number from 1 to {MAX_TYPES}")
        for name, _ in (*self.type_share, *self.type_max):
            if name not in self.type_names:
                raise QueryError(unknown("type", name, self.type_names))
        for name, value in self.type_share:
            _require(0 <= value <= 1, "late_share", f"{name}={value:g}", share)
        _require(all(longest >= 0 for _, longest in self.type_max), "late_max", "negative", lateness)
        _require(0 <= self.pog_share <= 1, "pog_share", self.pog_share, "promises per event, from 0 to 1")
        ways = "'delay' (by the largest delay) or 'sent' (as soon as nothing before it is under way)"
        _require(self.pog in ("delay", "sent"), "pog", self.pog, ways)
        slow = f"too slow for {self.rows} rows: they would span more than a thousand years"
        _require(rows / self.rate <= MAX_SPAN_S, "rate", self.rate, slow)


# Where a kind departs from the defaults of Options.
DEFAULTS = {
    "payments": Options(keys=10_000, skew=0.8),
    "rfid": Options(rate=100.0, keys=100_000),
    "ticks": Options(keys=100, skew=1.0),
    "sequence": Options(rate=1.0, keys=100),
}


def default_options(kind: str) -> Options:
    if kind not in DEFAULTS:
        raise QueryError(unknown("generator", kind, DEFAULTS))
    return DEFAULTS[kind]


def parse_options(kind: str, given: Iterable[tuple[str, str]]) -> Options:
    """Options from (name, text) pairs, as `GENERATE('payments', rate => 500, late_max => '5 seconds')` gives them.

    >>> parse_options("payments", (("rate", "500"), ("late_max", "'5 seconds'"))).late_max
    5000000
    """
    options, known = default_options(kind), _OF_SEQUENCE if kind == "sequence" else _OF_ALL
    texts: dict[str, str] = {}
    for name, text in given:
        key = name.strip().lower().replace("-", "_")
        if key not in known:
            raise QueryError(unknown("option", name, known), where=f"GENERATE('{kind}')")
        if key in texts:
            raise QueryError(f"option {key!r} is given twice", where=f"GENERATE('{kind}')")
        texts[key] = text.strip().strip("'\"").strip()
    if kind == "sequence":
        return _of_sequence(options, texts)
    return replace(options, **{key: _READERS[key](key, text) for key, text in texts.items()})


def _of_sequence(options: Options, texts: dict[str, str]) -> Options:
    """Rates and bare numbers are in time units; disorder is one value for all types, or one for some of them, or both."""
    unit = _duration("unit", texts.pop("unit", "1"))
    if unit <= 0:
        raise _bad("unit", unit, "a duration, for example '1 second'")
    values: dict[str, Any] = {"late_max": 10 * unit}
    for key, text in texts.items():
        match key:
            case "late_share":
                values |= _by_type(text, "late_share", "type_share", _number)
            case "late_max":
                values |= _by_type(text, "late_max", "type_max", lambda name, part: _duration(name, part, unit))
            case _:
                values[key] = _READERS[key](key, text)
    values["rate"] = values.get("rate", options.rate) * SECOND / unit
    return replace(options, **values)


def _by_type(text: str, name: str, of_types: str, read: Callable[[str, str], Any]) -> dict[str, Any]:
    """`0.1, A=0.3, C=0.5`: a value for all, and others for some."""
    out: dict[str, Any] = {}
    some: dict[str, Any] = {}
    for part in text.split(","):
        of, equals, value = part.rpartition("=")
        key = of.strip().upper()
        if (key in some) if equals else (name in out):
            raise QueryError(
                f"option {name!r} has two values for {key or 'all types'}", hint=f"for example {name} => '0.1, A=0.3'"
            )
        if equals:
            some[key] = read(name, value.strip())
        else:
            out[name] = read(name, value.strip())
    return out | {of_types: tuple(some.items())}


def _reader(read: Callable[[str], T], expected: str) -> Callable[[str, str], T]:
    """Reads the text of an option, given its name."""

    def checked(name: str, text: str) -> T:
        try:
            return read(text)
        except ValueError:
            raise _bad(name, text, expected) from None

    return checked


def _duration(name: str, text: str, unit: int = SECOND) -> int:
    try:
        return round(float(text) * unit)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_duration(text)
    except QueryError:
        raise _bad(name, text, "a duration, for example '10 seconds', or a number of seconds") from None


def _micros(text: str) -> int:
    when = datetime.fromisoformat(text)
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_whole = _reader(lambda text: int(text.replace("_", "")), "a whole number")
_number = _reader(lambda text: float(text.replace("_", "")), "a number")
_instant = _reader(_micros, "a time, for example '2026-01-01 00:00:00'; UTC if no zone is given")


def _rows(name: str, text: str) -> int | None:
    return None if text.lower() in ("unbounded", "none") else _whole(name, text)


_READERS: dict[str, Callable[[str, str], Any]] = {
    "rate": _number,
    "keys": _whole,
    "skew": _number,
    "late_share": _number,
    "late_max": _duration,
    "seed": _whole,
    "start": _instant,
    "rows": _rows,
    "types": _whole,
    "pog_share": _number,
    "pog": lambda _, text: text.lower(),
}
_OF_ALL = ("rate", "keys", "skew", "late_share", "late_max", "seed", "start", "rows")
_OF_SEQUENCE = (*_OF_ALL, "types", "pog_share", "pog", "unit")
assert {f.name for f in fields(Options)} == {*_READERS, "type_share", "type_max"}
