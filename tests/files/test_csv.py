"""CSV files as they come: headers in any order, quotes, lines, what cannot be read, in blocks of any size."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader import read, refused, values

from headrace.files import chunks, reading
from headrace.files.cuts import LINE, LOW, TEXT, WHY
from headrace.plan.schema import Schema

SCHEMA = Schema.of(id="INT", card="STRING", merchant="STRING", at="TIMESTAMP")
BLOCKS = [1 << 22, 64, 7]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "text",
    [
        "id,card,merchant,at\n1,c,m,t\n",
        "id,merchant,card,at\n1,m,c,t\n",
        '"At","Merchant","CARD","id"\n"t","m","c","1"\n',
        "x,at,id,,merchant,card\n9,t,1,,m,c\n",
        "\ufeffid,card,merchant,at\r\n1,c,m,t\r\n",
        "\n\n id , card ,merchant,at\n\n1,c,m,t\n\n",
        '"id", "card" , "merchant",at\n1,c,m,t\n',
        "id,card,merchant,at\r1,c,m,t\r",
        '"id","card","merchant","two\nlines",at\n1,c,m,x,t',
        "1,c,m,t",
    ],
)
def test_every_file_is_read_by_its_own_header(tmp_path, text, block):
    rows = read(tmp_path, text.encode(), SCHEMA, block=block)
    assert values(rows, SCHEMA) == [("1", "c", "m", "t")]
    assert refused(rows) == []


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(tmp_path, delimiter):
    text = "merchant,at,id,card\nm,t,1,c\n".replace(",", delimiter)
    assert values(read(tmp_path, text.encode(), SCHEMA, delimiter=delimiter), SCHEMA) == [("1", "c", "m", "t")]


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_in_quotes_and_what_is_nothing(tmp_path, block):
    text = 'id,card,merchant,at\n1,"a ""b"", c","x\r\n\ny",t\n"2","",,"t" \n3,12" tv,a"b,\n"",,"",""\n'
    rows = read(tmp_path, text.encode(), SCHEMA, block=block)
    assert values(rows, SCHEMA) == [
        ("1", 'a "b", c', "x\r\n\ny", "t"),
        ("2", "", None, "t"),
        ("3", '12" tv', 'a"b', None),
        (None, None, "", None),
    ]
    assert [row[LINE] for row in rows] == [2, 5, 6, 7]
    assert [row[TEXT].rstrip("\n") for row in rows][1] == '"2","",,"t" '


@pytest.mark.parametrize("block", BLOCKS)
def test_a_row_that_cannot_be_read_costs_one_line(tmp_path, block):
    lines = [
        b"id,card,merchant,at", b"1,a,b,t", b"2,a", b'3,"never closed,b,t', b"4,a,b,t", b'5,"a" x,b,t', b"6,a,b,t,more",
        b"7,\xff\xfe,b,t", b'8,"oops,b,t', b"9,a,b,t", b'10,",a",b,t', b"11,\xc3\xa9,b,t", b'12,a,b,"t',
    ]  # fmt: skip
    rows = read(tmp_path, b"\n".join(lines), SCHEMA, block=block)
    assert [v[0] for v in values(rows, SCHEMA)] == ["1", "4", "9", "10", "11"]
    assert values(rows, SCHEMA)[-1][1] == "é"
    expected = "and 4 were expected: id, card, merchant, at"
    assert refused(rows) == [
        (3, "2,a", f"it has 2 fields, {expected}"),
        (4, '3,"never closed,b,t', "a quote is never closed"),
        (6, '5,"a" x,b,t', "there is text behind a closing quote; a quote inside quotes is written twice"),
        (7, "6,a,b,t,more", f"it has 5 fields, {expected}"),
        (8, "7,\\xff\\xfe,b,t", "it is not UTF-8: byte 3 is 0xff"),
        (9, '8,"oops,b,t', "a quote is never closed"),
        (13, '12,a,b,"t', "a quote is never closed"),
    ]


def test_a_quote_that_nothing_closes_swallows_nothing_however_long_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST", 1000)
    lines = ['0,"open,b,t', *(f"{i},a,b,t" for i in range(1, 500)), "x" * 5000, "500,a,b,t"]
    rows = read(tmp_path, "\n".join(lines).encode(), SCHEMA, block=128)
    assert [v[0] for v in values(rows, SCHEMA)] == [str(i) for i in range(1, 501)]
    assert refused(rows)[0] == (1, '0,"open,b,t', "a quote is never closed")
    assert all(line == 501 for line, _, _ in refused(rows)[1:])


def test_headers_of_files_written_one_behind_the_other(tmp_path):
    text = "merchant,card,id,at\nm,c,1,t\nmerchant,card,id,at\nm,c,2,t\n"
    strings = Schema.of(id="STRING", card="STRING", merchant="STRING", at="STRING")
    assert [v[0] for v in values(read(tmp_path, text.encode(), strings), strings)] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "headed", "reason"),
    [
        ("id,card,at\n1,c,t\n2,c,t\n", None, "the file has no column 'merchant'; its header says: id, card, at"),
        ("id,card,card,merchant,at\n1,c,c,m,t\n2,c,c,m,t\n", None, "the file has two columns 'card'"),
        ("1,c,m,2024\n2,c,m,2024\n", True, "the file has no header, and the files that were there at the start have one"),
        ("id,card,merchant,at\n1,c,m,t\n2,c,m,t\n", False, "the file has a header, and the files that were there at the start"),
    ],
)
def test_a_file_that_comes_later_and_is_not_like_the_others_is_refused_row_by_row(tmp_path, text, headed, reason):
    rows = read(tmp_path, text.encode(), SCHEMA, headed=headed)
    assert len(rows) == 2
    assert all(row[WHY].startswith(reason) for row in rows)
    assert values(rows, SCHEMA) == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda b: pa.compress(b, "zstd", asbytes=True)])
def test_compressed_by_whatever_name(tmp_path, pack):
    text = pack(b"at,card,merchant,id\nt,c,m,1\n")
    assert values(read(tmp_path, text, SCHEMA), SCHEMA) == [("1", "c", "m", "t")]


def test_a_damaged_file_gives_what_can_be_had_and_says_so(tmp_path):
    whole = gzip.compress(b"".join(b"%d,c,m,t\n" % i for i in range(100_000)))
    rows = read(tmp_path, whole[: len(whole) // 2], SCHEMA)
    assert len(values(rows, SCHEMA)) > 1000
    assert "the file is damaged from here on" in refused(rows)[-1][2]


def test_a_file_that_is_no_text_is_one_refused_row(tmp_path):
    assert [r[2] for r in refused(read(tmp_path, b"PAR1\n\n\n\n", SCHEMA))] == ["the file is parquet, and is read as CSV"]


def test_rows_of_a_file_that_come_from_another_have_their_lines_and_places_there(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "origin_of", lambda path: chunks.Origin("log.csv", 101, 5, 7000))
    (tmp_path / "0.csv").write_bytes(b"id,card,merchant,at\n1,c,m,t\n\n2,c,m,t\n")
    batches = reading.read_file(reading.Reading(SCHEMA, "csv"), str(tmp_path / "0.csv"), 1, 2)
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows[0][TEXT] == "log.csv"
    assert [(row[LINE], row["_high"], row[LOW]) for row in rows[1:]] == [(101, 5, 7000), (103, 5, 7009)]


cell = st.text(st.sampled_from('ab"\n\r, \té\x00|'), max_size=5)


@given(
    st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=8),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_another_writer_wrote_is_read(tmp_path_factory, rows, block, newline, everything):
    """Python's own writer, against ours that reads. A field that is empty and has no quotes is NULL."""
    schema, text = Schema.of(a="STRING", b="STRING", c="STRING"), io.StringIO()
    if not everything:  # a writer that leaves it bare has ended the row
        rows = [tuple(c.replace("\r", "") for c in row) for row in rows]
    writer = csv.writer(text, lineterminator=newline, quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL)
    writer.writerow(["B", "a", "C"])
    writer.writerows((b, a, c) for a, b, c in rows)
    found = read(tmp_path_factory.mktemp("csv"), text.getvalue().encode(), schema, block=block)
    assert refused(found) == []
    assert values(found, schema) == [tuple(c if c or everything else None for c in row) for row in rows]
    lines = text.getvalue().replace("\r\n", "\n").replace("\r", "\n")
    written = [lines.split("\n")[row[LINE] - 1] for row in found]
    assert all(
        row[TEXT].replace("\r\n", "\n").replace("\r", "\n").startswith(line) for row, line in zip(found, written, strict=True)
    )
