"""The builders give the plans that SQL gives."""

from __future__ import annotations

import sys
from datetime import timedelta

import pytest
from api_fakes import Frame, Spark

import headrace as hr
from headrace.plan.explain import tree
from headrace.plan.nodes import Late, Rejected
from headrace.plan.query import ConsoleSink, Emit, FileSink, TableSink
from headrace.plan.stream import Bound, FrameSource
from headrace.sql import parse_script


@pytest.fixture
def df():
    return Frame(id="bigint", card="string", merchant="string", amount="double", at="timestamp")


@pytest.fixture
def payments(df):
    return hr.stream(df, timestamp="at", delay="10 seconds", name="payments")


@pytest.fixture
def spark(monkeypatch):
    fake = Spark()
    monkeypatch.setitem(sys.modules, "headrace.spark", fake)
    return fake


def from_sql(payments, sql):
    return parse_script(sql, streams={"payments": payments.node}).queries[0].node


def test_the_example_of_the_readme(payments):
    profile = payments.window(hr.range("5 minutes")).group_by("card").agg(total=hr.sum("amount"), n=hr.count())
    sql = "SELECT card, SUM(amount) AS total, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card"
    assert profile.node == from_sql(payments, sql)


SAME = [
    (lambda p: p.where("amount > 1"), "SELECT * FROM payments WHERE amount > 1"),
    (lambda p: p.select("card", "amount * 2 AS x", y="id + 1"), "SELECT card, amount * 2 AS x, id + 1 AS y FROM payments"),
    (
        lambda p: p.select("*", big="amount > 9"),
        "SELECT *, amount > 9 AS big FROM payments",
    ),
    (
        lambda p: p.window(hr.range("5 minutes", lag="1 hour")).where("id > 1").group_by("card").agg("id", n=hr.count()),
        "SELECT card, id, COUNT(*) AS n FROM payments [RANGE 5 MINUTES LAG 1 HOUR] WHERE id > 1 GROUP BY card",
    ),
    (
        lambda p: (
            p.window(hr.rows(10, partition_by=["card"])).group_by("card", "merchant").agg(m=hr.max("amount").filter("amount > 0"))
        ),
        "SELECT card, merchant, MAX(amount) FILTER (WHERE amount > 0) AS m FROM payments [ROWS 10 PARTITIONED BY card]"
        " GROUP BY card, merchant",
    ),
    (
        lambda p: p.window(hr.unbounded()).agg(mean="SUM(amount) / COUNT(*)", cards=hr.count_distinct("card")),
        "SELECT SUM(amount) / COUNT(*) AS mean, COUNT(DISTINCT card) AS cards FROM payments [UNBOUNDED]",
    ),
    (
        lambda p: p.score(
            "id",
            card_total=hr.sum("amount").over("card", hr.rows(5, "card")),
            merchant_n=hr.count().over("merchant", hr.rows(60, "merchant")),
            card_n=hr.count().over("card", hr.rows(5, "card")),
        ),
        "SELECT id, SUM(amount) OVER (PARTITION BY card ROWS 4 PRECEDING) AS card_total,"
        " COUNT(*) OVER (PARTITION BY merchant ROWS 59 PRECEDING) AS merchant_n,"
        " COUNT(*) OVER (PARTITION BY card ROWS 4 PRECEDING) AS card_n FROM payments",
    ),
    (
        lambda p: p.window(hr.unbounded()).group_by("upper(card) AS c").agg(n=hr.count()).having("n > 3"),
        "SELECT * FROM (SELECT upper(card) AS c, COUNT(*) AS n FROM payments [UNBOUNDED] GROUP BY upper(card)) WHERE n > 3",
    ),
]


@pytest.mark.parametrize(("build", "sql"), SAME, ids=[sql[:60] for _, sql in SAME])
def test_python_and_sql_give_one_plan(payments, build, sql):
    assert tree(build(payments).node) == tree(from_sql(payments, sql))


