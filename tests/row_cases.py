"""Random expressions over one row: every function and operator that is offered, over values that try it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from ctypes import c_float
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headrace.plan.schema import Field, Schema

NAN, INF = math.nan, math.inf
single = lambda x: c_float(x).value  # noqa: E731
DAY = 86_400_000_000
TEXTS = (
    "",
    "abc",
    "ABC",
    " a b ",
    "12",
    " 12 ",
    "-7",
    "+3",
    "1.5",
    "1e3",
    "-0.0",
    "NaN",
    "-Infinity",
    "inf",
    "true",
    "N",
    "2024-02-29",
    "2024-1-5",
    "2024-01-31 12:30:00",
    "2024-01-31T12:30:00.5+02:00",
    "2023-02-29",
    "0000-01-01",
    "99999-01-01",
    "Straße",
    "ÀÉÎ",
    "😀x",
    "İi",
    "ΑΣ",
    "a,b,c",
    "a%b_c",
    "\\",
    "it's",
    "\t7\n",
    "9223372036854775808",
    "-2147483649",
    "1_000",
    "0x1p3",
    "1d",
    "ǆ",
    "٣",
    "a\r\nb",
    "x.y|z",
    "aaa",
    "12345678901234567890.5",
    "2024-06-30 23:59:59.9999999 GMT",
    "2024",
    "2024-05",
    "+2024-05-06",
    "1.17549435e-38",
    "16777217",
    "0.1",
    "1e400",
    "1e-400",
    "127",
    "128",
    "1.",
    ".5",
    "2024-01-01 24:00:00",
    "2024-01-01 1:2:3",
)
# name, type, values that columns of it may have besides NULL
COLUMNS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("b", "BOOLEAN", (True, False)),
    ("c", "BOOLEAN", (True, False)),
    ("t", "TINYINT", (0, 1, -1, 7, 127, -128)),
    ("h", "SMALLINT", (0, 1, -1, 300, 32767, -32768)),
    ("i", "INT", (0, 1, -1, 2, 7, -7, 12, 1000, 2**31 - 1, -(2**31))),
    ("j", "INT", (0, 1, 2, 3, -1, -2, 5, 10, 2**31 - 1)),
    ("l", "BIGINT", (0, 1, -1, 7, -5, 10**12, 2**53 + 1, 2**63 - 1, -(2**63), 2**31)),
    ("k", "BIGINT", (0, 1, -1, 2, 3, 10, -(10**6))),
    ("f", "FLOAT", (0.0, -0.0, 1.5, -2.5, NAN, INF, -INF, single(3.4e38), single(1.4e-45), single(0.1), 16777216.0, 127.5, 1e10)),
    (
        "x",
        "DOUBLE",
        (
            0.0,
            -0.0,
            1.5,
            -2.5,
            0.1,
            NAN,
            INF,
            -INF,
            1e308,
            5e-324,
            2.5,
            0.005,
            1.005,
            2.0**53,
            2.0**63,
            -9.3e18,
            1e23,
            2e-3,
            123456.789,
            2.0**-44,
            8.41e21,
            5.0e-5,
            2e23,
            1.0e7,
            9999999.0,
            0.5,
            1.0,
            -1.0,
            709.5,
            1e-3,
        ),
    ),
    ("y", "DOUBLE", (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, 1 / 3, 10.0, -7.25, 1e-10, 100.25, NAN)),
    (
        "d",
        "DECIMAL(10, 2)",
        tuple(map(Decimal, ("0.00", "0.05", "-0.05", "12.34", "99999999.99", "-99999999.99", "0.50", "2.50"))),
    ),
    (
        "e",
        "DECIMAL(38, 10)",
        tuple(
            map(
                Decimal,
                (
                    "0E-10",
                    "1.5000000000",
                    "9999999999999999999999999999.9999999999",
                    "-1234567890123456789.0123456789",
                    "0.0000000001",
                    "2.5000000000",
                ),
            )
        ),
    ),
    (
        "g",
        "DECIMAL(20, 5)",
        tuple(map(Decimal, ("0.00000", "3.14159", "-2.50000", "999999999999999.99999", "0.00001", "7.00000"))),
    ),
    (
        "w",
        "DECIMAL(38, 0)",
        tuple(map(Decimal, ("0", "1", "-3", "99999999999999999999999999999999999999", "12345678901234567890"))),
    ),
    ("s", "STRING", TEXTS),
    ("u", "STRING", ("", "a", "b", "abc", ",", " ", "Σ", "ß", "x", "12", "%", "aa")),
    ("z", "BINARY", (b"", b"abc", "é".encode(), b"12")),
    ("day", "DATE", (0, -1, 19782, 2932896, -719162, 19000, -141428, 100_000_000, 11016)),
    ("eve", "DATE", (0, 19782, 19783, -365, 20000)),
    (
        "at",
        "TIMESTAMP",
        (0, -1, 1706704200500000, 253402300799999999, -62135596800000000, 1709164800000000, -86400000001, 4 * 10**15),
    ),
    ("dt", "TIMESTAMP", (0, 1, -1706704200500000, 1719791999999999, 1719792000000000)),
    ("n", "TIMESTAMP_NTZ", (0, -1, 1706704200500000)),
    ("v", "INTERVAL DAY TO SECOND", (0, 1, -1, DAY, -90061000001, 10**15, 2**62)),
    ("xs", "ARRAY<INT>", ([], [1, 2, 3], [None], [1, None, -5], [2**31 - 1])),
    ("ys", "ARRAY<DOUBLE>", ([], [0.5, NAN], [-0.0, None])),
    ("zs", "ARRAY<STRING>", ([], ["a", "b"], ["a", None], [""])),
    ("m", "MAP<STRING, INT>", ({}, {"a": 1, "b": None}, {"": 3, "x": 4})),
    ("p", "STRUCT<a: INT, q: STRING>", ((1, "x"), (None, None), (-5, "abc"))),
)
SCHEMA = Schema(tuple(Field(name, kind) for name, kind, _ in COLUMNS))
# Letters of types, with what may stand for a value of each.
LEAVES: dict[str, tuple[str, ...]] = {
    "B": ("b", "c", "TRUE", "FALSE", "b", "c", "(i > 0)", "(s LIKE 'a%')"),
    "T": ("t",),
    "H": ("h",),
    "I": ("i", "j", "3", "-1", "0", "12"),
    "L": ("l", "k", "l", "k", "3000000000"),
    "F": ("f",),
    "X": ("x", "y", "x", "y", "0.5D", "1e10"),
    "D": ("d", "e", "g", "w", "1.5", "0.001", "-2.55", "100.0"),
    "S": ("s", "u", "s", "u", "'abc'", "' x '", "'12'", "''", "'ß'"),
    "Z": ("z",),
    "Y": ("day", "eve", "DATE '2024-02-29'"),
    "A": ("at", "dt", "TIMESTAMP '2024-01-31 12:30:00.25'"),
    "N": ("n",),
    "V": ("v", "INTERVAL '5' SECOND", "INTERVAL '1 02:03:04' DAY TO SECOND", "INTERVAL '36' HOUR", "INTERVAL '-2' DAY"),
    "J": ("xs",),
    "K": ("ys",),
    "Q": ("zs",),
    "M": ("m",),
    "P": ("p",),
}
NUMBER = "THILFXD"
ANY = "BTHILFXDSYAV"


@dataclass(frozen=True)
class Template:
    """How to write a call of something: a letter in braces is an argument of that type, one of several letters of any of them."""

    name: str
    gives: str
    text: str


def _several(gives: str, texts: str, *names: str) -> list[Template]:
    return [Template(name, gives, texts.replace("@", name)) for name in names]


_ARITHMETIC = [
    Template(sign, kind, f"{{{kind}}} {sign} {{{other}}}")
    for sign in ("+", "-", "*", "/", "%")
    for kind, other in (
        *((k, k) for k in NUMBER),
        ("I", "L"),
        ("D", "I"),
        ("L", "D"),
        ("X", "D"),
        ("F", "I"),
        ("T", "H"),
        ("D", "D"),
    )
]
_COMPARED = [
    Template(sign, "B", f"{{{kind}}} {sign} {{{other}}}")
    for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    for kind, other in (
        *((k, k) for k in ANY),
        ("I", "L"),
        ("D", "I"),
        ("L", "D"),
        ("X", "D"),
        ("F", "X"),
        ("F", "L"),
        ("Y", "A"),
        ("A", "N"),
        ("D", "D"),
        ("Z", "Z"),
    )
]
_CASTS = [
    Template("CAST", gives, f"CAST({{{kind}}} AS {name})")
    for gives, name, kinds in (
        ("B", "BOOLEAN", "THILFXDSB"),
        ("T", "TINYINT", "BTHILFXSA"),
        ("H", "SMALLINT", "BTHILFXSA"),
        ("I", "INT", "BTHILFXSA"),
        ("L", "BIGINT", "BTHILFXDSA"),
        ("F", "FLOAT", "BTHILFXDSA"),
        ("X", "DOUBLE", "BTHILFXDSA"),
        ("D", "DECIMAL(10, 2)", "BTHILFXDSA"),
        ("D", "DECIMAL(38, 20)", "BTHILFXDS"),
        ("D", "DECIMAL(3, 3)", "BTIXDS"),
        ("S", "STRING", "BTHILFXDSZYAN"),
        ("Y", "DATE", "SYAN"),
        ("A", "TIMESTAMP", "SYANTHILFX"),
        ("N", "TIMESTAMP_NTZ", "SYA"),
        ("Z", "BINARY", "S"),
    )
    for kind in kinds
]
# Parts of CONCAT do not fail: where plans are interpreted, Spark looks at all of them, and compiled only up to the first NULL.
TEMPLATES: list[Template] = [
    *_ARITHMETIC,
    *_COMPARED,
    *_CASTS,
    *(
        Template("TRY_CAST", t.gives, f"TRY_{t.text}")
        for t in _CASTS
        if t.text.startswith("CAST({S}") or t.text.startswith("CAST({X}")
    ),
    Template("CAST", "S", "CAST(v AS STRING)"),
    Template("CAST", "Q", "CAST({J} AS ARRAY<STRING>)"),
    Template("CAST", "K", "CAST({J} AS ARRAY<DOUBLE>)"),
    Template("DIV", "L", "{TIL} DIV {TIL}"),
    Template("DIV", "L", "{V} DIV {V}"),
    Template("AND", "B", "{B} AND {B}"),
    Template("OR", "B", "{B} OR {B}"),
    Template("NOT", "B", "NOT {B}"),
    Template("IS NULL", "B", "{BILXDSYAV} IS NULL"),
    Template("IS TRUE", "B", "{B} IS TRUE"),
    Template("IS FALSE", "B", "{B} IS NOT FALSE"),
    Template("IN", "B", "{I} IN (1, {I}, {I})"),
    Template("IN", "B", "{S} IN ('abc', {S})"),
    Template("IN", "B", "{X} IN ({X}, {X}, 0.5D)"),
    Template("IN", "B", "{D} IN ({D}, 2)"),
    Template("BETWEEN", "B", "{I} BETWEEN {I} AND {I}"),
    Template("BETWEEN", "B", "{X} NOT BETWEEN {X} AND {D}"),
    Template("BETWEEN", "B", "{S} BETWEEN {S} AND {S}"),
    Template("LIKE", "B", "{S} LIKE 'a%'"),
    Template("LIKE", "B", "{S} LIKE '%_b%'"),
    Template("LIKE", "B", "{S} LIKE {S}"),
    Template("LIKE", "B", "{S} LIKE 'a!%b%' ESCAPE '!'"),
    Template("LIKE", "B", "{S} LIKE '%\\\\%b%'"),
    Template("ILIKE", "B", "{S} ILIKE 'A%'"),
    Template("RLIKE", "B", "{S} RLIKE '^[a-c]+$'"),
    Template("RLIKE", "B", "{S} RLIKE 'a.b|[0-9]{{2,}}'"),
    Template("RLIKE", "B", "{S} RLIKE '(ab?c)+|\\\\d+\\\\.\\\\d$'"),
    *(Template(s, "ITHL", f"{{{k}}} {s} {{{k}}}") for s in "&|^" for k in "ITL"),
    Template("~", "I", "~{I}"),
    Template("~", "L", "~{L}"),
    Template("||", "S", "s || u || l"),
    Template("CASE", "I", "CASE WHEN {B} THEN {I} WHEN {B} THEN {T} END"),
    Template("CASE", "S", "CASE {I} WHEN 1 THEN {S} ELSE 'z' END"),
    Template("CASE", "X", "CASE WHEN {B} THEN {X} ELSE {I} END"),
    Template("CASE", "D", "CASE WHEN {B} THEN {D} ELSE {D} END"),
    *(Template("-", k, f"-({{{k}}})") for k in "THILFXDV"),
    *_several("I", "TO_DATE({SYA})", "TO_DATE"),
    Template("+", "A", "{A} + {V}"),
    Template("+", "A", "{V} + {A}"),
    Template("-", "A", "{A} - {V}"),
    Template("+", "N", "{N} + {V}"),
    Template("+", "A", "{Y} + {V}"),
    Template("-", "Y", "{Y} - INTERVAL '3' DAY"),
    Template("+", "Y", "{Y} + {I}"),
    Template("+", "Y", "{I} + {Y}"),
    Template("-", "Y", "{Y} - {T}"),
    Template("-", "V", "{A} - {A}"),
    Template("-", "V", "{Y} - {Y}"),
    Template("-", "V", "{A} - {Y}"),
    Template("+", "V", "{V} + {V}"),
    Template("-", "V", "{V} - {V}"),
    Template("*", "V", "{V} * {IL}"),
    Template("*", "V", "{X} * {V}"),
    Template("/", "V", "{V} / {IL}"),
    Template("/", "V", "{V} / {X}"),
    Template("[]", "I", "{J}[{I}]"),
    Template("[]", "I", "{M}[{S}]"),
    Template(".", "I", "p.a"),
    Template(".", "S", "p.q"),
    Template("TO_DATE", "Y", "TO_DATE({SYA})"),
    Template("TO_TIMESTAMP", "A", "TO_TIMESTAMP({SYA})"),
    Template("TRIM", "S", "TRIM({S})"),
    Template("TRIM", "S", "TRIM(BOTH {S} FROM {S})"),
    Template("TRIM", "S", "TRIM(LEADING 'a' FROM {S})"),
    Template("LTRIM", "S", "LTRIM({S})"),
    Template("RTRIM", "S", "RTRIM({S})"),
    *(
        Template("EXTRACT", "I", f"EXTRACT({f} FROM {{YA}})")
        for f in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "HOUR", "MINUTE")
    ),
    Template("EXTRACT", "D", "EXTRACT(SECOND FROM {A})"),
    *(
        t
        for n in ("coalesce", "nvl", "ifnull")
        for t in (
            Template(n, "I", f"{n}({{I}}, {{T}})"),
            Template(n, "S", f"{n}({{S}}, {{S}})"),
            Template(n, "D", f"{n}({{D}}, {{D}})"),
            Template(n, "X", f"{n}({{L}}, {{X}})"),
        )
    ),
    Template("if", "I", "if({B}, {I}, {I})"),
    Template("if", "L", "if({B}, {I}, {L})"),
    Template("nullif", "I", "nullif({I}, {L})"),
    Template("nullif", "X", "nullif({X}, {X})"),
    Template("nvl2", "S", "nvl2({I}, {S}, {S})"),
    *(Template(n, k, f"{n}({{{k}}}, {{{k}}}, {{{k}}})") for n in ("greatest", "least") for k in "ILXFDSYAV"),
    Template("isnull", "B", "isnull({S})"),
    Template("isnotnull", "B", "isnotnull({X})"),
    Template("isnan", "B", "isnan({XF})"),
    *(Template("abs", k, f"abs({{{k}}})") for k in "THILFXDV"),
    *(Template(n, "X", f"{n}({{ILXDV}})") for n in ("sign", "signum")),
    *(Template("pmod", k, f"pmod({{{k}}}, {{{k}}})") for k in "THILXD"),
    *(Template(n, "LD", f"{n}({{ILXDFT}})") for n in ("ceil", "ceiling", "floor")),
    *(
        Template(n, k, f"{n}({{{k}}}{more})")
        for n in ("round", "bround")
        for k in "ILXFT"
        for more in ("", ", 2", ", -1", ", -9")
    ),
    *(Template(n, "D", f"{n}({k}{more})") for n in ("round", "bround") for k in "dg" for more in ("", ", 1", ", 4", ", -2")),
    *(Template(n, "X", f"{n}({{XLID}})") for n in ("sqrt", "exp", "ln", "log10", "asin", "acos", "atan", "radians", "degrees")),
    *(Template(n, "X", f"{n}({{XI}}, {{XI}})") for n in ("log", "power", "pow", "atan2")),
    Template("pi", "X", "pi()"),
    *(Template(n, k, f"{n}({{{k}}}, {{I}})") for n in ("shiftleft", "shiftright", "shiftrightunsigned") for k in "ILT"),
    Template("concat", "S", "concat(s, i, b, u)"),
    Template("concat", "S", "concat(u, d, day, at)"),
    Template("concat_ws", "S", "concat_ws({S}, {S}, {I}, {Q}, {S})"),
    *(Template(n, "I", f"{n}({{S}})") for n in ("length", "char_length", "character_length", "len")),
    Template("length", "I", "length({Z})"),
    *(Template(n, "S", f"{n}({{S}})") for n in ("upper", "ucase", "lower", "lcase")),
    Template("reverse", "S", "reverse({S})"),
    Template("reverse", "J", "reverse({J})"),
    *(Template(n, "S", f"{n}({{S}}, {{I}}, {{I}})") for n in ("substring", "substr")),
    Template("substring", "S", "substring({S}, {I})"),
    *(Template(n, "S", f"{n}({{S}}, {{I}})") for n in ("left", "right")),
    Template("replace", "S", "replace({S}, {S}, {S})"),
    Template("replace", "S", "replace({S}, 'a')"),
    Template("instr", "I", "instr({S}, {S})"),
    *(Template(n, "I", f"{n}({{S}}, {{S}})") for n in ("locate", "position")),
    Template("locate", "I", "locate({S}, {S}, {I})"),
    *(Template(n, "B", f"{n}({{S}}, {{S}})") for n in ("startswith", "endswith", "contains")),
    Template("split", "Q", "split({S}, ',')"),
    Template("split", "Q", "split({S}, '\\\\|')"),
    Template("split", "Q", "split({S}, 'a', 2)"),
    Template("split", "Q", "split({S}, '[.]')"),
    *(Template(n, "S", f"{n}({{S}}, j % 50, {{S}})") for n in ("lpad", "rpad")),
    Template("lpad", "S", "lpad({S}, t)"),
    Template("rpad", "S", "rpad({S}, 7)"),
    Template("repeat", "S", "repeat({S}, t)"),
    Template("translate", "S", "translate({S}, {S}, {S})"),
    Template("substring_index", "S", "substring_index({S}, {S}, {I})"),
    Template("split_part", "S", "split_part({S}, {S}, {I})"),
    Template("ascii", "I", "ascii({S})"),
    Template("btrim", "S", "btrim({S}, {S})"),
    *(Template(n, "S", f"{n}({{S}})") for n in ("md5", "sha", "sha1")),
    Template("sha2", "S", "sha2({S}, 256)"),
    Template("crc32", "L", "crc32({S})"),
    *(
        Template(n, "I", f"{n}({{YAN}})")
        for n in (
            "year",
            "quarter",
            "month",
            "day",
            "dayofmonth",
            "dayofweek",
            "weekday",
            "dayofyear",
            "weekofyear",
            "hour",
            "minute",
            "second",
        )
    ),
    Template("last_day", "Y", "last_day({Y})"),
    Template("add_months", "Y", "add_months({Y}, {I})"),
    Template("add_months", "Y", "add_months({Y}, t)"),
    *(Template(n, "Y", f"{n}({{Y}}, {{I}})") for n in ("date_add", "dateadd", "date_sub")),
    *(Template(n, "I", f"{n}({{Y}}, {{YA}})") for n in ("datediff", "date_diff")),
    Template("date_from_unix_date", "Y", "date_from_unix_date({I})"),
    Template("make_date", "Y", "make_date(i, j, t)"),
    Template("make_date", "Y", "make_date(2024, 2, j)"),
    Template("next_day", "Y", "next_day({Y}, 'TU')"),
    *(
        Template("date_trunc", "A", f"date_trunc('{u}', {{AY}})")
        for u in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "MM")
    ),
    *(Template("trunc", "Y", f"trunc({{YA}}, '{u}')") for u in ("YEAR", "QUARTER", "MM", "WEEK")),
    Template("date_format", "S", "date_format({AY}, 'yyyy-MM-dd HH:mm:ss.SSS')"),
    Template("date_format", "S", "date_format({A}, 'dd/MM/yyyy')"),
    Template("date_format", "S", "date_format({A}, \"yyyy'T'HH\")"),
    *(Template(n, "L", f"{n}({{AN}})") for n in ("unix_micros", "unix_millis", "unix_seconds")),
    *(Template(n, "L", f"{n}({{AY}})") for n in ("unix_timestamp", "to_unix_timestamp")),
    *(Template(n, "A", f"{n}({{LI}})") for n in ("timestamp_micros", "timestamp_millis")),
    Template("timestamp_seconds", "A", "timestamp_seconds({LIXF})"),
    *(Template(n, "I", f"{n}({{JQM}})") for n in ("size", "cardinality")),
    Template("array_contains", "B", "array_contains({J}, {I})"),
    Template("array_contains", "B", "array_contains({K}, {X})"),
    Template("array_contains", "B", "array_contains({Q}, {S})"),
    *(Template(n, "I", f"{n}({{J}}, {{I}})") for n in ("element_at", "try_element_at", "get")),
    Template("element_at", "I", "element_at({M}, {S})"),
    Template("get", "I", "get(xs, 0)"),
    Template("try_element_at", "I", "try_element_at(xs, 1)"),
    Template("[]", "I", "xs[0]"),
    Template("log", "X", "log(2, {X})"),
    Template("log10", "X", "log10({X})"),
    Template("element_at", "S", "element_at({Q}, 1)"),
    Template("array", "J", "array({I}, {I})"),
    Template("array", "K", "array({X})"),
]
GIVING = {letter: [t for t in TEMPLATES if t.gives == letter] for letter in LEAVES}


def written(rng: random.Random, template: Template, depth: int) -> str:
    """An instance of a template, with arguments that are columns, literals, or instances of others."""
    out, at, text = "", 0, template.text
    while at < len(text):
        if text.startswith("{{", at) or text.startswith("}}", at):
            out, at = out + text[at], at + 2
        elif text[at] == "{":
            end = text.index("}", at)
            out, at = out + argument(rng, rng.choice(text[at + 1 : end]), depth), end + 1
        else:
            out, at = out + text[at], at + 1
    return out


def argument(rng: random.Random, letter: str, depth: int) -> str:
    if depth > 0 and GIVING[letter] and rng.random() < 0.35:
        return f"({written(rng, rng.choice(GIVING[letter]), depth - 1)})"
    if depth > 0 and rng.random() < 0.03:
        return "NULL"
    return rng.choice(LEAVES[letter])


def expressions(rng: random.Random, each: float, depth: int = 2) -> Iterator[tuple[str, str]]:
    """The name of what stands outermost, and an expression: each template by itself, and so many times with others inside."""
    for template in TEMPLATES:
        yield template.name, written(rng, template, 0)
        for _ in range(int(each + rng.random())):
            yield template.name, written(rng, template, depth)


def row(rng: random.Random, nulls: float = 0.06) -> tuple[Any, ...]:
    """A row with a value of every column."""
    return tuple(None if rng.random() < nulls else _value(rng, name, values) for name, _, values in COLUMNS)


def _value(rng: random.Random, name: str, values: tuple[Any, ...]) -> Any:
    """Mostly one that is known to be of interest; now and then any."""
    if rng.random() < 0.75:
        return rng.choice(values)
    match name:
        case "i":
            return rng.randint(-100, 100)
        case "l":
            return rng.getrandbits(64) - 2**63
        case "x" | "y":
            return rng.choice(
                (rng.uniform(-1, 1), rng.gauss(0, 1e3), rng.lognormvariate(0, 60), round(rng.uniform(-1e4, 1e4), 2))
            )
        case "f":
            return single(rng.lognormvariate(0, 20))
        case "d":
            return Decimal(rng.randint(-(10**6), 10**6)).scaleb(-2)
        case "g":
            return Decimal(rng.randint(-(10**8), 10**8)).scaleb(-5)
        case "day" | "eve":
            return rng.randint(-(10**6), 10**6)
        case "at" | "dt":
            return rng.randint(-(10**16), 2 * 10**17)
        case "s" | "u":
            return "".join(rng.choice("ab ,.%_09ßÉ😀") for _ in range(rng.randint(0, 6)))
    return rng.choice(values)
