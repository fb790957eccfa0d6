"""Files looked at before a run: what they are, and whether they are what is declared."""

from __future__ import annotations

import gzip
import json
import time

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import DataError
from headrace.files.parquet import readable
from headrace.files.survey import survey
from headrace.files.values import fits
from headrace.notices import HeadraceWarning
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream

SCHEMA = Schema.of(id="INT", card="STRING", at="TIMESTAMP")
ROW = "1,c,2024-01-01 00:00:00\n"
OBJECT = '{"ID": 1, "card": "c", "at": "2024-01-01"}\n'


def look(folder, files, kind="auto", delimiter=",", schema=SCHEMA):
    """Survey a directory of these files."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if isinstance(content, pa.Table):
            pq.write_table(content, folder / name)
        else:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    source = FileSource(str(folder), kind, delimiter)
    return survey(Stream("p", source, schema), source)


def table(**columns):
    return pa.table({"id": pa.array([1], pa.int32()), "card": ["c"], "at": pa.array([0], pa.timestamp("us", "UTC")), **columns})


@pytest.mark.parametrize(
    ("files", "kind", "headed"),
    [
        ({"a": ROW, "b": ROW}, "csv", False),
        ({"a.csv": "id,card,at\n" + ROW, "b": "AT,\"card\",x,id\n", "c": "", ".hidden": b"PAR1"}, "csv", True),
        ({"a.gz": gzip.compress(ROW.encode())}, "csv", False),
        ({"a": OBJECT, "b": f"[\n{OBJECT},{OBJECT}]"}, "json", None),
        ({"part-0000": table()}, "parquet", None),
        ({}, "csv", None),
    ],
)  # fmt: skip
def test_what_is_inside_says_what_a_file_is(tmp_path, files, kind, headed):
    found = look(tmp_path / "in", files)
    assert (found.format, found.headed) == (kind, headed)


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        ({"a": ROW, "b": table()}, "auto", "the files are of several formats: a is CSV and b is parquet"),
        ({"a": ROW, "b": OBJECT}, "auto", "the files are of several formats: a is CSV and b is JSON"),
        ({"a": table()}, "csv", "a is parquet, and CSV was expected"),
        ({"a": ROW}, "parquet", "a is CSV, and parquet was expected"),
        ({"a": ROW}, "json", "a is CSV, and JSON was expected"),
        ({"a.xlsx": b"PK\x03\x04...."}, "auto", "a.xlsx is zip"),
        ({"a": ROW.encode("utf-16")}, "auto", "a is UTF-16"),
        ({"a": "id,card\n1,c\n"}, "csv", "a has no column 'at'; its header says: id, card"),
        ({"a": "id,card,at\n" + ROW, "b": ROW}, "csv", "a has a header, and b has none"),
        ({"a": "id;card;at\n" + ROW.replace(",", ";")}, "csv", "a has fields between ';', not between ','"),
        ({"a": "# exported today\nid,card,at\n" + ROW}, "csv", "a has its header in line 2, and something else before it"),
        ({"a": "number,name,when\n" + ROW}, "csv", "a has no column 'id', 'card', 'at'; its first line says: number, name, when"),
        ({"a": '{"records": [1, 2]}\n'}, "json", "a has no column 'id', 'card', 'at'; its first object has: records"),
        ({"a": table().drop(["at"])}, "auto", "a has no column 'at'; it has: id, card"),
        ({"a": table(card=pa.array([1]))}, "auto", r"in a the column 'card' is int64 \(BIGINT\), and is declared STRING"),
        ({"a": table(id=pa.array([1]))}, "auto", r"in a the column 'id' is int64 \(BIGINT\), and is declared INT"),
        ({"a": b"PAR1" + b"x" * 20}, "auto", "a cannot be read as parquet"),
    ],
)  # fmt: skip
def test_what_is_not_as_declared_is_told_with_the_file(tmp_path, files, kind, message):
    with pytest.raises(DataError, match=message) as error:
        look(tmp_path / "in", files, kind)
    assert error.value.where == "stream 'p'"
    assert error.value.hint


def test_a_row_that_has_the_name_of_a_column_is_no_header(tmp_path):
    words = Schema.of(word="STRING", at="TIMESTAMP")
    assert look(tmp_path / "in", {"a": "at,2024-01-01\nword,2024-01-02\n"}, "csv", schema=words).headed is False


def test_times_of_pandas(tmp_path):
    frame = pd.DataFrame({"id": [1], "card": ["c"], "at": pd.to_datetime(["2024-01-01 00:00:00.123456789"])})
    (tmp_path / "in").mkdir()
    frame.to_parquet(tmp_path / "in" / "a", version="2.6")
    wide = Schema.of(id="BIGINT", card="STRING", at="TIMESTAMP")
    assert look(tmp_path / "in", {}, schema=wide).nanoseconds == {"at"}
    with pytest.raises(DataError, match="nanoseconds in a, and not in b"):
        look(tmp_path / "in", {"b": table(id=pa.array([1]))}, schema=wide)


@pytest.mark.parametrize(
    ("found", "declared", "fits"),
    [
        ("INT", "BIGINT", True), ("INT", "DOUBLE", True), ("BIGINT", "INT", False), ("INT", "TINYINT", False),
        ("FLOAT", "DOUBLE", True), ("DOUBLE", "FLOAT", False), ("BIGINT", "STRING", False), ("STRING", "BIGINT", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", True), ("DECIMAL(10, 2)", "DECIMAL(12, 1)", False), ("INT", "DECIMAL(12, 2)", True),
        ("TIMESTAMP_NTZ", "TIMESTAMP", True), ("TIMESTAMP", "TIMESTAMP_NTZ", False), ("DATE", "TIMESTAMP", False),
    ],
)  # fmt: skip
def test_what_can_be_read_as_what(found, declared, fits):
    assert readable(found, declared) is fits


def test_thousands_of_files_are_looked_at_quickly(tmp_path):
    files = {f"{i:04d}": "at,id,card\n" + "2024-01-01,1,c\n" * 1000 for i in range(2000)}
    look(tmp_path / "in", files)
    began = time.process_time()
    source = FileSource(str(tmp_path / "in"), "auto")
    assert len(survey(Stream("p", source, SCHEMA), source).files) == 2000
    assert time.process_time() - began < 10


def test_json_that_begins_with_nonsense_is_json_if_it_is_said(tmp_path):
    text = "nonsense\n" + json.dumps({"id": 1})
    assert look(tmp_path / "in", {"a": text}, "json").format == "json"


def test_what_lies_there_and_is_not_read_is_said(tmp_path):
    (tmp_path / "in" / "day=1").mkdir(parents=True)
    (tmp_path / "in" / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.warns(HeadraceWarning) as said:
        look(tmp_path / "in", {"a.csv": "id,card,at\n" + ROW})
    assert [str(w.message).partition(": ")[2] for w in said] == [
        f"files in folders are not read: day=1. SOURCE FILE('{tmp_path}/in/*/*') reads those",
        "what is no file is not read: gone",
    ]


def test_a_hidden_file_that_is_named_is_not_said_to_be_missing(tmp_path):
    (tmp_path / ".a.csv").write_text("id,card,at\n" + ROW)
    source = FileSource(str(tmp_path / ".a.csv"), "auto")
    with pytest.raises(DataError, match=r"\.a\.csv' is not read: Spark takes names that begin with"):
        survey(Stream("p", source, SCHEMA), source)


def test_brackets_without_end_are_no_recursion_without_end(tmp_path):
    deep = '{"id": ' + "[" * 3000 + "]" * 3000 + "}\n"
    assert look(tmp_path / "in", {"a.json": deep + OBJECT}).format == "json"


def test_parquet_that_spark_cannot_read_is_told_what_it_is(tmp_path):
    twice = table(ID=pa.array([1], pa.int32()))
    with pytest.raises(DataError, match="a has several columns 'id': id, ID"):
        look(tmp_path / "in", {"a": twice})
    (tmp_path / "in/a").unlink()
    pq.write_table(table(), tmp_path / "in/b", compression="brotli")
    with pytest.raises(DataError, match="b is compressed with BROTLI, which Spark has no reader for"):
        look(tmp_path / "in", {})
    (tmp_path / "in/b").unlink()
    with pytest.raises(DataError, match=r"is null \(NULL\), and is declared STRING") as caught:
        look(tmp_path / "in", {"c": table(card=pa.nulls(1))})
    assert "a column without any value has no type" in str(caught.value)


def test_parquet_with_a_colon_in_its_name_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"12:00\.parquet has a colon in its name"):
        look(tmp_path / "in", {"12:00.parquet": table()})


def test_an_hour_without_a_date_is_no_time():
    """A run rejects it too (tests/spark/test_files.py)."""
    assert [fits(text, "TIMESTAMP") for text in ("2024-01-01 12:00:17", "2024-01-01", "12:00:17", "T12:00")] == [
        True,
        True,
        False,
        False,
    ]