@pytest.mark.parametrize(
    "name", ["avg", "min", "max", "variance", "stddev", "var_pop", "stddev_pop", "first", "last", "sum", "count", "collect_list"]
)
def test_every_aggregate(payments, name):
    found = payments.window(hr.rows(3)).agg(x=getattr(hr, name)("amount"))
    assert f"{name.upper()}(amount) AS x" in tree(found.node)


def test_aggregates_of_two_columns(payments):
    found = payments.window(hr.rows(3)).agg(x=hr.max_by("card", "amount"), y=hr.min_by("card", "id"))
    assert "MAX_BY(card, amount) AS x, MIN_BY(card, id) AS y" in tree(found.node)


def test_builders_leave_what_they_build_on_alone(payments):
    before = payments.node
    payments.where("amount > 1").select("card")
    assert payments.node is before
    call = hr.sum("amount")
    call.filter("id > 1").over("card", hr.rows(3))
    assert call == hr.sum("amount")


def test_a_second_filter_is_added():
    assert hr.sum("a").filter("b > 1").filter("c OR d").sql == "SUM(a) FILTER (WHERE (b > 1) AND (c OR d))"


def test_the_clauses_of_a_stream(df):
    stream = hr.stream(
        df, timestamp="id", timestamp_unit="seconds", delay="unbounded", name="p", idle="1 minute", ahead=timedelta(hours=1),
        end_after="5 s", keep="7 days", unique_by=["card", "id"], unique_within="1 minute", position=("merchant", "id"),
    ).node.stream  # fmt: skip
    assert stream.source == FrameSource("p", ("merchant", "id"))
    assert (stream.delay, stream.timestamp_unit) == (Bound.UNBOUNDED, 1_000_000)
    assert (stream.idle, stream.ahead, stream.end_after, stream.keep) == (60_000_000, 3_600_000_000, 5_000_000, 604_800_000_000)
    assert str(stream.unique) == "UNIQUE BY card, id WITHIN 1 minute"
    assert hr.stream(df, delay=0).node.stream.delay == 0
    punctuated = hr.stream(df, timestamp="at", punctuated_by="CASE WHEN card IS NULL THEN at END").node.stream
    assert (punctuated.delay, str(punctuated.punctuation)) == (None, "CASE WHEN card IS NULL THEN at END")
    with pytest.raises(hr.QueryError, match="PUNCTUATED BY speaks of the time of events"):
        hr.stream(df, punctuated_by="at")


def test_late_and_rejected_belong_to_the_stream_as_read(payments):
    assert payments.late().node == Late(payments.node.stream)
    assert payments.rejected().node == Rejected(payments.node.stream)
    with pytest.raises(hr.QueryError, match="as it is read"):
        payments.where("id > 1").late()
    with pytest.raises(hr.QueryError, match="order of arrival"):
        payments.late().window(hr.rows(3))


ERRORS = [
    (lambda p: p.where("amout > 1"), "where:1:1: column 'amout' does not exist"),
    (lambda p: p.where("amount"), "WHERE takes a condition"),
    (lambda p: p.where("SUM(amount) > 1"), "an aggregate cannot stand in"),
    (lambda p: p.where("card = 'a"), "this string is not closed"),
    (lambda p: p.where("card, id"), "expected the end, found ','"),
    (lambda p: p.where(3), "takes SQL text, got int"),
    (lambda p: p.select(), "at least one column"),
    (lambda p: p.window("5 minutes"), "expected a window"),
    (lambda p: p.window(hr.rows(3)).agg(), "at least one aggregate"),
    (lambda p: p.window(hr.rows(3)).agg(x=hr.sum("card")), "SUM takes a number"),
    (lambda p: p.window(hr.rows(3)).agg(x=hr.sum("amout")), "x:1:5: column 'amout'"),
    (lambda p: p.window(hr.rows(3)).group_by("crd"), "column 'crd' does not exist"),
    (lambda p: p.window(hr.rows(3)).agg(x=hr.count().over("card", hr.rows(2))), "has a window of its own"),
    (lambda p: p.score(x=hr.count()), "needs a window of its own"),
    (lambda p: p.emit("finally"), "Did you mean 'final'"),
    (lambda p: hr.rows(0), "above zero"),
    (lambda p: hr.range("5 parsecs"), "unknown unit of time"),
    (lambda p: hr.stream("frame"), "expected a Spark DataFrame, got str"),
    (lambda p: hr.file("x", "xml"), "format 'xml' does not exist"),
]


