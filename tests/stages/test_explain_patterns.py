"""What explain says of a pattern: the plan, what was pushed where, what is promised, and what must be known for it."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from headrace.plan.explain import explain
from headrace.program.stage import OneBucket
from headrace.sql import parse_script
from headrace.stages.explain import explain_script
from headrace.stages.lower import lower
from headrace.testing.cases import read_case

CASES = sorted((Path(__file__).parents[1] / "queries").glob("**/*.case"))
STREAMS = """
CREATE STREAM shelf (id STRING, at TIMESTAMP) SOURCE FILE('shelf.csv') TIMESTAMP BY at DELAY 10 SECONDS;
CREATE STREAM checkout (id STRING, till INT, at TIMESTAMP) SOURCE FILE('checkout.csv') TIMESTAMP BY at DELAY 1 MINUTE;
CREATE STREAM exit (id STRING, at TIMESTAMP) SOURCE FILE('exit.csv') TIMESTAMP BY at DELAY 0;
"""
THEFT = "EVENT SEQ(shelf s, !(checkout c), exit e) WHERE s.id = c.id AND c.id = e.id{more} WITHIN 5 HOURS EMIT "
ONE_BUCKET = "one bucket: everything runs in one task, because "


def explained(sql):
    return explain_script(parse_script(STREAMS + sql))


def lines(sql):
    """What is said of the pattern of the first query."""
    below = explained(sql).split("\n  pattern\n", 1)[1].splitlines()
    return [line[4:] for line in takewhile(lambda line: line.startswith("    "), below)]


def partitioned(sql):
    """What is said of every stage: how its rows are parted."""
    return [line.split(None, 1)[1] for line in explained(sql).splitlines() if line.startswith("  partitioned ")]


def fact(sql, name):
    """The lines of one fact."""
    found, here = [], False
    for line in lines(sql):
        here = line.startswith(name) or (here and line.startswith(" " * 14))
        found += [line[14:]] if here else []
    return found


def test_the_plan_of_the_paper():
    more = " AND c.till > 3 AND e.at > s.at + INTERVAL 1 MINUTE AND s.id > 'a'"
    assert lines(THEFT.format(more=more) + "FINAL") == [
        "WinNeg",
        "  !(checkout c) between s and e where s.id = c.id AND c.id = e.id",
        "  WinSeq(shelf s, exit e; 5 hours)",
        "    e.at > s.at + INTERVAL '1' MINUTE: as soon as s and e are there",
        "    Sel in Spark: s.id > 'a'",
        "    Sel in Spark: c.till > 3",
        "level         delayed unsorted correctness (permanently valid, complete)",
        "how           conservative: results wait in the holding set",
        "must be known that no c forbids it: POG of checkout past e (from DELAY 1 minute)",
        "              to let events go: POG of shelf (from DELAY 10 seconds) and POG of checkout (from DELAY 1 minute) "
        "and POG of exit (it is in order: DELAY 0)",
    ]


def test_memory():
    asked = THEFT.replace("EMIT", "WITH (memory = 8000, together = 5, wait = 10 SECONDS) EMIT").format(more="")
    assert fact(asked + "CHANGES", "memory") == [
        "8,000 events a bucket, beside those of one batch; older ones lie outside, in frames of 1,000",
        "a late event that needs a frame waits until 5 need it, or 10 seconds have passed, or until it is final",
    ]
    assert fact(asked + "CHANGES", "level")[0].endswith("complete) over the events that do not wait for a frame")
    assert fact(THEFT.format(more="") + "CHANGES", "memory") == []


@pytest.mark.parametrize(
    ("level", "said", "how"),
    [
        ("CHANGES", "convergent unsorted correctness (immediate, eventually valid, complete)", "aggressive"),
        ("FINAL", "delayed unsorted correctness (permanently valid, complete)", "conservative"),
        ("FINAL IN ORDER", "delayed correctness (ordered, permanently valid, eventually complete)", "results wait"),
        ("FINAL IN ORDER USING KSLACK", "delayed correctness (ordered, permanently valid, eventually complete)", "K-slack"),
    ],
)
def test_every_level_has_the_name_it_has_in_the_paper(level, said, how):
    sql = THEFT.format(more="") + level
    assert fact(sql, "level") == [said]
    assert fact(sql, "how")[0].startswith(how)


def test_a_pattern_that_nothing_can_forbid():
    sql = "EVENT SEQ(shelf s, exit e) WITHIN 5 HOURS EMIT "
    assert lines(sql + "FINAL")[0] == "WinSeq(shelf s, exit e; 5 hours)"
    assert fact(sql + "FINAL", "must be known")[0] == "nothing: a result is final at once"
    assert fact(sql + "FINAL", "level")[0].startswith("unsorted correctness (immediate, permanently valid, complete)")
    assert fact(sql + "CHANGES", "level")[0].startswith("unsorted correctness (immediate, permanently valid, complete)")
    assert fact(sql + "CHANGES", "how") == ["aggressive: + at once; no later event can change a result"]
    assert fact(sql + "FINAL", "how") == ["nothing can forbid a result"]


def test_one_source_in_order_gives_full_correctness():
    assert fact("EVENT SEQ(exit s, exit e) STRICT WITHIN 5 HOURS EMIT FINAL IN ORDER", "level")[0].startswith("full correctness")
    assert fact("EVENT SEQ(exit s, !(exit e)) WITHIN 5 HOURS EMIT FINAL IN ORDER", "level")[0].startswith("delayed correctness")
    assert fact("EVENT SEQ(exit s, shelf e) WITHIN 5 HOURS EMIT FINAL IN ORDER", "level")[0].startswith("delayed correctness")


@pytest.mark.parametrize(
    ("places", "where", "waits"),
    [
        ("!(checkout c), shelf s, exit e", "!(checkout c) before s, from 5 hours before e on", "POG of checkout past s "),
        ("shelf s, !(checkout c), exit e", "!(checkout c) between s and e", "POG of checkout past e "),
        ("shelf s, exit e, !(checkout c)", "!(checkout c) after e, up to 5 hours after s", "POG of checkout past s + 5 hours "),
    ],
)
def test_where_a_negation_stands(places, where, waits):
    sql = f"EVENT SEQ({places}) WITHIN 5 HOURS EMIT FINAL"
    assert lines(sql)[1].strip() == where
    assert waits in fact(sql, "must be known")[0]


def test_a_negation_at_the_end_waits_for_the_clock_under_changes():
    sql = "EVENT SEQ(shelf s, !(checkout c)) WITHIN 5 HOURS EMIT CHANGES"
    assert fact(sql, "must be known")[0] == "to say that c has not come: the clock past s + 5 hours"
    assert fact(sql, "how")[0].startswith("aggressive: + when the window is over, - for what a late event")


def test_repeated_places():
    sql = "EVENT SEQ(shelf s, checkout+ c, exit e) WHERE c.till > 2 AND c.at > s.at WITHIN 1 HOUR RETURN COUNT(c) AS n EMIT FINAL"
    assert lines(sql)[:6] == [
        "WinNeg",
        "  c repeats: no event that fits as c between s and the first of its group",
        "  WinSeq(shelf s, checkout+ c, exit e; 1 hour)",
        "    c.at > s.at: of every event of c",
        "    COUNT(*) AS n over the events of c",
        "    Sel in Spark: c.till > 2",
    ]
    assert fact(sql, "must be known")[0] == "that no c is missing: POG of checkout past e (from DELAY 1 minute)"


@pytest.mark.parametrize("at_the_edge", ["checkout+ c, exit e", "shelf s, checkout+ c"])
def test_a_group_at_the_edge_of_a_pattern_implies_nothing(at_the_edge):
    assert lines(f"EVENT SEQ({at_the_edge}) WITHIN 1 HOUR RETURN COUNT(c) AS n EMIT FINAL")[0].startswith("WinSeq(")


def test_the_next_match_of_a_group_is_its_first_event():
    sql = "EVENT SEQ(shelf s, checkout+ c, exit e) NEXT MATCH WITHIN 1 HOUR RETURN COUNT(c) AS n EMIT FINAL"
    assert lines(sql)[1:3] == [
        "  NEXT MATCH: no event that fits as c between s and the first of its group",
        "  NEXT MATCH: no other event that fits as e between c and e",
    ]


def test_selection_is_a_negation():
    sql = "EVENT SEQ(shelf s, exit e) {} WHERE s.id = e.id WITHIN 1 HOUR EMIT FINAL"
    assert "  NEXT MATCH: no other event that fits as e between s and e" in lines(sql.format("NEXT MATCH"))
    assert fact(sql.format("NEXT MATCH"), "must be known")[0].startswith("that it is the next match: POG of exit past e")
    assert "  STRICT: no event at all of shelf, exit of the same key between two neighbours" in lines(sql.format("STRICT"))
    assert fact(sql.format("STRICT"), "must be known")[:2] == [
        "that nothing lies between: POG of shelf past e (from DELAY 10 seconds)",
        "that nothing lies between: POG of exit past e (it is in order: DELAY 0)",
    ]


def test_slack_is_the_largest_delay():
    first, second = fact(THEFT.format(more="") + "FINAL IN ORDER USING KSLACK", "must be known")
    assert first == "K = 1 minute, the largest DELAY; one clock over shelf, checkout, exit, the largest time seen"
    assert second == "a row that comes behind what has been taken is late for this query: counted, and in late(..) of its stream"


def test_events_that_can_be_taken_back_must_stay():
    inner = "(EVENT SEQ(shelf a, !(checkout b)) WITHIN 1 HOUR RETURN a.id) x"
    sql = f"EVENT SEQ({inner}, exit e) WHERE x.id = e.id WITHIN 1 DAY EMIT FINAL"
    assert fact(sql, "must be known")[0].startswith(
        "that x stays: POG of shelf past x (from DELAY 10 seconds) and POG of checkout"
    )


def test_what_a_late_event_can_undo_is_said_once_and_in_one_way():
    """`level` and `how` agree, and the output does not tell a level of its own."""
    in_order = "EVENT SEQ(exit s, !(exit c), exit e) WITHIN 5 HOURS EMIT CHANGES"
    assert fact(in_order, "level")[0].endswith("no result is ever taken back")
    assert fact(in_order, "how") == ["aggressive: + at once; no later event can change a result"]
    assert fact(THEFT.format(more="") + "CHANGES", "how") == [
        "aggressive: + at once, - for what a late event forbids or takes back"
    ]
    for emit in ("CHANGES", "FINAL", "FINAL IN ORDER", "FINAL IN ORDER USING KSLACK"):
        assert explained(f"EVENT SEQ(shelf s, exit e) WITHIN 5 HOURS EMIT {emit}").count("level") == 1


# How rows are parted: the stage says it, once


def test_a_pattern_without_a_key_has_one_bucket():
    text = explained("EVENT SEQ(shelf s, !(checkout c), exit e) WITHIN 5 SECONDS")
    assert f"\nstage 1 over shelf, checkout, exit\n  partitioned   {ONE_BUCKET}no equality covers all events\n" in text
    assert text.count("partitioned") == 1
    assert "on Spark:" in text


def test_a_pattern_with_a_key_is_parted_by_it():
    text = explained(THEFT.format(more="") + "FINAL")
    by = "by hash of s.id = c.id = e.id: different keys run beside each other"
    assert f"\nstage 1 over shelf, checkout, exit\n  partitioned   {by}\n" in text
    assert text.count("partitioned") == 1


def test_an_equality_of_some_events_is_no_key():
    sql = "EVENT SEQ(shelf s, !(checkout c), exit e) WHERE s.id = e.id WITHIN 5 HOURS"
    assert partitioned(sql) == [ONE_BUCKET + "no equality covers all events"]
    assert lines(sql)[3] == "    s.id = e.id: as soon as s and e are there"


def test_different_keys_of_one_event_do_not_part_rows():
    """A row of checkout would have to be in two buckets, as x and as y."""
    sql = "EVENT SEQ(checkout x, checkout y) WHERE x.till = y.till + 1 WITHIN 5 HOURS"
    assert partitioned(sql) == [ONE_BUCKET + "x.till and y.till + 1 are different keys of one event"]
    assert lines(sql)[1] == "  x.till = y.till + 1: as soon as x and y are there"


def test_of_two_equalities_the_one_that_parts_rows_is_told():
    sql = "EVENT SEQ(checkout x, checkout y) WHERE x.till = y.till + 1 AND x.id = y.id WITHIN 5 HOURS"
    assert partitioned(sql) == ["by hash of x.id = y.id: different keys run beside each other"]
    assert [line for line in lines(sql) if "as soon as" in line] == ["  x.till = y.till + 1: as soon as x and y are there"]


WINDOW = "(SELECT id, COUNT(*) AS n FROM checkout [RANGE 1 HOUR] GROUP BY id)"


def test_a_pattern_over_windows():
    sql = f"EVENT SEQ({WINDOW} x, exit e) WHERE x.id = e.id WITHIN 5 HOURS"
    assert partitioned(sql) == ["by hash of (id)", "by hash of x.id = e.id: different keys run beside each other"]
    alone = f"EVENT SEQ({WINDOW} x, {WINDOW} y) WHERE x.n = y.n + 1 WITHIN 5 HOURS"
    assert partitioned(alone) == ["by hash of (id)", ONE_BUCKET + "x.n and y.n + 1 are different keys of one event"]


def test_a_window_over_a_pattern():
    sql = "SELECT COUNT(*) AS n FROM ({}) [RANGE 1 HOUR] GROUP BY s_id".format(THEFT.format(more="").removesuffix(" EMIT "))
    assert partitioned(sql) == ["by hash of s.id = c.id = e.id: different keys run beside each other", "by hash of (s_id)"]


def test_a_pattern_beside_late_rows():
    sql = "EVENT SEQ(shelf s, exit e) WITHIN 5 HOURS EMIT FINAL IN ORDER USING KSLACK; SELECT * FROM late(shelf)"
    assert "on Spark:" in explained(sql)
    assert ONE_BUCKET + "no equality covers all events" in partitioned(sql)


def test_fields_of_structs_are_told_as_they_are_written():
    stream = "CREATE STREAM tags (tag STRUCT<id: STRING, n: INT>, at TIMESTAMP) SOURCE FILE('t.csv') TIMESTAMP BY at DELAY 0;"
    where = "x.tag.id = s.id AND s.id = y.tag.id AND x.tag.n < y.tag.n"
    sql = f"{stream} EVENT SEQ(tags x, shelf s, tags y) WHERE {where} WITHIN 1 HOUR"
    assert partitioned(sql) == ["by hash of x.tag.id = s.id = y.tag.id: different keys run beside each other"]
    assert lines(sql)[1] == "  x.tag.n < y.tag.n: as soon as x and y are there"


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_is_explained(path):
    """And what is said of buckets is what the stages do."""
    script = read_case(path).script
    said = [line for line in explain_script(script).splitlines() if line.startswith("  partitioned ")]
    assert [ONE_BUCKET in line for line in said] == [stage.route == OneBucket() for stage in lower(script).stages]


def test_the_plan_says_what_a_pattern_keeps():
    node = parse_script(STREAMS + THEFT.format(more="") + "FINAL").queries[0].node
    assert "keeps rows of (5 hours + 1 minute + how far the streams are read apart)" in explain(node)
