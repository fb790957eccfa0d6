"""120 windows of different sizes against one of them: SUM and COUNT per card, a query for each window.

clock    `[SIZE n MINUTES EVERY 1 MINUTE]`, n = 1 .. 120, as 120 SELECTs of one script, with EMIT FINAL. Every minute one row
         leaves for each card in each window. The one that they are measured against is that of 60 minutes
event    `[RANGE n MINUTES]`, n = 1 .. 120, likewise: 120 rows leave for each event

The same payments for both, over four hours of event time; only the second half of the micro-batches counts, when all windows are
full. Nothing is written (Spark's `noop`), but every row is brought to where the sink begins, with HAVING and SELECT done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import command, engine
from .command import Log
from .payments import Payments, ensure
from .report import NotMeasured, Result, Target
from .window_counts import run_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES, QUICK_SIZES = range(1, 121), range(1, 4)
ONE = (60,)
CARDS = (100, 1_000)
HOURS = 4.0
FILES, QUICK_FILES = 10, 2
EVENT_SHARE = 16  # every event looks: on one in so many rows, because 120 rows leave for each
KINDS = CLOCK, EVENT = ("clock", "event")
BOUND = 3.0


def selects(kind: str, sizes: Iterable[int]) -> str:
    if kind == CLOCK:
        what, window = "card, window_end", "[SIZE {} MINUTES EVERY 1 MINUTE]"
    else:
        what, window = "id, card", "[RANGE {} MINUTES]"
    calls = "SUM(amount) AS total, COUNT(*) AS n"
    over = (f"FROM payments {window.format(n)} GROUP BY card EMIT FINAL INTO w{n}" for n in sizes)
    return ";\n".join(f"SELECT {what}, {calls} {one}" for one in over)


def spec_of(rows: int, cards: int, files: int = FILES) -> Payments:
    return Payments(rows, files, cards, events_per_second=rows / (HOURS * 3600))


def measure(log: Log, rows: int, cards: Sequence[int], kinds: Sequence[str] = KINDS, quick: bool = False) -> list[Result]:
    """The one window, untimed and timed, then all of them, on the same rows and in the same session."""
    files, cards = (QUICK_FILES, cards[:1]) if quick else (FILES, cards)
    plan = [(CLOCK, spec_of(rows, n, files)) for n in cards] if CLOCK in kinds else []
    plan += [(EVENT, spec_of(max(rows // EVENT_SHARE, files), cards[0], files))] if EVENT in kinds else []
    spark = engine.session()
    out = []
    for kind, spec in plan:
        if not quick:
            measure_one(spark, kind, spec, ONE)
        for sizes in (ONE, QUICK_SIZES if quick else SIZES):
            out.append(measure_one(spark, kind, spec, sizes))
            rate, gives = out[-1].events_per_second, out[-1].details["rows_out"]
            log.say(f"{out[-1].name}: {rate:,.0f} events/s, {gives:,} rows out")
    spark.stop()
    return out


def measure_one(spark: SparkSession, kind: str, spec: Payments, sizes: Sequence[int]) -> Result:
    batches = run_batches(engine.all_results(spark, engine.script(ensure(spec, command.DATA), selects(kind, sizes))))
    counted = batches[len(batches) // 2 :]
    details = {
        "shared": kind,
        "windows": len(sizes),
        "cards": spec.cards,
        "rows_out": sum(b["observedMetrics"][engine.SUBJECT]["rows_out"] for b in counted),
        "batch_ms": [b["durationMs"]["triggerExecution"] for b in batches],
    }
    if not details["rows_out"]:
        raise NotMeasured(f"{len(sizes)} windows: no row left, or progress did not say so")
    seconds = sum(b["durationMs"]["triggerExecution"] for b in counted) / 1000.0
    name = f"{kind}, {'one window' if len(sizes) == 1 else f'{len(sizes)} windows'}, {spec.cards:,} cards"
    return Result(name, sum(b["numInputRows"] for b in counted), seconds, details)


def pairs(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """One window and all of them, on the same rows."""
    found = [r for r in results if "shared" in r.details]
    return list(zip(found[::2], found[1::2], strict=True))


def targets(results: Sequence[Result]) -> list[Target]:
    """Held for the fewest cards: with many, it is the rows that leave which cost, and they are 120 times as many."""
    clock = [p for p in pairs(results) if p[0].details["shared"] == CLOCK][:1]
    name = f"the {CLOCK} looks, {{}} cards: {{}} windows / one"
    return [
        Target(name.format(a.details["cards"], b.details["windows"]), b.seconds / a.seconds, BOUND, at_least=False)
        for a, b in clock
    ]
