"""SHOW, DESCRIBE and DROP."""

import pytest

from headrace.sql import parse_script
from headrace.sql.errors import SqlError

DECLARED = """CREATE SCHEMA reading (id STRING, at TIMESTAMP);
CREATE STREAM shelf reading SOURCE FILE('shelf.csv') TIMESTAMP BY at DELAY 0;
CREATE STREAM seen AS SELECT id FROM shelf;
CREATE STREAM all_ids (id STRING);
"""


def answers(more: str) -> list[tuple]:
    return [(a.title, a.columns, a.rows) for a in parse_script(DECLARED + more).answers]


def test_show_streams_and_where_they_come_from():
    ((title, columns, rows),) = answers("SHOW STREAMS")
    assert (title, columns) == ("streams", ("name", "columns", "from"))
    assert rows == (
        ("shelf", "(id STRING, at TIMESTAMP)", "FILE('shelf.csv', 'csv')"),
        ("seen", "(id STRING)", "shelf"),
        ("all_ids", "(id STRING)", "INSERT INTO"),
    )


def test_show_schemas_and_queries():
    schemas, queries = answers("SELECT * FROM seen EMIT FINAL INTO ids; SHOW SCHEMAS; SHOW QUERIES")
    assert schemas[2] == (("reading", "(id STRING, at TIMESTAMP)"),)
    assert queries[2] == (("ids", "FINAL", "ids", "Project id"),)


@pytest.mark.parametrize("name", ["shelf", "reading", "STREAM shelf", "SCHEMA Reading"])
def test_describe(name):
    ((_, columns, rows),) = answers(f"DESCRIBE {name}")
    assert columns == ("column", "type")
    assert rows == (("id", "STRING"), ("at", "TIMESTAMP"))


def test_describe_a_stream_that_nothing_fills_yet():
    assert answers("DESCRIBE all_ids")[0][2] == (("id", "STRING"),)


def test_what_is_dropped_can_be_declared_again():
    script = parse_script(
        DECLARED + "DROP STREAM seen; DROP STREAM all_ids; DROP SCHEMA reading; CREATE SCHEMA reading (x INT);"
        "CREATE STREAM seen AS SELECT at FROM shelf; SELECT * FROM seen; DESCRIBE reading"
    )
    assert script.queries[0].node.schema.names == ("at",)
    assert script.answers[0].rows == (("x", "INT"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DROP STREAM selves", "stream 'selves' does not exist"),
        ("DROP SCHEMA redding", "schema 'redding' does not exist"),
        ("DROP TABLE shelf", "expected STREAM or SCHEMA"),
        ("SHOW TABLES", "expected STREAMS, SCHEMAS or QUERIES"),
        ("DESCRIBE nothing", "stream 'nothing' does not exist"),
        ("SELECT id FROM seen INTO ids; DROP STREAM shelf", "'shelf' cannot go: the query ids needs it"),
        ("DROP STREAM seen; SELECT id FROM seen", "stream 'seen' does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_at_its_place(text, message):
    with pytest.raises(SqlError, match=message):
        parse_script(DECLARED + text)
