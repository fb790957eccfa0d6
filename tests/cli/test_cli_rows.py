import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from rich.console import Console

from headrace.cli.run.rows import JsonLines, Tables, row_printer
from headrace.runs.text import cell_text, instant, json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ('q"é', '"q\\"é"'),
        (0.1, "0.1"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (Decimal("1234567890123456789.10"), "1234567890123456789.10"),
        (Decimal("1E+3"), "1000"),
        (date(2026, 3, 2), '"2026-03-02"'),
        (datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=UTC), '"1969-12-31T23:59:59.000005Z"'),
        (timedelta(milliseconds=1500), "1.5"),
        (b"\x00\xff", '"AP8="'),
        ({"a": [1, None]}, '{"a": [1, null]}'),
    ],
)
def test_json(value, text):
    assert json_text(value) == text
    json.loads(text)


def test_an_instant_is_in_utc_whatever_its_zone():
    assert instant(datetime(2026, 3, 2, 14, tzinfo=timezone(timedelta(hours=2)))) == "2026-03-02T12:00:00Z"
    assert instant(datetime(2026, 3, 2, 14)) == "2026-03-02T14:00:00"


def test_cells_read_well():
    assert [cell_text(v) for v in (None, "a", 2.5, float("nan"), datetime(2026, 3, 2, tzinfo=UTC))] == [
        "NULL",
        "a",
        "2.5",
        "NaN",
        "2026-03-02 00:00:00Z",
    ]


def tables() -> tuple[Tables, io.StringIO]:
    printer, file = Tables(), io.StringIO()
    printer.console = Console(file=file, width=20)
    printer.narrowest = 20
    return printer, file


def test_a_table_goes_on_under_one_header(fake):
    printer, file = tables()
    printer.show(fake.rows(card=["a"], n=[1]))
    printer.show(fake.rows(card=["b"], n=[22]))
    printer.show(fake.rows("other", x=["y"]))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert lines == ["", "counts", "card  n", "a     1", "b     22", "", "other", "x", "y"]


def test_a_long_row_is_not_cut(fake):
    printer, file = tables()
    printer.show(fake.rows(a=["x" * 50], b=["[bold]y"]))
    assert "x" * 50 + "  [bold]y" in file.getvalue()


def test_an_empty_batch_is_a_header(fake):
    printer, file = tables()
    printer.show(fake.rows(card=pa.array([], pa.string())))
    assert "card" in file.getvalue()


def test_tables_are_for_terminals(fake, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert isinstance(row_printer(fake.script(), as_json=False), Tables)
    assert isinstance(row_printer(fake.script(), as_json=True), JsonLines)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert isinstance(row_printer(fake.script(), as_json=False), JsonLines)
