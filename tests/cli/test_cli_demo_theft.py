import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from headrace.cli.demo import theft_data as data
from headrace.cli.demo.scripts import AT_ONCE, SORTED, SURE, THEFTS, thefts
from headrace.cli.demo.theft import Said, apologies, first_alarm, story, verify
from headrace.errors import InternalError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "thefts.cql"


@pytest.fixture(scope="module")
def rows():
    return data.readings()


def come(rows, number):
    return [r for r in rows if r.arrival < data.slice_end(number)]


@pytest.fixture(scope="module")
def said(rows):
    """What the three ways say, by hand: over what has come, over what is promised, and when a delay has passed."""
    out, known = [], set()
    done = {SURE: set(), SORTED: set()}
    promised = data.promises(rows, "checkout")
    for number in range(data.slices(rows) + 1):
        last = number == data.slices(rows)  # the end of input
        here = rows if last else come(rows, number)
        now = data.thefts(here)
        at = data.slice_end(number)
        out += [Said(AT_ONCE, at, -1, t) for t in known - now] + [Said(AT_ONCE, at, 1, t) for t in now - known]
        known = now
        complete = {SURE: promised[-1 if last else number], SORTED: max(r.at for r in here) - data.DELAY}
        for way, upto in complete.items():
            new = {t for t in now if last or t[2] <= upto} - done[way]
            out += [Said(way, at, 1, t) for t in sorted(new)]
            done[way] |= new
    return out


def test_every_book_has_three_readings_and_a_few_are_stolen(rows):
    assert len(rows) == 3 * len({r.book for r in rows})
    assert len({book for book, *_ in data.thefts(rows)}) == 4
    assert [r.arrival for r in rows] == sorted(r.arrival for r in rows)


def test_readings_keep_to_the_delay_and_promises_hold(rows):
    newest = dict.fromkeys(data.KINDS, 0)
    for r in rows:
        assert r.at >= newest[r.kind] - data.DELAY
        newest[r.kind] = max(newest[r.kind], r.at)
    promised = data.promises(rows, "checkout")
    assert promised == sorted(promised)
    for number, upto in enumerate(promised):
        assert not [r for r in rows if r.kind == "checkout" and r.arrival >= data.slice_end(number) and r.at <= upto]


def test_files_hold_the_readings_and_the_promises(rows, tmp_path):
    data.write_files(tmp_path, rows)
    lines = {kind: [p.read_text().splitlines()[1:] for p in sorted((tmp_path / kind).glob("*.csv"))] for kind in data.KINDS}
    assert {len(files) for files in lines.values()} == {data.slices(rows)}
    assert sum(len(f) for f in lines["shelf"] + lines["exit"]) == sum(r.kind != "checkout" for r in rows)
    assert all(f[-1].startswith(",,,2026-") for f in lines["checkout"])


def test_the_hasty_way_is_first_and_wrong_at_times_and_the_sure_one_is_not(rows, said):
    verify(rows, said)
    sorry = apologies(said)
    assert len(sorry) == 4
    stolen = {book for book, *_ in data.thefts(rows)}
    assert not stolen & set(sorry)
    for book in stolen:
        times = [first_alarm(said, way, book) for way in (AT_ONCE, SURE, SORTED)]
        assert times == sorted(times)


def test_a_wrong_alarm_fails_the_demo(rows, said):
    theft = next(s for s in said if s.way == SURE)
    with pytest.raises(InternalError, match="recount"):
        verify(rows, [s for s in said if s != theft])
    with pytest.raises(InternalError, match="twice"):
        verify(rows, [*said, theft])
    with pytest.raises(InternalError, match="recount"):
        verify(rows, [*said, Said(SURE, theft.at, 1, ("book-x", 1, 2))])
    again = [Said(SURE, theft.at, sign, theft.theft) for sign in (-1, 1)]
    with pytest.raises(InternalError, match="final was taken back"):
        verify(rows, [*said, *again])


def test_the_story_is_told_from_what_was_said(rows, said):
    stolen = sorted({(gone, book) for book, _, gone in data.thefts(rows)})
    text = "\n".join(story(stolen, said, Path("x.png")))
    assert "apologises for 4 alarms" in text
    assert "x.png" in text


def test_the_example_is_the_script_of_the_demo():
    assert EXAMPLE.read_text(encoding="utf-8") == THEFTS
    assert "FILE('it''s/shelf')" in thefts("it's")


def test_the_whole_demo_on_a_played_back_engine(engine, fake, headrace, said, tmp_path, monkeypatch):
    sql = ModuleType("headrace.sql")
    sql.parse_script = lambda text, name: fake.script()
    monkeypatch.setitem(sys.modules, "headrace.sql", sql)
    polls = []
    for one in said:
        times = {n: pa.array([t], pa.timestamp("us", tz="UTC")) for n, t in zip(("taken", "gone"), one.theft[1:], strict=True)}
        number = (one.at - data.slice_end(0)) // data.SLICE
        polls.append([fake.rows(one.way, number, _op=["+" if one.sign > 0 else "-"], book=[one.theft[0]], **times)])
    engine.handle = fake.handle([*polls, [fake.progress()]])
    result = headrace("demo", "patterns", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "apologises for 4 alarms" in result.stdout
    assert result.stdout.count("say nothing") == 4
    assert (tmp_path / "thefts.png").stat().st_size > 20_000
    assert f"FILE('{tmp_path}/readings/shelf'" in (tmp_path / "thefts.cql").read_text()
