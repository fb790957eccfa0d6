"""A posted event has the values, the time and the verdict that `headrace run` gives the same line of a file."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from values_of_spark import bits, java_of, python_value

from headrace.files.cuts import FILE, LOW
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.plan.time import NO_PROMISE
from headrace.serve.events import Event, Punctuation, Rejected, reader
from headrace.spark.sources.files import read_files
from headrace.spark.sources.prepare import prepare
from headrace.spark.sources.rejects import MALFORMED, reason_of

SCHEMA = Schema.of(
    id="BIGINT",
    card="STRING",
    amount="DECIMAL(12, 3)",
    x="DOUBLE",
    f="FLOAT",
    t="TINYINT",
    h="SMALLINT",
    n="INT",
    ok="BOOLEAN",
    day="DATE",
    at="TIMESTAMP",
    local="TIMESTAMP_NTZ",
    raw="BINARY",
    tags="ARRAY<STRING>",
    ints="ARRAY<INT>",
    place="STRUCT<lat: DOUBLE, lon: DOUBLE, inner: STRUCT<k: INT>>",
    many="ARRAY<STRUCT<a: INT, b: STRING>>",
    m="MAP<STRING, INT>",
    ts="BIGINT",
    upto="BIGINT",
)
NUMBERS = (
    "0",
    "-0",
    "1",
    "-1",
    "12",
    "1.5",
    "-2.50",
    "1e3",
    "1E-2",
    "127",
    "128",
    "200",
    "255",
    "256",
    "-129",
    "32768",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1e400",
    "-1e400",
    "0.1",
    "123456789.1235",
    "16777217",
    "33554435.0",
    "3.4028236e38",
    "1e-46",
    "100000000000000000000000",
    "0.30000001192092896",
    "1.17549435e-38",
)
STRINGS = (
    '""',
    '"a"',
    '"12"',
    '" 12 "',
    '"1.5"',
    '"1,234.5"',
    '"NaN"',
    '"Infinity"',
    '"-Infinity"',
    '"+INF"',
    '"-INF"',
    '"INF"',
    '"true"',
    '"2024-02-29"',
    '"2024-2-9"',
    '"2024-02-30"',
    '"2024-01-31 12:30:00"',
    '"2024-01-31T12:30:00.123456Z"',
    '"2024-01-31 12:30:00+02:00"',
    '"2024-01-31 12:30:00 +2:00"',
    '"12:30"',
    '" 9:30"',
    '"2024"',
    '"19000"',
    '"-5"',
    '"123"',
    '"YWJj"',
    '"YW Jj"',
    '"YWJ"',
    '"\\u00e9\\n\\"x"',
    '"ß😀"',
    '"0000-05-05"',
    '"2024-01-31 12:30:61"',
    '"epoch"',
    '"now"',
    '"12345678"',
    '"1e3"',
    '"2024-01-31 12:30"',
    '"2024-01-31 12"',
    '"10000-01-01"',
)
OTHERS = (
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[1, 2]",
    '["a", null, 5, {"x": 1.50}]',
    '[1, "a"]',
    "[1.5]",
    "[null]",
    '{"lat": 1, "LON": 2.5}',
    '{"lat": "x"}',
    '{"inner": {"K": 5}}',
    '{"inner": {"k": "x"}}',
    '{"inner": 5}',
    '[{"a": 1, "B": "x"}, null]',
    '[{"a": "x"}]',
    '[{"a": 1}, 5]',
    '{"k": 1, "K": 2}',
    '{"k": null}',
    '{"k": "x"}',
    '{ "a" : [ 1 , 2 ] }',
)
FITTING: dict[str, tuple[str, ...]] = {
    "id": ("1", "-9223372036854775808"),
    "card": ('"a"', '"ß"', "12.50", "true"),
    "amount": ("1.5", "2", '"3.25"', "0.0005"),
    "x": ("1.5", "-0.0", "1e10", '"NaN"'),
    "f": ("0.1", "16777217"),
    "t": ("1", "-128"),
    "h": ("300",),
    "n": ("5",),
    "ok": ("true", "false"),
    "day": ('"2024-02-29"', '"123"'),
    "at": ('"2024-01-31 12:30:00Z"', '"2024-05"'),
    "local": ('"2024-01-31 12:30:00"',),
    "raw": ('"YWJj"',),
    "tags": ('["a", null]', "[]"),
    "ints": ("[1, null]",),
    "place": ('{"lat": 1, "lon": 2.5}',),
    "many": ('[{"a": 1, "b": "x"}]',),
    "m": ('{"k": 1}',),
    "ts": ("1000", "1700000000000", "0", "-62135596800000", "253402300800000"),
    "upto": ("null", "null", "5", "9223372036854775807"),
}
BROKEN = (
    "{",
    '{"id": 1',
    "[1, 2]",
    '"text"',
    "12",
    "nothing",
    '{"id": 01}',
    '{"id": 1,}',
    '{"id" 1}',
    '{"a": tru}',
    '{"card": "\x01"}',
    "{}",
    "{} ",
    '  {"ts": 5}',
    '{"card": "\\q"}',
    '{"id": .5}',
    '{"id": +1}',
    '{"x": 1e}',
)


def line(rng: random.Random) -> str:
    """An object with some of the columns, most of which fit."""
    if rng.random() < 0.02:
        return rng.choice(BROKEN)
    fields = []
    for name in rng.sample(SCHEMA.names, rng.randint(1, 8)):
        value = rng.choice(FITTING[name]) if rng.random() < 0.85 else rng.choice((*NUMBERS, *STRINGS, *OTHERS))
        key = name if rng.random() < 0.9 else rng.choice((name.upper(), name.capitalize()))
        fields.append(f'"{key}": {value}')
    if rng.random() < 0.8 and not any(f.lower().startswith('"ts"') for f in fields):
        fields.append(f'"ts": {rng.choice(FITTING["ts"])}')
    if rng.random() < 0.1:
        fields.append('"unknown": [1, {"a": "b"}]')
    rng.shuffle(fields)
    return "{" + ", ".join(fields) + "}"


def each_alone() -> list[str]:
    """Every value in every column."""
    return [f'{{"ts": 5, "{name}": {v}}}' for name in SCHEMA.names if name != "ts" for v in (*NUMBERS, *STRINGS, *OTHERS)]


def by_spark(spark: Any, stream: Stream) -> list[Any]:
    """What a run makes of every line."""
    source = stream.source
    assert isinstance(source, FileSource)
    rows = read_files(spark, stream, source, streaming=False, options={})
    prepared = prepare(spark, stream, (), None, streaming=False, options={})
    told = {r[LOW]: r for r in prepared.frame.toArrow().to_pylist() if not _names_the_file(r, prepared.words.texts)}
    table = rows.frame.select(*(f"`{n}`" for n in stream.schema.names), LOW, "__why").toArrow()
    values = {}
    for number in range(table.num_rows):
        if table.column("__why")[number].as_py() != FILE:
            values[table.column(LOW)[number].as_py()] = tuple(python_value(table.column(n)[number]) for n in stream.schema.names)
    found: list[Any] = []
    for place, about in sorted(told.items()):
        if about["_bad"] is not None:
            found.append(Rejected(reason_of(json.loads(about["_bad"]), prepared.words)))
        elif about.get("_promise", NO_PROMISE) != NO_PROMISE:
            found.append(Punctuation(about["_promise"]))
        else:
            found.append(Event(values[place], about["_ts"]))
    return found


def _names_the_file(about: dict[str, Any], texts: tuple[str, ...]) -> bool:
    told = json.loads(about["_bad"]) if about["_bad"] else {}
    return told.get("f") == FILE and texts[told["w"]] == MALFORMED


def stand_in(found: Any) -> Any:
    return ("event", *map(bits, found.values), found.time) if isinstance(found, Event) else found


@pytest.mark.parametrize(
    ("timestamp", "punctuation"), [("ts", None), ("ts", "upto"), ("CAST(x AS BIGINT) * t + ts", None), ("at", "day")]
)
def test_a_line_means_the_same_posted_and_read_from_a_file(spark, tmp_path, timestamp, punctuation):
    rng = random.Random(os.environ.get("HEADRACE_SEED", "11"))
    count = 20_000 if os.environ.get("HEADRACE_THROUGHOUT") else 1_000
    lines = [*(each_alone() if (timestamp, punctuation) == ("ts", None) else []), *BROKEN, *(line(rng) for _ in range(count))]
    path = tmp_path / "lines.json"
    path.write_text('{"ts": 1}\n' + "\n".join(lines) + "\n", encoding="utf-8")
    upto = None if punctuation is None else Expr.of(punctuation)
    stream = Stream("s", FileSource(str(path), "json"), SCHEMA, Expr.of(timestamp), punctuation=upto)
    read, want = reader(stream, java=java_of(spark)), by_spark(spark, stream)
    got = [read(text.encode(), 0) for text in ('{"ts": 1}', *lines)]
    assert len(got) == len(want)
    different = [(t, g, w) for t, g, w in zip(('{"ts": 1}', *lines), got, want, strict=True) if stand_in(g) != stand_in(w)]
    assert different == [], f"{len(different)} differ:\n" + "\n".join(map(repr, different[:40]))
    kinds = [sum(isinstance(g, kind) for g in got) for kind in (Event, Rejected, Punctuation)]
    assert min(kinds[: 2 + (punctuation is not None)]) > len(got) / 120
