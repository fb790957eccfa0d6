"""How long a query that began with nothing lacks something."""

from headrace.evolution.filling import EVER, filling, reaches
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.stages.lower import lower

SCRIPT = """CREATE STREAM p (at TIMESTAMP, a STRING, x INT) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 1 SECOND;
CREATE STREAM c AS SELECT a, COUNT(*) AS n FROM p [RANGE 10 SECONDS LAG 2 SECONDS] GROUP BY a;
SELECT a, SUM(n) AS s FROM c [RANGE 5 SECONDS] GROUP BY a EMIT FINAL INTO over;
SELECT x, COUNT(*) AS n FROM p [UNBOUNDED] GROUP BY x EMIT FINAL INTO always;
SELECT l.a AS a, r.x AS x FROM p [RANGE 3 SECONDS] l JOIN p [RANGE 4 SECONDS] r ON l.a = r.a EMIT FINAL INTO pairs;
EVENT SEQ(p y, p z) WHERE y.a = z.a WITHIN 7 SECONDS RETURN y.a AS a EMIT FINAL INTO found;
SELECT a FROM p EMIT FINAL INTO rows;"""


def test_reaches_add_up_through_stages_and_are_named():
    lowered = lower(parse_script(SCRIPT))
    reach = dict(zip((s.queries for s in lowered.stages), reaches(lowered.stages), strict=True))
    own = {query: r for queries, r in reach.items() for query in queries}
    assert {name: own[name] for name in ("over", "always", "pairs", "found", "rows")} == {
        "over": 17 * SECOND, "always": EVER, "pairs": 4 * SECOND, "found": 7 * SECOND, "rows": 0,
    }  # fmt: skip
    place = next(i for i, s in enumerate(lowered.stages) if "found" in s.queries)
    assert (filling(lowered.stages, 1 << place), filling(lowered.stages, 0)) == (("found",), ())
