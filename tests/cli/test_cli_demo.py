import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from headrace.cli.demo import fraud_data as data
from headrace.cli.demo.fraud import story, verify
from headrace.cli.demo.fraud_picture import Facts
from headrace.cli.demo.scripts import FRAUD, fraud
from headrace.errors import InternalError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fraud.cql"


def hops(rows):
    """Hopping windows by hand: an event is in the five that begin on a full minute before it."""
    found = Counter((start, p.card) for p in rows for start in range(p.at // data.HOP * data.HOP, p.at - data.WINDOW, -data.HOP))
    return [(start, card, n) for (start, card), n in found.items()]


@pytest.fixture(scope="module")
def rows():
    return data.payments()


@pytest.fixture(scope="module")
def alerts(rows):
    counts = data.recount(rows)
    return [(p.id, p.card, p.at, counts[p.id]) for p in rows if counts.get(p.id, 0) > data.LIMIT]


def test_three_cards_break_the_rule_and_nobody_else(alerts):
    assert [(card, data.wall(at), n) for _, card, at, n in sorted(alerts, key=lambda a: a[2])] == [
        ("card-burst", "12:02:58", 5),
        ("card-edge", "12:05:25", 5),
        ("card-late", "12:08:55", 5),
    ]


def test_the_hopping_window_misses_the_one_on_the_edge(rows):
    assert {card for _, card, n in hops(rows) if n > data.LIMIT} == {data.BURST, data.LATE}
    assert max(n for _, card, n in hops(rows) if card == data.EDGE) == data.LIMIT


def test_without_the_late_payment_its_card_would_not_be_found(rows):
    on_time = [p for p in rows if not (p.card == data.LATE and p.arrival > p.at)]
    counts = data.recount(on_time)
    assert max(counts[p.id] for p in on_time if p.card == data.LATE) == data.LIMIT


def test_one_payment_comes_too_late(rows):
    assert [p.card for p in rows if p not in data.admitted(rows)] == [data.LOST]


def test_traffic_arrives_out_of_order(rows):
    newest, behind = 0, 0
    for p in rows:
        behind += p.at < newest
        newest = max(newest, p.at)
    assert behind > 100


def test_ids_and_times_are_unique(rows):
    assert [p.id for p in rows] == list(range(1, len(rows) + 1))
    assert len({(p.card, p.at) for p in rows}) == len(rows)


def test_the_example_is_the_script_of_the_demo():
    assert EXAMPLE.read_text(encoding="utf-8") == FRAUD
    assert "FILE('it''s/*.csv', ',')" in fraud("it's/*.csv")


def test_a_wrong_count_fails_the_demo(rows, alerts):
    lost = {p.id for p in rows if p.card == data.LOST}
    verify(rows, alerts, lost)
    with pytest.raises(InternalError, match="recount"):
        verify(rows, alerts[1:], lost)
    with pytest.raises(InternalError):
        verify(rows, [*alerts, alerts[0]], lost)
    with pytest.raises(InternalError):
        verify(rows, alerts, set())


def test_the_story_is_told_from_what_was_found(rows, alerts):
    facts = Facts(rows, [a[1:] for a in alerts], hops(rows))
    text = "\n".join(story(facts, [], Path("x.png")))
    assert "Headrace blocked 3: card-burst, card-edge, card-late." in text
    assert "found 2: card-burst, card-late." in text
    assert "card-edge paid at 12:00:40, 12:01:50, 12:02:55, 12:04:10, 12:05:25" in text
    assert "x.png" in text


def test_the_whole_demo_on_a_played_back_engine(engine, fake, headrace, rows, alerts, tmp_path, monkeypatch):
    rival = ModuleType("headrace.spark.rival")
    rival.hopping_counts = lambda pattern, schema, window, hop, key: hops(rows)
    monkeypatch.setitem(sys.modules, "headrace.spark.rival", rival)
    sql = ModuleType("headrace.sql")
    sql.parse_script = lambda text, name: fake.script()
    monkeypatch.setitem(sys.modules, "headrace.sql", sql)
    ids, cards, at, counts = zip(*alerts, strict=True)
    found = fake.rows("alerts", id=list(ids), card=list(cards), at=pa.array(at, pa.timestamp("us", tz="UTC")), n=list(counts))
    lost = fake.rows("too_late", _op=["+"], id=[p.id for p in rows if p.card == data.LOST])
    engine.handle = fake.handle([[found], [lost, fake.progress()]])
    result = headrace("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "4 at most: missed" in result.stdout
    assert "late(payments), not lost" in result.stdout
    assert (tmp_path / "fraud.png").stat().st_size > 20_000
    assert f"FILE('{tmp_path}/payments/*.csv'" in (tmp_path / "fraud.cql").read_text()
    lines = [line for path in sorted((tmp_path / "payments").glob("*.csv")) for line in path.read_text().splitlines()[1:]]
    assert [int(line.split(",")[0]) for line in lines] == [p.id for p in rows]


def test_sparks_own_window_counts_as_a_hand_does(rows, tmp_path, spark):
    from headrace.generate import SCHEMAS
    from headrace.spark.rival import hopping_counts

    data.write_files(tmp_path, rows)
    found = hopping_counts(str(tmp_path / "*.csv"), SCHEMAS["payments"], data.WINDOW, data.HOP, "card")
    assert found == sorted(hops(rows))
