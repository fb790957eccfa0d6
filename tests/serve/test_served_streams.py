"""Two streams that meet in a join and in a pattern are served as the engine says, whoever dies when."""

from __future__ import annotations

from collections import Counter
from random import Random

from served_world import Served

from headrace.log.files import FileLog
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.serve.deployment import deploy
from headrace.sql import parse_script
from headrace.testing.local import LocalEngine

SCRIPT = """CREATE STREAM p (id BIGINT, card STRING, at TIMESTAMP) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;
CREATE STREAM r (id BIGINT, card STRING, at TIMESTAMP) SOURCE FILE('r.csv') TIMESTAMP BY at DELAY 5 SECONDS;
SELECT p.id AS a, r.id AS b FROM p [RANGE 20 SECONDS] JOIN r [RANGE 20 SECONDS] ON p.card = r.card EMIT CHANGES INTO j;
EVENT SEQ(p x, !(r n), p y) WHERE x.card = n.card AND n.card = y.card WITHIN 20 SECONDS
RETURN x.id AS a, y.id AS b EMIT CHANGES INTO s;"""


def test_streams_that_meet_are_served_as_the_engine_says(tmp_path):
    script, said, taken_back = parse_script(SCRIPT), 0, 0
    for seed in range(4):
        rng, deployment = Random(seed), deploy(script, partitions=2)
        served, engine, want = Served(deployment, FileLog(tmp_path / str(seed))), LocalEngine(script, 2), Counter[object]()
        for id in range(60):
            stream, at, card = rng.randrange(2), (id - rng.choice((0, 0, 2, 4, 8))) * 1_000_000, rng.choice("ab")
            name = deployment.streams[stream].name
            engine._positions[name, 0] = served.fronts[0].post(stream, at, [id, card, at]).place
            outputs = engine.push(Batch(0, {name: [Arrival((id, card, from_micros(at)))]}))
            want.update((query, c.sign, tuple(c.row)) for query, changes in outputs.items() for c in changes)
            taken_back += sum(c.sign < 0 for changes in outputs.values() for c in changes)
            disturb(served, rng)
        served.work()
        replies = {(r.topic, r.partition, r.offset): r for r in served.replies}.values()
        got = Counter((script.queries[one.query].name, one.sign, tuple(one.row)) for r in replies for one in r.said)
        assert got == want, f"seed {seed}"
        said += sum(want.values())
    assert said > 500
    assert taken_back > 10


def disturb(served: Served, rng: Random) -> None:
    """What may happen between two events."""
    match rng.randrange(10):
        case 0:
            served.kill_unit(rng.choice(list(served.units)))
            served.add_unit()
        case 1:
            served.kill_front(0)
        case 2 | 3:
            served.work()
