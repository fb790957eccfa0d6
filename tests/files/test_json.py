"""JSON files: lines, arrays, objects one behind the other; keys in any case; what cannot be read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader import read, refused

from headrace.files.cuts import FOLDED, LINE, TEXT, WHY
from headrace.plan.schema import Schema

SCHEMA = Schema.of(id="INT", s="STRUCT<Aa: INT, b: ARRAY<STRUCT<Cc: INT>>>", m="MAP<STRING, STRUCT<x: INT>>")
THREE = [{"id": 1, "s": {"Aa": 2}}, {"id": 2, "m": {"k": {"x": 1}}}, {"id": 3, "other": "[{\\"}]
BLOCKS = [1 << 22, 64, 7]


def objects(rows):
    """The objects that Spark is given."""
    return [json.loads(row[FOLDED] or row[TEXT]) for row in rows if row[WHY] is None]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n".join(map(json.dumps, THREE)), [1, 2, 3]),
        ("\r\n\r\n".join(map(json.dumps, THREE)) + "\r\n", [1, 3, 5]),
        ("\ufeff" + "\n".join(f"  {json.dumps(o)}" for o in THREE) + "\n", [1, 2, 3]),
        (json.dumps(THREE), [1, 1, 1]),
        ("[\n" + ",\n".join(map(json.dumps, THREE)) + "\n]\n", [2, 3, 4]),
        (json.dumps(THREE, indent=2), [2, 8, 16]),
        ("\n".join(json.dumps(o, indent=1) for o in THREE), [1, 7, 15]),
        ("".join(map(json.dumps, THREE)), [1, 1, 1]),
    ],
)
def test_dialects(tmp_path, text, lines, block):
    rows = read(tmp_path, text.encode(), SCHEMA, "json", block=block)
    assert refused(rows) == []
    assert objects(rows) == THREE
    assert [row[LINE] for row in rows] == lines


def test_keys_do_not_mind_case_but_those_of_a_map_are_values(tmp_path):
    text = (
        '{"ID": 1, "S": {"AA": 2, "B": [{"CC": 1}, {"cC": 2}], "id": 0}, "M": {"K": {"X": 1}, "k": {"x": 2}}, "Other": {"ID": 5}}'
    )
    (row,) = read(tmp_path, text.encode(), SCHEMA, "json")
    assert objects([row]) == [
        {"id": 1, "s": {"Aa": 2, "b": [{"Cc": 1}, {"Cc": 2}], "id": 0}, "m": {"K": {"x": 1}, "k": {"x": 2}}, "Other": {"ID": 5}}
    ]
    assert row[TEXT] == text  # as it was


def test_the_exact_key_wins(tmp_path):
    (row,) = read(tmp_path, b'{"ID": 1, "id": 2, "Id": 3}', SCHEMA, "json")
    assert row[FOLDED] is None


@pytest.mark.parametrize("block", BLOCKS)
def test_what_cannot_be_read(tmp_path, block):
    lines = [b'{"id": 1}', b'{"id": 2', b"nonsense", b"[1, 2]", b'{"id": "\xff"}', b'"text"', b'{"id": 3}']
    rows = read(tmp_path, b"\n".join(lines), SCHEMA, "json", block=block)
    assert refused(rows) == [
        (3, "nonsense", "it is not a JSON object"),
        (4, "[1, 2]", "it is not a JSON object"),
        (5, '{"id": "\\xff"}', "it is not UTF-8: byte 9 is 0xff"),
        (6, '"text"', "it is not a JSON object"),
    ]
    assert [row[TEXT].strip() for row in rows if row[WHY] is None] == [
        '{"id": 1}',
        '{"id": 2',
        '{"id": 3}',
    ]  # Spark finds the second


def test_an_object_that_nothing_closes_swallows_nothing(tmp_path):
    whole = [json.dumps(o, indent=2) for o in THREE]
    text = "\n".join([whole[0], whole[1].removesuffix("}"), whole[2]])
    rows = read(tmp_path, text.encode(), SCHEMA, "json")
    assert objects(rows) == [THREE[0], THREE[2]]
    assert [(line, why) for line, _, why in refused(rows)] == [(7, "a bracket or quote is never closed")]


plain = st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('a"\\{}[],: \n'), max_size=4)
value = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab"'), inner, max_size=2), max_leaves=5
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["id", "ID", "x", 'q"']), value, max_size=3), min_size=1, max_size=5),
    st.sampled_from([None, 0, 2]), st.booleans(), st.integers(1, 60),
)  # fmt: skip
def test_what_another_writer_wrote_is_read(tmp_path_factory, rows, indent, array, block):
    text = json.dumps(rows, indent=indent) if array else "\n".join(json.dumps(r) for r in rows)
    found = read(tmp_path_factory.mktemp("json"), text.encode(), SCHEMA, "json", block=block)
    assert [row[WHY] for row in found] == [None] * len(rows)
    folded = [{"id" if k == "ID" and "id" not in row else k: v for k, v in row.items()} for row in rows]
    assert objects(found) == folded
