"""Units as Spark tasks: they answer, die, come again and go on; what was answered is what the engine says."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.serve.deployment import Deployment, deploy
from headrace.serve.front import Taken
from headrace.serve.serving import Serving
from headrace.spark.serving import SparkUnits
from headrace.sql import parse_script
from headrace.testing.local import LocalEngine

SCRIPT = """CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY 5 SECONDS;
SELECT id, card, SUM(amount) AS total, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card INTO card_profile;
SELECT id, merchant, AVG(amount) AS mean FROM payments [RANGE 5 MINUTES] GROUP BY merchant INTO shop;
EVENT SEQ(payments a, payments b) WHERE a.card = b.card AND b.amount > 2 * a.amount WITHIN 1 MINUTE
RETURN a.id AS first_id, b.id AS last_id INTO jumps;"""
SECONDS = 30.0


@contextmanager
def served(spark, deployment: Deployment, folder: Path) -> Iterator[Serving]:
    serving = Serving(deployment, str(folder / "log"), str(folder / "store"))
    units, stopped = SparkUnits(spark, serving.config, 2), threading.Event()

    def collect() -> None:
        while not stopped.is_set():
            serving.front.collect(0.1)

    collecting = threading.Thread(target=collect)
    collecting.start()
    try:
        serving.wait_for_units(2, SECONDS)
        yield serving
    finally:
        stopped.set()
        collecting.join()
        serving.stop()
        units.stop()
        serving.close()


def payments(rng: Random, first: int, count: int) -> list[list[object]]:
    """Some of them late, and some too late."""
    out = []
    for id in range(first, first + count):
        at = id * 1_000_000 - rng.choice((0, 0, 0, 2, 4, 9)) * 1_000_000
        out.append([id, rng.choice("abc"), rng.choice("xyz"), float(rng.randint(1, 9)), at])
    return out


def test_units_die_and_every_event_is_answered_as_the_engine_answers_it(spark, tmp_path):
    script, rng = parse_script(SCRIPT), Random(1)
    deployment, engine = deploy(script, partitions=2), LocalEngine(script, 2)
    killed, late = 0, 0
    for first in (0, 60):  # the second time all of it begins again, and goes on with the state
        with served(spark, deployment, tmp_path) as serving:
            posted: list[tuple[Taken, list[object]]] = []
            for row in payments(rng, first, 60):
                posted.append((serving.front.post(0, int(row[4]), row), row))
                if row[0] in (20, 40, 80):
                    os.kill(next(iter(serving.coordinator.members().values())), signal.SIGKILL)
                    killed += 1
            for taken, row in posted:
                engine._positions["payments", 0] = taken.place
                arrival = Arrival((*row[:4], from_micros(row[4])))
                want = engine.push(Batch(0, {"payments": [arrival]}))
                late += taken.late
                if taken.answer is None:
                    continue
                said = taken.answer.result(SECONDS).said
                got = [(one.query, one.sign, tuple(one.key), tuple(one.row)) for one in said]
                assert sorted(got) == sorted(
                    (number, change.sign, change.key, tuple(change.row))
                    for number, query in enumerate(script.queries)
                    for change in want[query.name]
                )
            assert serving.front.unanswered() == 0
    assert killed == 3
    assert late
