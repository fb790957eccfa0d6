"""What queries that run together share: stages, windows, tables, tallies."""

from __future__ import annotations

from headrace.program.stage import Anywhere, ByHash, OneBucket
from headrace.sql import parse_script
from headrace.stages.lower import lower

STREAM = "CREATE STREAM p (at TIMESTAMP, card STRING, shop INT, x DOUBLE) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;"


def stages(*queries: str):
    text = STREAM + ";".join(f"{query} INTO q{i}" for i, query in enumerate(queries))
    return lower(parse_script(text)).stages


def routes(*queries: str) -> list[tuple[str, ...] | None]:
    found = stages(*queries)
    return [tuple(s.inputs[i].expr.sql for i in s.route.inputs) if isinstance(s.route, ByHash) else s.route for s in found]


def test_the_same_aggregate_of_two_queries_is_one_tally():
    one = "SELECT card, SUM(x) AS s, COUNT(x) AS n FROM p [RANGE 5 SECONDS] GROUP BY card"
    (alone,) = stages(one)
    (both,) = stages(one, f"{one} EMIT FINAL")
    assert (both.program.windows, both.program.tallies) == (alone.program.windows, alone.program.tallies)
    assert both.tables == alone.tables
    assert [o.query for o in both.program.outputs] == ["q0", "q1"]


def test_avg_sum_and_count_share_what_they_read():
    (stage,) = stages("SELECT SUM(x) AS s, AVG(x) AS a, COUNT(x) AS n FROM p [RANGE 5 SECONDS]")
    assert [t.kind.name.lower() for t in stage.program.tallies] == ["count", "sum"]
    (stage,) = stages("SELECT VARIANCE(x) AS v, STDDEV(x) AS s, VAR_POP(x) AS vp FROM p [RANGE 5 SECONDS]")
    assert [t.kind.name.lower() for t in stage.program.tallies] == ["count", "moments"]


def test_another_window_has_tallies_of_its_own_over_the_same_table():
    (stage,) = stages(*(f"SELECT card, SUM(x) AS s FROM p [RANGE {n} SECONDS] GROUP BY card" for n in (5, 10)))
    assert len(stage.program.windows) == 2
    assert len(stage.tables) == len(stage.vectors) == 1
    assert len({t.group for t in stage.program.tallies}) == 1


def test_keys_that_nest_share_a_stage_and_others_do_not():
    by = "SELECT COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY {}"
    assert routes(by.format("card"), by.format("card, shop")) == [("card",)]
    assert routes(by.format("card"), by.format("shop")) == [("card",), ("shop",)]
    assert routes(by.format("card, shop"), by.format("shop, card")) == [("card", "shop")]


def test_what_needs_all_rows_runs_in_one_bucket():
    assert routes("SELECT COUNT(*) AS n FROM p [RANGE 5 SECONDS]") == [OneBucket()]
    assert routes("SELECT COUNT(*) AS n FROM p [ROWS 3] GROUP BY card") == [OneBucket()]
    assert routes("SELECT COUNT(*) AS n FROM p [ROWS 3 PARTITIONED BY card] GROUP BY card") == [("card",)]
    over = "COUNT(*) OVER (PARTITION BY {} RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW) AS {}"
    assert routes(f"SELECT {over.format('card', 'a')}, {over.format('shop', 'b')} FROM p") == [OneBucket()]
    assert routes(f"SELECT {over.format('card', 'a')}, {over.format('card, shop', 'b')} FROM p") == [("card",)]


def test_rows_without_a_window_go_anywhere():
    assert routes("SELECT card FROM p WHERE x > 1", "SELECT x FROM p", "SELECT card FROM late(p)") == [Anywhere(), Anywhere()]


def test_a_window_over_a_window_is_a_stage_that_reads_another():
    inner = "SELECT card, COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY card"
    first, second = stages(f"SELECT SUM(n) AS s FROM ({inner}) [RANGE 5 SECONDS] GROUP BY n")
    assert (first.level, second.level) == (1, 2)
    assert second.sources[0].follows
    assert second.sources[0].name == first.program.outputs[0].query


def test_two_queries_read_one_feed():
    inner = "SELECT card, COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY card"
    found = stages(f"SELECT SUM(n) AS s FROM ({inner}) [RANGE 5 SECONDS]", f"SELECT MAX(n) AS s FROM ({inner}) [RANGE 9 SECONDS]")
    assert [len(s.program.outputs) for s in found] == [1, 2]


def looked_at(*windows: str, calls: str = "SUM(x) AS s", by: str = "card", ends: str = "") -> list[tuple[int, ...]]:
    """Which queries share slices."""
    found = stages(*(f"SELECT window_end, {calls} FROM p [{w}] GROUP BY {by} {ends}" for w in windows))
    return [s.reports for stage in found for s in stage.program.slices]


def test_windows_of_several_lengths_that_are_looked_at_together_share_slices():
    minutes = [f"SIZE {n} MINUTES EVERY 1 MINUTE" for n in (1, 5, 60, 61)]
    assert looked_at(*minutes) == [(0, 1, 2, 3)]
    assert looked_at(*minutes, calls="AVG(x) AS a, COUNT(*) AS n, STDDEV(x) AS d", ends="EMIT FINAL") == [(0, 1, 2, 3)]
    (stage,) = stages(*(f"SELECT card, SUM(x) AS s FROM p [{w}] GROUP BY card" for w in minutes))
    assert stage.program.sliced == set(range(len(stage.program.tallies)))
    assert stage.program.edges == (61 * 60_000_000,)


def test_what_cannot_be_subtracted_or_is_looked_at_otherwise_shares_no_slices():
    minutes = [f"SIZE {n} MINUTES EVERY 1 MINUTE" for n in (1, 2, 3)]
    assert looked_at(*minutes) == [(0, 1, 2)]
    assert looked_at(*minutes[:2]) == []  # too few
    assert looked_at(*minutes[:2], "SIZE 30 DAYS EVERY 1 MINUTE") == []  # too many slices
    assert looked_at(*minutes, calls="SUM(x) AS s, MAX(x) AS m") == []
    assert looked_at(*minutes, ends="WITH (report = 'change')") == []
    assert looked_at(*minutes[:2], "SIZE 90 SECONDS EVERY 1 MINUTE") == []  # not a whole number of slices
    assert looked_at(*minutes[:2], "RANGE 3 MINUTES LAG 1 MINUTE SLIDE 1 MINUTE") == []
    assert looked_at(*minutes[:2], "SIZE 4 MINUTES EVERY 2 MINUTES") == []


def test_a_tally_that_an_event_reads_too_is_kept_beside_slices():
    reports = [f"SELECT card, SUM(x) AS s FROM p [SIZE {n} MINUTES EVERY 1 MINUTE] GROUP BY card" for n in (1, 2, 3)]
    (stage,) = stages(*reports, "SELECT card, SUM(x) AS s FROM p [RANGE 2 MINUTES] GROUP BY card")
    own = [
        stage.program.windows[t.window].window.size for i, t in enumerate(stage.program.tallies) if i not in stage.program.sliced
    ]
    assert own == [120_000_000] * 2  # the sum, and how many it is of
    assert stage.program.edges == (120_000_000, 180_000_000)
