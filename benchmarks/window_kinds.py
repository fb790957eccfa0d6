"""What a kind of window costs beside the sliding window, and beside Spark's own `window()` on the same rows.

Headrace reports with EMIT FINAL, as Spark does in append mode: a row per card and window, once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import command, engine
from .command import Log
from .payments import Payments, ensure
from .report import Result, Target
from .rivals import spark_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TUMBLING, HOPPING = "tumbling 1 min", "hopping 60 min by 1 min"
WINDOWS = {TUMBLING: "SIZE 1 MINUTE", HOPPING: "SIZE 60 MINUTES EVERY 1 MINUTE"}
# Those that Spark has not, or not like this: only beside the sliding window.
OTHERS = {
    "tumbling 10 rows": "SIZE 10 PARTITIONED BY card",
    "10 rows every 5": "SIZE 10 EVERY 5 PARTITIONED BY card",
    "60 min every 10 rows": "SIZE 60 MINUTES EVERY 10 PARTITIONED BY card",
    "session 5 min": "SESSION 5 MINUTES",
    "delta 50": "DELTA 50 ON amount",
}
SLIDING = "sliding 60 min"
Run = Callable[["SparkSession", Path], Result]


def measure(log: Log, rows: int, cards: int, hop_shrink: int, quick: bool = False) -> list[Result]:
    """Every engine once untimed, then once; hopping windows on fewer rows, because Spark makes 60 of each."""
    spec = Payments(rows, files=2 if quick else 10, cards=cards)
    few = replace(spec.shrink(max(rows // hop_shrink, 100)), files=spec.files // 2)
    plan: list[tuple[str, Payments, Run]] = [
        (f"headrace {SLIDING}", spec, lambda s, d: engine.sliding(s, d)),
        (f"headrace {TUMBLING}", spec, ours(TUMBLING)),
        (f"spark {TUMBLING}", spec, lambda s, d: spark_native.hopping(s, d, 60, 1)),
        (f"headrace {HOPPING}", few, ours(HOPPING)),
        (f"spark {HOPPING}", few, lambda s, d: spark_native.hopping(s, d)),
    ]
    plan += [] if quick else [(f"headrace {kind}", spec, ours(kind)) for kind in OTHERS]
    spark = engine.session()
    out = []
    for name, what, run in plan:
        data = ensure(what, command.DATA)
        if not quick:
            run(spark, data)
        found = run(spark, data)
        out.append(Result(name, found.rows, found.seconds, {**found.details, "kind": name.split(" ", 1)[1]}))
        log.say(f"{name}: {found.events_per_second:,.0f} events/s")
    spark.stop()
    return out


def ours(kind: str) -> Run:
    """The window with our words."""
    select = f"""SELECT card, window_end, SUM(amount) AS total, COUNT(*) AS n
        FROM payments [{(WINDOWS | OTHERS)[kind]}] GROUP BY card EMIT FINAL"""

    def run(spark: SparkSession, data: Path) -> Result:
        return spark_native.run_to_end(kind, engine.results(spark, engine.script(data, select)), "append")

    return run


def targets(results: Sequence[Result]) -> list[Target]:
    """Tumbling at least as fast as Spark's own, hopping at least ten times."""
    rate = {r.name: r.events_per_second for r in results}
    if not rate:
        return []
    return [
        Target(f"{kind}, of Spark's own", rate[f"headrace {kind}"] / rate[f"spark {kind}"], bound)
        for kind, bound in ((TUMBLING, 1.0), (HOPPING, 10.0))
    ]
