"""What can be asked of a generator, and how it is written in SQL and on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headrace.errors import QueryError, unknown
from headrace.plan.time import SECOND, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_KEYS = 50_000_000
MAX_ROWS = 2**40
MAX_SEED = 2**64 - 1
MAX_SPAN_S = 1_000 * 365 * 86_400
_MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of a stream. Times are microseconds; rows None means without end.

    Rows come in arrival order, row i at `start + i / rate`. A share `late_share` of them happened up to `late_max` before
    they arrive, so a stream declared with `DELAY late_max` has no late rows.
    """

    rate: float = 1_000.0
    keys: int = 10_000
    skew: float = 0.0
    late_share: float = 0.0
    late_max: int = 10 * SECOND
    seed: int = 1
    start: int = 1_767_225_600 * SECOND  # 2026-01-01 00:00 UTC
    rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be generated."""
        if not (math.isfinite(self.rate) and 1e-6 <= self.rate <= 1 / _MICROSECOND):
            raise _bad("rate", self.rate, "events per second of event time, from 0.000001 to 1000000")
        if not 1 <= self.keys <= MAX_KEYS:
            raise _bad("keys", self.keys, f"a whole number from 1 to {MAX_KEYS}")
        if not 0 <= self.skew <= 10:
            raise _bad("skew", self.skew, "a Zipf exponent from 0 (all keys alike) to 10")
        if not 0 <= self.late_share <= 1:
            raise _bad("late_share", self.late_share, "a share from 0 to 1")
        if self.late_max < 0:
            raise _bad("late_max", self.late_max, "a duration, for example '10 seconds'")
        if not 0 <= self.seed <= MAX_SEED:
            raise _bad("seed", self.seed, f"a whole number from 0 to {MAX_SEED}")
        if self.rows is not None and not 0 <= self.rows <= MAX_ROWS:
            raise _bad("rows", self.rows, f"a whole number from 0 to {MAX_ROWS}")
        if self.rows is not None and self.rows / self.rate > MAX_SPAN_S:
            raise _bad("rate", self.rate, f"too slow for {self.rows} rows: they would span more than a thousand years")


# Where a kind departs from the defaults of Options.
DEFAULTS = {
    "payments": Options(keys=10_000, skew=0.8),
    "rfid": Options(rate=100.0, keys=100_000),
    "ticks": Options(keys=100, skew=1.0),
}


def default_options(kind: str) -> Options:
    """The options of a kind when nothing is said."""
    if kind not in DEFAULTS:
        raise QueryError(unknown("generator", kind, DEFAULTS))
    return DEFAULTS[kind]


def parse_options(kind: str, given: Iterable[tuple[str, str]]) -> Options:
    """Options from (name, text) pairs, as `GENERATE('payments', rate => 500, late_max => '5 seconds')` gives them.

    >>> parse_options("payments", (("rate", "500"), ("late_max", "'5 seconds'"))).late_max
    5000000
    """
    options = default_options(kind)
    seen: dict[str, Any] = {}
    for name, text in given:
        key = name.strip().lower().replace("-", "_")
        if key not in _READERS:
            raise QueryError(unknown("option", name, _READERS), where=f"GENERATE('{kind}')")
        if key in seen:
            raise QueryError(f"option {key!r} is given twice", where=f"GENERATE('{kind}')")
        seen[key] = _READERS[key](key, text.strip().strip("'\"").strip())
    return replace(options, **seen)


def _bad(name: str, value: object, expected: str) -> QueryError:
    return QueryError(
        f"option {name!r} cannot be {value!r}", hint=expected if expected.startswith("too ") else f"{name} is {expected}"
    )


def _whole(name: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise _bad(name, text, "a whole number") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        raise _bad(name, text, "a number") from None


def _duration(name: str, text: str) -> int:
    try:
        return round(float(text) * SECOND)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_duration(text)
    except QueryError:
        raise _bad(name, text, "a duration, for example '10 seconds', or a number of seconds") from None


def _instant(name: str, text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise _bad(name, text, "a time, for example '2026-01-01 00:00:00'; UTC if no zone is given") from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    gap = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (gap.days * 86_400 + gap.seconds) * SECOND + gap.microseconds


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
}
assert set(_READERS) == {f.name for f in fields(Options)}
