"""Patterns built in Python: the same nodes that SQL makes."""

from __future__ import annotations

import pytest
from api_fakes import Frame

import headrace as hr
from headrace.api.run import script_of
from headrace.errors import QueryError
from headrace.plan.patterns import Pattern, Selection
from headrace.plan.query import Emit, Using
from headrace.sql import parse_script


def readings(name, **more):
    return hr.stream(Frame(id="string", at="timestamp", **more), timestamp="at", delay="10 seconds", name=name)


SHELF, CHECKOUT, EXIT = readings("shelf"), readings("checkout", till="int"), readings("exit")
STREAMS = {"shelf": SHELF, "checkout": CHECKOUT, "exit": EXIT}
THEFT = (hr.event("shelf", "s"), ~hr.event("checkout", "c"), hr.event("exit", "e"))


def of_sql(text):
    (query,) = parse_script(text, streams={name: stream.node for name, stream in STREAMS.items()}).queries
    return query.node


@pytest.mark.parametrize(
    ("made", "sql"),
    [
        (
            hr.seq(
                *THEFT, where="s.id = c.id AND c.id = e.id", within="5 hours", returns="s.id, e.at - s.at AS dwell", **STREAMS
            ),
            "EVENT SEQ(shelf s, !(checkout c), exit e) WHERE s.id = c.id AND c.id = e.id WITHIN 5 HOURS "
            "RETURN s.id, e.at - s.at AS dwell",
        ),
        (
            hr.seq(hr.event(SHELF), hr.event(EXIT, "e"), where="shelf.id = e.id", within="1 hour", select="next"),
            "EVENT SEQ(shelf, exit e) NEXT MATCH WHERE shelf.id = e.id WITHIN 1 HOUR",
        ),
        (
            hr.seq(
                hr.event(SHELF, "s"), hr.event(CHECKOUT, "c").repeated(), hr.event(EXIT, "e"),
                where="s.id = e.id AND c.till > 3 AND COUNT(c) > 2", within="1 hour", select="STRICT",
                returns=["s.*", "COUNT(c) AS n", "LAST(c.till)"],
            ),
            "EVENT SEQ(shelf s, checkout+ c, exit e) STRICT WHERE s.id = e.id AND c.till > 3 AND COUNT(c) > 2 WITHIN 1 HOUR "
            "RETURN s.*, COUNT(c) AS n, LAST(c.till)",
        ),
    ],
)  # fmt: skip
def test_python_and_sql_give_one_plan(made, sql):
    assert made.node == of_sql(sql)


def test_streams_may_be_derived():
    large = CHECKOUT.where("till > 3")
    found = hr.seq(hr.event(SHELF, "s"), ~hr.event(large, "c"), within="1 hour").node
    assert isinstance(found, Pattern)
    assert found.selection is Selection.ANY
    assert found.places[1].input == large.node


def test_a_pattern_is_a_stream_like_others():
    found = hr.seq(*THEFT, where="s.id = c.id AND c.id = e.id", within="5 hours", **STREAMS)
    assert found.node.schema.names == ("s_id", "s_at", "e_id", "e_at")
    assert set(found.frames) == {"shelf", "checkout", "exit"}
    counted = found.window(hr.range("1 day")).group_by("s_id").agg(n=hr.count())
    assert counted.node.schema.names == ("s_id", "n")
    again = hr.seq(hr.event(found, "a"), hr.event(found, "b"), where="a.s_id = b.s_id", within="1 day")
    assert len(again.node.places) == 2


def test_the_order_of_results_by_slack():
    found = hr.seq(hr.event(SHELF, "s"), hr.event(EXIT, "e"), where="s.id = e.id", within="1 hour")
    script, _ = script_of({"out/": found.emit("final in order", using="kslack")})
    assert (script.queries[0].emit, script.queries[0].using) == (Emit.FINAL_IN_ORDER, Using.KSLACK)
    with pytest.raises(QueryError, match="USING KSLACK is for the results of a pattern"):
        script_of({"out/": found.emit("final", using="kslack")})
    with pytest.raises(QueryError, match="'slack' does not exist"):
        found.emit("final in order", using="slack")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hr.seq(within="1 hour"), "needs an event that must be there"),
        (lambda: hr.seq(SHELF, within="1 hour"), "seq takes events, got Stream"),
        (lambda: hr.seq(hr.event("shelf", "s"), within="1 hour"), "stream 'shelf' does not exist"),
        (lambda: hr.seq(hr.event(3, "s"), within="1 hour"), "an event is of a stream, got int"),
        (lambda: hr.seq(hr.event(SHELF.where("id > 'a'")), within="1 hour"), "needs a name"),
        (lambda: hr.seq(hr.event(SHELF), hr.event(SHELF), within="1 hour"), "two events of the pattern are called 'shelf'"),
        (lambda: hr.seq(hr.event(SHELF), ~hr.event(EXIT).repeated(), within="1 hour"), "so it does not repeat"),
        (lambda: hr.seq(hr.event(SHELF.late(), "s"), within="1 hour"), "the order of arrival, which has no sequences"),
        (
            lambda: hr.seq(hr.event(SHELF), within="1 hour", select="some"),
            "selection 'some' does not exist; there are: any, next",
        ),
        (lambda: hr.seq(hr.event(SHELF), within=0), "WITHIN must be longer than nothing"),
        (lambda: hr.seq(hr.event(SHELF), within=5), "within is a duration"),
        (lambda: hr.seq(hr.event(SHELF), within="1 hour", where="shelf.ix = 1"), "where:1:7: column 'ix' does not exist"),
        (lambda: hr.seq(hr.event(SHELF), within="1 hour", where="id = 'a' AS x"), "a condition has no name"),
        (lambda: hr.seq(hr.event(SHELF), within="1 hour", returns="shelf.ix"), "returns:1:7: column 'ix' does not exist"),
        (lambda: hr.seq(hr.event(SHELF), within="1 hour", returns=["id", "id"]), "returns:1:5: column 'id' is there twice"),
        (lambda: hr.seq(hr.event(SHELF), ~hr.event(EXIT, "e"), within="1 hour", returns="e.id"), "'e' must not be there"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(QueryError) as caught:
        make()
    assert message in str(caught.value)
