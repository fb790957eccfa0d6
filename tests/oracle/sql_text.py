"""The clauses of a SELECT over streams, told apart by regular expressions, and what stands in them: for `sql_judge`."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

import sqlglot
from policy_brute import Amount
from sqlglot import exp

EPOCH = dt.datetime(1970, 1, 1)
UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6, "DAY": 86_400 * 10**6,
    "WEEK": 604_800 * 10**6, "YEAR": 365 * 86_400 * 10**6,
}  # fmt: skip


class CannotSay(Exception):
    """The judge does not know this part of the language."""


def micros(value: dt.datetime) -> int:
    """Microseconds since 1970; DuckDB's times have no zone."""
    return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)


def duration(text: str) -> int:
    """`1 HOUR 30 MINUTES`."""
    found = re.findall(r"(\d+)\s+([A-Z]+?)S?\b", text.upper())
    return sum(int(n) * UNITS[unit] for n, unit in found)


@dataclass
class Relation:
    """A stream, or a SELECT in brackets, with its window and the name it goes by."""

    source: str
    window: str | None
    alias: str


@dataclass
class Parts:
    """The clauses of a SELECT."""

    columns: str
    stream: str = ""  # ISTREAM, DSTREAM, RSTREAM
    source: str = ""
    window: str | None = None
    where: str = ""
    group: str = ""
    having: str = ""
    kind: str = ""
    on: str = ""
    joined: tuple[Relation, ...] = ()

    @staticmethod
    def of(sql: str) -> Parts:
        """Read one."""
        found = re.fullmatch(
            r"SELECT (?:(?P<stream>[IDR]STREAM) )?(?P<columns>.*?) FROM (?P<source>.*?)(?: WHERE (?P<where>.*?))?"
            r"(?: GROUP BY (?P<group>.*?))?(?: HAVING (?P<having>.*))?",
            hide(sql),
        )
        if not found or re.search(r" OVER \(| WITH \(|SYSTEM|BATCH BY|MATCH_RECOGNIZE", sql):
            raise CannotSay(sql)
        clauses = {k: show(v or "") for k, v in found.groupdict().items()}
        source = clauses.pop("source")
        parts = Parts(**clauses)
        if behind := re.fullmatch(r"(.*?) ?\[(.*)\]", parts.group):
            parts.group, parts.window = behind[1], behind[2]
        parts.group = _meant(parts.group, parts.columns)
        if joined := re.fullmatch(
            r"(?P<left>.*?)(?:,| (?:(?P<kind>LEFT|RIGHT|FULL|INNER|CROSS) )?(?:OUTER )?JOIN) (?P<right>.*?)(?: ON (?P<on>.*))?",
            hide(source),
        ):
            parts.kind, parts.on = joined["kind"] or "INNER", show(joined["on"] or "")
            parts.joined = (_relation(show(joined["left"])), _relation(show(joined["right"])))
            return parts
        relation = _relation(source)
        parts.source = relation.source
        parts.window = parts.window or relation.window
        return parts


def _meant(group: str, columns: str) -> str:
    """GROUP BY may say the name of what is selected."""
    named = {name: what for what, name in re.findall(r"(?:^|, )([^,]*?) AS (\w+)", columns)}
    return ", ".join(named.get(key, key) for key in group.split(", ")) if group else ""


def _relation(text: str) -> Relation:
    found = re.fullmatch(r"(\S+)(?: (\x00\d+\x00))?(?: (?:AS )?(\w+))?", hide(text.strip()))
    if not found:
        raise CannotSay(text)
    source = show(found[1])
    return Relation(source, show(found[2])[1:-1] if found[2] else None, found[3] or source)


_texts: list[str] = []


def hide(sql: str) -> str:
    """With all that stands in brackets, round or square, taken out, so that clauses can be told by their words."""
    out, depth, begin = "", 0, 0
    for i, c in enumerate(sql):
        if c in "([":
            begin = i if depth == 0 else begin
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth == 0:
                _texts.append(sql[begin : i + 1])
                out += f"\0{len(_texts) - 1}\0"
        elif depth == 0:
            out += c
    return out


def show(text: str) -> str:
    """With all that was taken out put back."""
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda found: _texts[int(found[1])], text)
    return text


def amount(text: str) -> Amount:
    """`10 SECONDS`, `10`, `10 ON id`."""
    if found := re.fullmatch(r"(\S+) ON (\w+)", text):
        return Amount("field", float(found[1]) if "." in found[1] else int(found[1]), found[2])
    if re.fullmatch(r"\d+", text):
        return Amount("rows", int(text))
    return Amount("time", duration(text))


def instant(text: str) -> int:
    """The time in a string: "UTC, unless they say otherwise"."""
    return micros(dt.datetime.fromisoformat(text.replace("/", "-")))


def in_order(sql: str) -> str:
    """FIRST and LAST go by the total order."""
    return re.sub(r"\b(FIRST|LAST)\((\w+)\)", r"\1(\2 ORDER BY _n)", sql)


def of_window(sql: str, selected: str = "") -> str:
    """Columns inside an aggregate are those of rows of the window, others those of the event; HAVING knows what is selected."""
    aliases = set(re.findall(r"\bAS (\w+)", selected))
    out = []
    for tree in sqlglot.parse_one(f"SELECT {sql}", read="duckdb").expressions:
        for column in tree.find_all(exp.Column):
            inside = column.find_ancestor(exp.AggFunc, exp.Filter) is not None
            if inside or column.name not in aliases:
                column.set("table", exp.to_identifier("_row" if inside else "_event"))
        for star in list(tree.find_all(exp.Star)):
            if isinstance(star.parent, exp.Count):
                star.replace(exp.column("_n", table="_row"))
        for call in list(tree.find_all(exp.First, exp.Last)):
            ordered = exp.Order(this=call.this.copy(), expressions=[exp.Ordered(this=exp.column("_n", table="_row"))])
            call.set("this", ordered)
        out.append(tree.sql("duckdb"))
    return ", ".join(out)


def distance(text: str) -> str:
    """ "ON a column means the absolute difference"; "columns of the first row are first.column": of tables _one and _first."""
    if re.fullmatch(r"\w+", text):
        text = f"ABS({text} - first.{text})"
    tree = sqlglot.parse_one(re.sub(r"\bfirst\.", "_first.", text), read="duckdb")
    for column in tree.find_all(exp.Column):
        if not column.table:
            column.set("table", exp.to_identifier("_one"))
    return tree.sql("duckdb")


def flat(sql: str, names: dict[str, list[str]]) -> str:
    """Columns of a join as columns of one table: `p.card` is `p__card`, and `place` that of the only side that has one."""
    if not sql:
        return ""
    out = []
    for tree in sqlglot.parse_one(f"SELECT {sql}", read="duckdb").expressions:
        plain = isinstance(tree, exp.Column)
        name = tree.name
        wrapped = exp.Tuple(expressions=[tree])
        for column in list(wrapped.find_all(exp.Column)):
            side = column.table or next((s for s, own in names.items() if column.name in own), "")
            if side:
                column.replace(exp.column(f"{side}__{column.name}"))
        text = wrapped.expressions[0].sql("duckdb")
        out.append(f"{text} AS {name}" if plain else text)
    return ", ".join(out)
