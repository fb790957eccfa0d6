"""A unit as a process of its own, that tests kill: `unit_child.py store epoch answers seed`.

It appends every answer with its offset to a file before it saves, and says on standard output how many it has given.
"""

from __future__ import annotations

import json
import os
import sys
from random import Random

from served import Unit, shown

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.serve.store.store import Store
from headrace.sql import parse_script
from headrace.testing.local import LocalEngine

RECORDS, CARDS = 100, 90
SCRIPT = parse_script("""
CREATE STREAM p (at TIMESTAMP, card STRING, x DOUBLE, word STRING) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 2 SECONDS;
SELECT card, x, SUM(x) AS s, COUNT(*) AS n, MAX(word) AS most, COUNT(DISTINCT word) AS words
  FROM p [RANGE 20 SECONDS] GROUP BY card EMIT CHANGES INTO sliding;
SELECT card, MIN(x) AS low, LAST(word) AS last, PERCENTILE(x, 0.5) AS middle FROM p [ROWS 150] GROUP BY card EMIT FINAL INTO rows;
EVENT SEQ(p a, p b) WHERE a.card = b.card AND a.x < b.x WITHIN 3 SECONDS RETURN a.card AS card, b.x AS x EMIT CHANGES INTO rising;
""")


def records(seed: int) -> list[Batch]:
    """Ten events in each, of many cards of which few are in one."""
    random, out = Random(seed), []
    for number in range(RECORDS):
        rows = []
        for _ in range(random.choice((10, 10, 1))):
            ts = number * SECOND // 4 - random.choice((0, 0, 0, 1, 3)) * SECOND
            card, word = random.randrange(CARDS), random.randrange(2 * CARDS)
            rows.append(Arrival((from_micros(ts), f"card {card}", random.choice((0.1, 0.2, 1e9, 3.5)), f"word {word}")))
        out.append(Batch(number, {"p": rows}))
    return out


def answers(seed: int) -> list[str]:
    engine = LocalEngine(SCRIPT, 1)
    return [json.dumps(shown(engine.push(record)), default=str) for record in records(seed)]


def main(folder: str, epoch: str, out: str, seed: str) -> None:
    store, log, random = Store(folder, 8), records(int(seed)), Random(f"{seed} {epoch}")
    unit = Unit(SCRIPT, store, int(epoch), log)
    said = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while unit.offset < len(log):
        line = f"{unit.offset} {json.dumps(unit.answer(log[unit.offset]), default=str)}\n"
        os.write(said, line.encode())
        os.write(1, b".")
        if random.random() < 0.3:
            unit.partition.save(unit.offset)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
