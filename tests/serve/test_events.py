"""Posted events: values, times and words, without Spark."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.serve.events import Event, Punctuation, Rejected, reader

PAYMENT = Schema.of(card="STRING", amount="DECIMAL(10, 2)", at="TIMESTAMP", n="INT", tags="ARRAY<STRING>")


def stream(schema: Schema = PAYMENT, timestamp: str | None = "at", **more) -> Stream:
    return Stream("s", FileSource("x", "json"), schema, None if timestamp is None else Expr.of(timestamp), **more)


def read(text: str, of: Stream | None = None, exprs: tuple[str, ...] = ()) -> Event | Punctuation | Rejected:
    return reader(of or stream(), [Expr.of(e) for e in exprs])(text.encode(), 77)


def test_values_come_as_declared():
    text = '{"CARD": 12.50, "amount": 1.005, "at": "1970-01-01 00:00:01Z", "tags": ["a", null, 5], "other": {}}'
    assert read(text, exprs=("amount * 2", "UPPER(card)")) == Event(
        ("12.5", Decimal("1.01"), 1_000_000, None, ["a", None, "5"]), 1_000_000, (Decimal("2.02"), "12.5")
    )


def test_without_timestamp_by_the_time_is_that_of_arrival():
    assert read("{}", stream(timestamp=None)) == Event((None,) * 5, 77)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "it is not a JSON object"), ('{"n": 1', "it is not JSON: Expecting ',' delimiter: line 1 column 8 (char 7)"),
        ('{"n": "x", "at": "2024-01-01"}', "column 'n' is INT, and here is \"x\""),
        ('{"n": 2147483648}', "column 'n' is INT, and here is 2147483648"), ('{"n": 1.0}', "column 'n' is INT, and here is 1.0"),
        ('{"at": "12:30"}', "column 'at' is TIMESTAMP, and here is '12:30'"), ('{"card": "a"}', "the timestamp at is NULL"),
        ('{"at": 1700000000}', "column 'at' is TIMESTAMP, and here is '1700000000'"),
        ('{"tags": "a"}', "column 'tags' is ARRAY<STRING>, and here is \"a\""),
        ('{"at": "0000-01-01"}', 'the timestamp at is outside years 1 to 9999, with at = "0000-01-01T00:00:00.000Z"'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_rejected_with_a_reason(text, reason):
    assert read(text) == Rejected(reason)


def test_an_expression_that_fails_rejects_the_event():
    text = '{"at": "2024-01-01", "n": 2147483647}'
    assert read(text, exprs=("n + 1",)) == Rejected("the expression n + 1 failed, with n = 2147483647")


def test_an_expression_is_tried_only_where_its_guard_lets_it():
    expr, guard = Expr.of("1 / n"), Expr.of("CASE WHEN n <> 0 THEN 1 / n END")
    run = reader(stream(Schema.of(n="INT"), None), [expr], {expr: guard})
    assert run(b'{"n": 0}', 7) == Event((0,), 7, (None,))
    assert reader(stream(Schema.of(n="INT"), None), [expr])(b'{"n": 0}', 7) == Rejected("the expression 1 / n failed, with n = 0")


def test_keys_that_differ_by_case_give_way_to_the_exact_one():
    of = stream(Schema.of(n="INT", s="STRUCT<k: INT>"), None)
    assert read('{"N": 1, "n": 2, "S": {"K": 3}}', of) == Event((2, (3,)), 77)


def test_punctuation_is_no_event_and_may_lack_everything_else():
    schema = Schema.of(at="BIGINT", upto="BIGINT", n="INT")
    of = stream(schema, "at", punctuation=Expr.of("upto"))
    assert read('{"upto": 5}', of) == Punctuation(5_000)
    assert read('{"at": 5}', of) == Event((5, None, None), 5_000)
    far = "the punctuation upto is outside years 1 to 9999, with upto = 9223372036854775807"
    assert read('{"upto": 9223372036854775807}', of) == Rejected(far)


def test_a_type_that_cannot_be_read_is_refused_when_the_reader_is_made():
    with pytest.raises(QueryError, match="column 'v'"):
        reader(stream(Schema.of(v="INTERVAL DAY TO SECOND"), None))
