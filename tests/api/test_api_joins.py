"""Joins built in Python."""

from __future__ import annotations

import pytest
from api_fakes import Frame

import headrace as hr
from headrace.errors import QueryError
from headrace.plan.explain import tree


@pytest.fixture
def payments():
    return hr.stream(Frame(id="bigint", card="string", at="timestamp"), timestamp="at", delay="10 seconds", name="payments")


@pytest.fixture
def places():
    return hr.stream(Frame(card="string", city="string", at="timestamp"), timestamp="at", delay="10 seconds", name="places")


def test_a_join_by_a_column_of_both(payments, places):
    found = payments.window(hr.range("5 minutes")).join(places.window(hr.rows(1, "card")), on="card", how="left")
    first, _, second, _ = tree(found.node).splitlines()
    assert first == "Join [RANGE 5 MINUTES] LEFT JOIN [ROWS 1 PARTITIONED BY right_card] ON card = right_card"
    assert second == "  Project card AS right_card, city, at AS right_at"
    assert set(found.frames) == {"payments", "places"}


def test_expressions_and_no_key(payments, places):
    left, right = payments.window(hr.unbounded()), places.window(hr.range("1 second"))
    assert "ON UPPER(card) = LOWER((right_card))" in str(left.join(right, on={"UPPER(card)": "LOWER(card)"}).node)
    assert str(left.join(right).node) == "Join [UNBOUNDED] INNER JOIN [RANGE 1 SECOND]"


def test_what_cannot_be_joined(payments, places):
    window = payments.window(hr.range("1 second"))
    with pytest.raises(QueryError, match="kind of join 'outer' does not exist"):
        window.join(places.window(hr.unbounded()), on="card", how="outer")
    with pytest.raises(QueryError, match="not when its window is looked at"):
        window.join(places.window(hr.size("1 hour")), on="card")
    with pytest.raises(QueryError, match="no where or group_by"):
        window.group_by("card").join(places.window(hr.unbounded()), on="card")
    with pytest.raises(QueryError, match="does not say when"):
        window.join(places.window(hr.unbounded()), on="card", how="full")
