"""Which topics there are, and who shares them."""

from __future__ import annotations

import pytest

from headrace.errors import QueryError
from headrace.log.log import checked_name
from headrace.serve.topics import Topic, topics_of
from headrace.sql import parse_script
from headrace.stages.lower import lower

STREAMS = """
CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY 0;
CREATE STREAM refunds (id BIGINT, card STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('refunds.csv') TIMESTAMP BY at DELAY 0;
"""


def topics(script: str, chosen: dict[str, list[str]] | None = None) -> tuple[Topic, ...]:
    return topics_of(lower(parse_script(STREAMS + script)).stages, chosen)


def per(keys: str, into: str, window: str = "RANGE 5 MINUTES") -> str:
    return f"SELECT id, COUNT(*) AS n FROM payments [{window}] GROUP BY {keys} EMIT CHANGES INTO {into};"


def test_a_topic_for_every_entity():
    found = topics(per("card", "a") + per("merchant", "b"))
    assert [t.name for t in found] == ["payments.card", "payments.merchant"]
    assert sorted(stage for t in found for stage in t.stages) == [0, 1]


def test_keys_that_nest_share_the_topic_of_the_smaller():
    found = topics(per("card, merchant", "a") + per("card", "b") + per("merchant, card", "c", "RANGE 1 HOUR"))
    assert [(t.name, t.by) for t in found] == [("payments.card", (("card",),))]


def test_of_two_that_would_do_the_smaller_is_taken_and_then_the_first():
    found = topics(per("card, merchant", "a") + per("card", "b") + per("merchant", "c"))
    assert sorted(t.name for t in found) == ["payments.card", "payments.merchant"]


def test_what_needs_no_key_goes_along():
    found = topics("SELECT id FROM payments WHERE amount > 100 EMIT CHANGES INTO large;" + per("card", "a"))
    assert [t.name for t in found] == ["payments.card"]
    assert len(found[0].stages) == 2
    (alone,) = topics("SELECT id FROM payments WHERE amount > 100 EMIT CHANGES INTO large;")
    assert (alone.name, alone.by, alone.partitions(8)) == ("payments", None, 8)


def test_without_a_key_all_events_meet():
    (found,) = topics("SELECT id, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] EMIT CHANGES INTO a;")
    assert (found.name, found.by, found.partitions(8)) == ("payments", (), 1)


def test_streams_that_meet_have_a_topic_together():
    both = """EVENT SEQ(payments p, refunds r) WHERE p.card = r.card WITHIN 1 HOUR RETURN p.id AS paid, r.id AS back
    EMIT CHANGES INTO returned;"""
    found = topics(both + per("card", "a"))
    assert [t.name for t in found] == ["payments-refunds.card", "payments.card"] or [t.name for t in found] == [
        "payments.card", "payments-refunds.card",
    ]  # fmt: skip
    assert {t.streams for t in found} == {("payments", "refunds"), ("payments",)}


def test_topics_can_be_chosen():
    asked = per("card, merchant", "a") + per("card, merchant", "b", "RANGE 1 HOUR")
    assert [t.name for t in topics(asked)] == ["payments.card-merchant"]
    assert [t.name for t in topics(asked, {"payments": ["merchant"]})] == ["payments.merchant"]


def test_rows_that_must_meet_cannot_be_parted():
    with pytest.raises(QueryError, match="cannot be parted by amount: a query is grouped by card"):
        topics(per("card", "a"), {"payments": ["amount"]})


def test_names_are_such_that_every_log_takes_them():
    found = topics(per("UPPER(card)", "a") + per("LOWER(card)", "b") + per("card || 'é'", "c") + per("card || 'è'", "d"))
    names = [t.name for t in found]
    assert names == [checked_name("topic", name) for name in names]
    assert len(set(names)) == 4
