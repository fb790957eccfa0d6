"""Events answered one by one say what the engine says that is given one event a batch; whoever dies when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from served_world import Served

from headrace.changes.values import batch_of_rows as batch_of_values
from headrace.changes.values import rows_of
from headrace.errors import QueryError
from headrace.log.files import FileLog
from headrace.oracle.admission import Arrival, Batch, Punctuation, read_times
from headrace.oracle.rows import batch_of_rows, canonical_row, normal_rows, rows_of_batch
from headrace.plan.arrow import arrow_type
from headrace.plan.nodes import Rejected
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import FileSource, Stream
from headrace.serve.deployment import deploy
from headrace.serve.front import Taken
from headrace.serve.records import Reply, Said
from headrace.serve.values import wire
from headrace.sql import parse_script
from headrace.stages.flatten import split_top
from headrace.testing.engine import Outputs
from headrace.testing.local import LocalEngine
from headrace.testing.strategies import Case, arrivals, sampled, scripts, streams
from seeds import FIRST, examples

STREAM = """CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY {};"""


def test_a_payment_is_answered_for_its_card_and_its_merchant(tmp_path):
    script = (
        STREAM.format("0")
        + """
    SELECT id, card, SUM(amount) AS total, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card INTO card_profile;
    SELECT id, merchant, AVG(amount) AS mean FROM payments [RANGE 5 MINUTES] GROUP BY merchant INTO shop;"""
    )
    served = Served(deploy(parse_script(script)), FileLog(tmp_path))
    front, answers = served.fronts[0], []
    for id, card, merchant, amount, at in [(1, "a", "x", 10.0, 0), (2, "a", "y", 5.0, 60), (3, "b", "x", 20.0, 90)]:
        answers.append(front.post(0, at * 1_000_000, [id, card, merchant, amount, at * 1_000_000]))
        served.work()
    assert [[said.row for said in served.said(a)] for a in answers] == [
        [[1, "a", 10.0, 1], [1, "x", 10.0]],
        [[2, "a", 15.0, 2], [2, "y", 5.0]],
        [[3, "b", 20.0, 1], [3, "x", 15.0]],
    ]


@dataclass
class Reached:
    """What random runs met with."""

    runs: int = 0
    refused: int = 0
    said: int = 0
    corrected: int = 0
    late: int = 0
    units: int = 0
    fronts: int = 0
    loads: int = 0


def test_whatever_is_served_says_what_the_engine_says(tmp_path):
    """Random scripts, random disorder; units that die, with and without having saved; front ends whose name is taken."""
    reached, seed = Reached(), FIRST
    while reached.runs < examples(40, 20):
        served_as_engine(seed, tmp_path / str(seed), reached)
        seed += 1
    for what in ("said", "corrected", "late", "units", "fronts", "loads"):
        assert getattr(reached, what) >= reached.runs // 4, f"{what} seldom reached: {reached}"


def any_case(seed: int) -> Case:
    """Over a stream that can be served."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = replace(draw(streams()), idle=None, end_after=None, source=FileSource("payments.csv"))
        queries = [q for q in draw(scripts(stream, 3)).queries if not isinstance(split_top(q.node)[1], Rejected)]
        early = draw(st.booleans())
        script = Script(tuple(replace(q, emit=Emit.CHANGES) if early else q for q in queries), (stream,))
        return Case(script, tuple(draw(arrivals(stream, 24))))

    return sampled(cases(), seed)


def served_as_engine(seed: int, folder: Path, reached: Reached) -> None:
    case, rng = any_case(seed), Random(seed)
    queries = tuple(filter(lambda q: can_be_served(q, case.script), case.script.queries))
    reached.refused += len(case.script.queries) - len(queries)
    if not queries:
        return
    case = replace(case, script=replace(case.script, queries=queries))
    deployment = deploy(case.script, partitions=rng.choice((1, 2, 5)))
    served = Served(deployment, FileLog(folder), units=rng.choice((1, 2)))
    engine = LocalEngine(case.script, buckets=deployment.partitions)
    want, posted, stream = Counter[object](), list[Taken](), deployment.streams[0]
    for batch in case.batches:
        served.time = max(served.time, batch.now)
        for arrival in batch.rows[stream.name]:
            taken = post(served, stream, arrival)
            if taken is None:
                continue
            engine._positions[stream.name, 0] = taken.place
            want.update(changes_of(engine.push(Batch(served.time, {stream.name: [arrival]})), case.script))
            posted.append(taken)
            disturb(served, rng, reached)
    served.fronts[0].beat()
    served.work()
    got = Counter(change_of(said, case.script) for reply in first_replies(served) for said in reply.said)
    assert got == want, f"seed {seed}"
    assert served.fronts[0].unanswered() == 0
    reached.runs += 1
    reached.said += bool(want)
    reached.corrected += any(sign < 0 for _, sign, _, _ in want)
    reached.late += any(t.late for t in posted)
    reached.loads += served.keeper.loads > 0


def can_be_served(query: Query, script: Script) -> bool:
    try:
        deploy(replace(script, queries=(query,)))
    except QueryError:
        return False
    return True


def post(served: Served, stream: Stream, arrival: Arrival) -> Taken | None:
    """A row as somebody posts it; nothing where it has no time."""
    row = normal_rows(stream.schema, [arrival.values])
    time = read_times(stream, row, served.time)[0]
    if isinstance(time, str):
        return None
    values = rows_of(batch_of_rows(stream.schema, row))[0]
    front = served.fronts[0]
    return front.post(0, None, values, upto=time.upto) if isinstance(time, Punctuation) else front.post(0, time, values)


def disturb(served: Served, rng: Random, reached: Reached) -> None:
    """What may happen between two events."""
    match rng.randrange(12):
        case 0 | 8:
            rng.choice(list(served.units.values())).save()
        case 1:
            served.kill_unit(rng.choice(list(served.units)))
            served.add_unit()
            reached.units += 1
        case 2:
            served.add_unit()
        case 3:
            served.kill_front(0)
            reached.fronts += 1
        case 4:
            served.fronts[0].beat()
        case 5 | 6 | 7:
            served.work()


def first_replies(served: Served) -> list[Reply]:
    """Whatever comes again is the same; nothing is lost."""
    found: dict[object, Reply] = {}
    for reply in served.replies:
        first = found.setdefault((reply.topic, reply.partition, reply.offset), reply)
        assert first.said == reply.said
    return list(found.values())


def changes_of(outputs: Outputs, script: Script) -> list[object]:
    return [
        (query.name, change.sign, change.key, canonical_row(change.row, query.node.schema))
        for query in script.queries
        for change in outputs[query.name]
    ]


def change_of(said: Said, script: Script) -> object:
    query = script.queries[said.query]
    types, names = [f.type for f in query.node.schema.fields], query.node.schema.names
    row = rows_of_batch(batch_of_values(list(map(arrow_type, types)), names, [tuple(wire(types)[1](said.row))]))[0]
    return (query.name, said.sign, tuple(said.key), canonical_row(row, query.node.schema))