@pytest.mark.parametrize(("build", "message"), ERRORS, ids=[m for _, m in ERRORS])
def test_errors(payments, build, message):
    with pytest.raises(hr.QueryError) as caught:
        build(payments)
    assert message in str(caught.value)


def test_to_df_hands_over_the_plan(payments, df, spark):
    assert payments.where("id > 1").emit("final in order").to_df() == "a DataFrame"
    [(_, script, frames)] = spark.calls
    assert frames == {"payments": df}
    assert [(q.emit, tree(q.node).splitlines()[0]) for q in script.queries] == [(Emit.FINAL_IN_ORDER, "Filter id > 1")]


def test_start_hands_over_all_queries(payments, spark):
    profile = payments.window(hr.range("5 minutes")).group_by("card").agg(n=hr.count())
    outputs = {
        "profiles/": profile,
        hr.file("late", "json"): payments.late(),
        hr.table("t"): profile.emit("final"),
        hr.console(): payments,
    }
    assert hr.start(outputs, checkpoint="cp", follow=True) == "a query"
    [(_, script, _, checkpoint, options)] = spark.calls
    assert (checkpoint, options) == ("cp", {"follow": True})
    assert [q.sink for q in script.queries] == [FileSink("profiles/"), FileSink("late", "json"), TableSink("t"), ConsoleSink()]
    assert [q.emit for q in script.queries] == [Emit.CHANGES, Emit.CHANGES, Emit.FINAL, Emit.CHANGES]
    assert [s.name for s in script.streams] == ["payments"]


def test_start_refuses_what_cannot_run(payments, df, spark):
    with pytest.raises(hr.QueryError, match="nothing to run"):
        hr.start({})
    with pytest.raises(hr.QueryError, match="expected a stream"):
        hr.start({"x": df})
    with pytest.raises(hr.QueryError, match="no bound on disorder"):
        hr.start({"x": hr.stream(df).window(hr.rows(3)).agg(n=hr.count())})
    other = hr.stream(Frame(id="int"), name="payments")
    with pytest.raises(hr.QueryError, match="two streams are called 'payments'"):
        hr.start({"x": payments, "y": other})


def test_sql_over_frames_and_streams(payments, df, spark):
    program = hr.sql(
        """
        CREATE STREAM again SOURCE DATAFRAME(raw) TIMESTAMP BY at DELAY 5 SECONDS;
        SELECT card, COUNT(*) AS n FROM again [ROWS 3] GROUP BY card INTO counts;
        SELECT id FROM payments WHERE amount > 1 INTO FILE('big/')
        """,
        raw=df,
        payments=payments,
    )
    assert program.start(checkpoint="cp") == "a query"
    assert program.to_df("counts") == "a DataFrame"
    assert [c[0] for c in spark.calls] == ["start", "to_df"]
    assert spark.calls[0][2] == {"raw": df, "payments": df}
    assert program["counts"].where("n > 2").node.schema.names == ("card", "n")
    assert "counts: EMIT CHANGES INTO counts" in program.explain()
    with pytest.raises(hr.QueryError, match="2 queries"):
        program.to_df()
    with pytest.raises(hr.QueryError, match="Did you mean 'counts'"):
        program["count"]


def test_explain_shows_what_rules_did(payments):
    text = payments.window(hr.range("5 minutes")).where("amount > 1").group_by("card").agg(n=hr.count()).emit("final").explain()
    assert text.startswith("EMIT FINAL\nProject card, n\n")
    assert "-- pushdown_where" in text
    assert "keeps rows of (5 minutes + 10 seconds) at the rate of the stream" in text


def test_the_api_is_all_there():
    assert {"range", "sum", "stream", "start", "sql"} <= set(dir(hr))
    assert callable(hr.sql)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hr.nothing
