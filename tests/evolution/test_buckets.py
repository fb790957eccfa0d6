"""Another number of buckets before every batch: against the oracle, for every kind of step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from changed import OTHERS, Told, redistributed, variants
from hypothesis import strategies as st

from cascade_cases import a_case
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import canonical_row, from_micros
from headrace.sql import parse_script
from headrace.testing.conformance import Run, check_outputs
from headrace.testing.local import LocalEngine, local_engine
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.reach import hold
from headrace.testing.strategies import Case, arrivals, policy_cases, sampled, scripts, shared_looks, streams
from join_cases import joins
from seeds import FIRST, examples


def check_rebucketed(run: Run, seed: int, told: Told) -> None:
    """A run that goes on with other buckets before every batch, and before the end, is as one that always had the same."""
    rng = Random(seed)
    engine, outputs, counts = LocalEngine(run.script, 3), [], [3]
    for batch in (*run.batches, None):
        counts.append(rng.choice([n for n in (3, *OTHERS) if n != counts[-1]]))
        old, engine = engine, LocalEngine(run.script, counts[-1], engine.save())
        told.cases.update(redistributed(old, engine))
        outputs.append(engine.finish(run.end) if batch is None else engine.push(batch))
    check_outputs(run, outputs, f"with {counts} buckets, one after the other")


@st.composite
def windows(draw: st.DrawFn) -> Case:
    stream = draw(streams())
    return Case(draw(scripts(stream, 2, nested=False)), tuple(draw(arrivals(stream, 24))))


MAKES: dict[str, tuple[Callable[[int], Case], int, int, tuple[str, ...]]] = {
    "windows": (lambda seed: variants(Random(seed), sampled(windows(), seed)), 12, 2, ("range", "unbounded", "LIFE", "noted")),
    "policies": (
        lambda seed: sampled(policy_cases(), seed),
        20,
        4,
        ("LIFE", "delta", "span", "until", "noted", "VALUE"),
    ),
    "slices": (lambda seed: sampled(shared_looks(), seed), 5, 6, ("range",)),
    "patterns": (seeded_pattern_case, 12, 4, ("pattern", "spill")),
    "joins": (lambda seed: sampled(joins(), seed), 10, 4, ("join", "UNIQUE")),
    "cascades": (a_case, 7, 6, ("windows",)),
}


@pytest.mark.parametrize("kind", MAKES)
def test_buckets_change_before_every_batch(kind: str):
    make, few, share, least = MAKES[kind]

    def case(seed: int) -> Case:
        found = make(seed)
        local_engine(found.script, 1, None)
        return found

    told = Told()
    hold(case, lambda run, seed: check_rebucketed(run, seed, told), examples(few, share), first=FIRST + 100, tries=6)
    told.at_least(rebucketed=2 * few, **dict.fromkeys(least, 1))


SCRIPT = """CREATE STREAM p (at TIMESTAMP, a STRING, b INT, x DOUBLE, s STRING) SOURCE FILE('p.csv') TIMESTAMP BY at
  DELAY 3 SECONDS {more};
SELECT a, b, MIN(s) AS least, MAX(s) AS most, COUNT(DISTINCT s) AS d, SUM(x) AS t, COLLECT_LIST(s) AS l, PERCENTILE(x, 0.5) AS p,
  LAST(s) AS z, MAX_BY(s, x) AS best, VARIANCE(x) AS v FROM p [UNBOUNDED] GROUP BY b, a {emit} INTO always;
SELECT a, MAX(s) AS most, SUM(x) AS t, COUNT(DISTINCT b) AS d FROM p [ROWS 3 PARTITIONED BY a] GROUP BY a {emit} INTO ring;
SELECT a, b, MIN(s) AS least, COUNT(DISTINCT s) AS d FROM p [RANGE 6 SECONDS] GROUP BY b, a {emit} INTO sliding;
SELECT a, COUNT(*) AS n, LAST(s) AS z FROM p [SIZE 4 SECONDS] GROUP BY a {emit} INTO report;
SELECT a, COUNT(DISTINCT s) AS d, MAX(s) AS most FROM p [SESSION 2 SECONDS] GROUP BY a {emit} INTO sessions;
SELECT a, s FROM p EMIT FINAL IN ORDER INTO rows;
CREATE STREAM c AS SELECT a, COUNT(*) AS n FROM p [RANGE 3 SECONDS] GROUP BY a;
SELECT a, n FROM c {emit} INTO results;
SELECT a, n FROM c WHERE n > 1 EMIT FINAL INTO sure;
SELECT a, n, SUM(n) AS t FROM c [ROWS 2 PARTITIONED BY n] GROUP BY n EMIT FINAL INTO over;
EVENT SEQ(p y, p z) WHERE y.a = z.a AND y.b < z.b WITHIN 4 SECONDS RETURN y.a AS a, z.s AS s {order} INTO sequences;
CREATE STREAM d AS SELECT a, COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY a;
MERGE c, d INTO m;
SELECT a, n FROM m {emit} INTO both;
SELECT a, n FROM m WHERE n < 9 EMIT FINAL INTO merged;"""


@pytest.mark.parametrize("more", ["", "KEEP 9 SECONDS", "UNIQUE BY a, b, s WITHIN 5 SECONDS"], ids=["plain", "KEEP", "UNIQUE"])
@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL"])
def test_all_that_is_kept_of_a_key_goes_along(emit: str, more: str):
    """Forty keys and their values, over groups that are the route, and groups that are finer."""
    order = "EMIT FINAL IN ORDER" + ("" if "UNIQUE" in more else " USING KSLACK" if "FINAL" in emit else "")
    script, rng = parse_script(SCRIPT.format(emit=emit, more=more, order=order)), Random(7)
    batches = []
    for start in range(0, 60, 3):
        rows = [
            (start + rng.randint(-4, 3), rng.choice("abcdefgh"), rng.randint(0, 4), rng.choice("uvwxyz") * 3) for _ in range(20)
        ]
        rows = [(from_micros(t * 1_000_000), a, b, rng.choice((0.1, 1e16, -1e16, 0.5)), s) for t, a, b, s in rows]
        batches.append(Batch(0, {"p": [Arrival(row) for row in rows]}))
    whole, engine = LocalEngine(script, 4), LocalEngine(script, 4)
    for number, batch in enumerate((*batches, None)):
        engine = LocalEngine(script, (4, 6, 1, 3, 8, 2)[number % 6], engine.save())
        got, want = (e.finish(0) if batch is None else e.push(batch) for e in (engine, whole))
        for name in want:
            mine, theirs = (Counter((c.sign, c.key, canonical_row(c.row)) for c in out[name]) for out in (got, want))
            assert mine == theirs, f"{name} in batch {number}"
    assert engine.state_size() < 1.3 * whole.state_size()
