"""The event generator of 001, table I: shares to the row, delays within their bounds, promises that hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import QueryError
from headrace.generate import Options, events, parse_options
from headrace.generate.draws import BLOCK
from headrace.plan.time import MINUTE, SECOND

ROWS = 5 * BLOCK


def rows_of(**given) -> dict[str, np.ndarray]:
    options = parse_options("sequence", [(name, str(value)) for name, value in {"rate": 10, **given}.items()])
    batch = events("sequence", options, 0, ROWS)
    micros = {name: batch.column(name).cast(pa.int64()).fill_null(-1).to_numpy() for name in ("at", "arrival", "pog")}
    return {"type": np.array(batch.column("type").to_pylist()), "event": micros["at"] >= 0, **micros}


def broken_promises(rows: dict[str, np.ndarray]) -> int:
    """Events at or before a time that was promised for their type before they came."""
    promised: dict[str, int] = {}
    broken = 0
    for kind, event, at, pog in zip(rows["type"], rows["event"], rows["at"], rows["pog"], strict=True):
        if event:
            broken += at <= promised.get(kind, 0)
        else:
            promised[kind] = max(promised.get(kind, 0), pog)
    return broken


@pytest.mark.parametrize("pog", ["delay", "sent"])
@settings(max_examples=10)
@given(share=st.floats(0, 1), promises=st.floats(0, 1), longest=st.integers(0, 500), seed=st.integers(0, 2**64 - 1))
def test_no_promise_is_ever_broken(pog, share, promises, longest, seed):
    rows = rows_of(late_share=f"{share},B=1", late_max=f"{longest},C=3", pog_share=promises, pog=pog, seed=seed)
    assert broken_promises(rows) == 0
    assert (rows["event"] == (rows["pog"] < 0)).all()


def test_the_check_of_promises_sees_a_broken_one():
    rows = rows_of(late_share=0.5, pog_share=0.2)
    rows["pog"] = np.where(rows["pog"] >= 0, rows["pog"] + 8 * SECOND, -1)
    assert broken_promises(rows) > 0


def test_a_promise_by_delay_is_as_old_as_the_longest_delay_of_its_type():
    rows = rows_of(late_share=0.5, late_max="10,C=4", pog_share=0.2)
    age = (rows["arrival"] - rows["pog"])[~rows["event"]]
    of_c = rows["type"][~rows["event"]] == "C"
    assert set(age[of_c]) == {4 * SECOND + 1}
    assert set(age[~of_c]) == {10 * SECOND + 1}


def test_a_promise_by_what_was_sent_is_the_best_there_is():
    """One microsecond more would be wrong, or of a time that has not been."""
    rows = rows_of(late_share="0.2,D=0", pog_share=0.1, pog="sent")
    for i in np.flatnonzero(~rows["event"])[:300]:
        later = (rows["type"] == rows["type"][i]) & rows["event"] & (np.arange(ROWS) > i)
        assert rows["pog"][i] == min(rows["arrival"][i], rows["at"][later].min()) - 1
    of_d = (rows["type"] == "D") & ~rows["event"]
    assert (rows["arrival"][of_d] - rows["pog"][of_d] == 1).all()


def test_types_are_dealt_out_evenly_and_late_events_to_the_row():
    rows = rows_of(types=8, late_share="0.25,A=0.5,B=0", late_max="10,C=2")
    late = rows["arrival"] - rows["at"]
    for kind in "ABCDEFGH":
        own = rows["type"] == kind
        assert own.sum() == ROWS / 8
        assert (late[own] > 0).sum() == own.sum() * {"A": 0.5, "B": 0}.get(kind, 0.25)
        assert late[own].min() == 0
        assert late[own].max() <= (2 if kind == "C" else 10) * SECOND
    assert late.max() > 9 * SECOND


def test_late_events_are_out_of_order():
    """Those that are delayed by less than it takes until the next event are not; there are few."""
    rows = rows_of(late_share=0.3, rate=50)
    behind = rows["at"] < np.maximum.accumulate(rows["at"])
    assert 0.28 < behind.mean() <= 0.3


def test_there_are_as_many_promises_for_each_event_as_asked():
    rows = rows_of(pog_share=0.25)
    assert (~rows["event"]).sum() == ROWS // 5
    _, counts = np.unique(rows["type"][~rows["event"]], return_counts=True)
    assert counts.max() - counts.min() <= 1


def test_the_rate_is_that_of_events_in_time_units():
    rows = rows_of(pog_share=0.25, rate=30, unit="1 minute")
    span = (rows["arrival"][-1] - rows["arrival"][0]) / MINUTE
    assert rows["event"].sum() / span == pytest.approx(30, rel=0.01)
    assert parse_options("sequence", (("unit", "1 minute"),)).late_max == 10 * MINUTE
    assert parse_options("sequence", (("unit", "1 minute"), ("late_max", "2.5,A=3 seconds"))).type_max == (("A", 3 * SECOND),)


def test_promises_have_neither_time_nor_value():
    batch = events("sequence", Options(pog_share=0.5), 0, BLOCK)
    promise = batch.column("pog").is_valid()
    assert pc.all(pc.equal(promise, batch.column("at").is_null())).as_py()
    assert pc.all(pc.equal(promise, batch.column("value").is_null())).as_py()


@pytest.mark.parametrize("pog", ["delay", "sent"])
def test_any_cut_gives_the_same_promises(pog):
    options = Options(rate=100.0, late_share=0.4, pog_share=0.3, pog=pog, seed=9)
    whole = events("sequence", options, 0, 3 * BLOCK)
    assert events("sequence", options, 1000, 2 * BLOCK).equals(whole.slice(1000, 2 * BLOCK))
    assert events("sequence", options, 2 * BLOCK, 10).equals(whole.slice(2 * BLOCK, 10))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("late_share", "Z=0.5", "type 'Z' does not exist"),
        ("late_share", "A=0.5,a=0.6", "two values for A"),
        ("late_share", "0.5,0.6", "two values for all types"),
        ("late_share", "A=2", "from 0 to 1"),
        ("late_share", "A=", "a number"),
        ("late_max", "A=-1", "a duration"),
        ("types", "27", "from 1 to 26"),
        ("pog_share", "1.5", "from 0 to 1"),
        ("pog", "soon", "'delay' .* or 'sent'"),
        ("unit", "0", "a duration"),
    ],
)
def test_what_cannot_be_is_refused(name, text, message):
    with pytest.raises(QueryError, match=message):
        parse_options("sequence", ((name, text),))


def test_options_of_sequences_are_for_sequences():
    with pytest.raises(QueryError, match="option 'types' does not exist; there are: rate"):
        parse_options("ticks", (("types", "3"),))
