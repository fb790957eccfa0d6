import pytest

from headrace.errors import QueryError
from headrace.generate import Options, parse_options
from headrace.plan.time import SECOND


def test_texts_become_options():
    given = (
        ("rate", "500"),
        ("KEYS", "1_000"),
        ("late-share", "0.25"),
        ("late_max", "'90 seconds'"),
        ("start", "2026-03-02T12:00:00Z"),
    )
    options = parse_options("payments", (*given, ("seed", "9"), ("rows", "77"), ("skew", "1.5")))
    assert options == Options(500.0, 1000, 1.5, 0.25, 90 * SECOND, 9, 1_772_452_800 * SECOND, 77)


def test_each_kind_has_its_defaults():
    assert parse_options("ticks", ()).keys == 100
    assert parse_options("payments", ()).keys == 10_000


def test_a_bare_number_is_seconds_and_a_bare_time_is_utc():
    options = parse_options("ticks", (("late_max", "2.5"), ("start", "1969-12-31 23:59:59.5")))
    assert options.late_max == 2_500_000
    assert options.start == -500_000


def test_rows_may_be_without_end():
    assert parse_options("ticks", (("rows", "unbounded"),)).rows is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rate", "fast", "option 'rate' cannot be 'fast'"),
        ("rate", "0", "events per second"),
        ("rate", "nan", "events per second"),
        ("keys", "0", "from 1 to"),
        ("keys", "1.5", "whole number"),
        ("skew", "-1", "Zipf exponent"),
        ("late_share", "2", "from 0 to 1"),
        ("late_max", "5 parsecs", "a duration"),
        ("late_max", "-1", "a duration"),
        ("seed", "-1", "from 0 to"),
        ("start", "noon", "a time"),
        ("rows", "-3", "from 0 to"),
        ("rte", "5", "Did you mean 'rate'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_could(name, text, message):
    with pytest.raises(QueryError) as caught:
        parse_options("payments", ((name, text),))
    assert message in str(caught.value)


def test_too_slow_for_so_many_rows():
    with pytest.raises(QueryError, match="too slow"):
        parse_options("payments", (("rate", "0.000001"), ("rows", "1000000")))


def test_an_option_twice_is_refused():
    with pytest.raises(QueryError, match="twice"):
        parse_options("payments", (("rate", "5"), ("RATE", "6")))


def test_an_unknown_kind_names_those_there_are():
    with pytest.raises(QueryError, match="Did you mean 'ticks'"):
        parse_options("tick", ())
