"""A part of the language, answered by DuckDB over the sets of `policy_brute` and `join_brute`: to judge the oracle.

What DuckDB can say, it says: columns, aggregates, WHERE, GROUP BY, HAVING, conditions of joins. Which rows are in a window when
it is looked at, and which rows meet, comes from the two brute forces. Nothing of `headrace` is imported: the script is read anew.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
from join_brute import BEFORE_ALL, Side, pairs
from policy_brute import Amount, Look, Row, Spec, looks
from sql_text import CannotSay, Parts, Relation, amount, distance, duration, flat, in_order, instant, micros, of_window

TYPES = {"STRING": "VARCHAR"}
OF_EVENTS = ("range", "rows", "unbounded", "now")


@dataclass(frozen=True)
class Told:
    """A row of an answer: its time, what lets it be told (`row`, `clock` or `end`), its values."""

    at: int
    by: str
    row: tuple[Any, ...]


@dataclass
class Table:
    """The rows of a stream or of a result, in the total order, with the names and DuckDB's types of their columns."""

    names: list[str]
    types: list[str]
    rows: list[Row] = field(default_factory=list)
    by: list[str] = field(default_factory=list)
    static: bool = False

    def told(self) -> list[Told]:
        return [Told(r.t, by, tuple(r.values[n] for n in self.names)) for r, by in zip(self.rows, self.by, strict=True)]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all: to open one takes longer than to ask it."""
    return duckdb.connect(config={"threads": 1})


class Judge:
    """Answers the queries of a script over the input of its streams, all of it, as it is at the end."""

    def __init__(self, sql: str, inputs: dict[str, Sequence[Sequence[Any]]]) -> None:
        """`inputs`: rows of every stream in the order of arrival, the columns as declared."""
        self.db = _database()
        self.tables: dict[str, Table] = {}
        self.answers: dict[str, list[Told]] = {}
        self.unsaid: dict[str, str] = {}  # queries that the judge cannot say
        text = re.sub(r"--[^\n]*", "", sql)
        text = re.sub(r"(?<!BY )\bat\b(?! TIMESTAMP)", '"at"', text)  # a word of DuckDB's own
        for number, statement in enumerate(s.strip() for s in re.split(r";(?=\s*(?:[A-Z]|$))", text) if s.strip()):
            self._statement(" ".join(statement.split()), number, inputs)

    def _statement(self, sql: str, number: int, inputs: dict[str, Sequence[Sequence[Any]]]) -> None:
        if found := re.fullmatch(r"CREATE (STREAM|TABLE) (\w+) \((.*)\) SOURCE .*", sql):
            self.tables[found[2]] = self._source(found[1] == "TABLE", found[3], sql, inputs.get(found[2], ()))
        elif found := re.fullmatch(r"CREATE STREAM (\w+) AS (SELECT .*)", sql):
            self.tables[found[1]] = self._select(found[2])
        elif found := re.fullmatch(r"(SELECT .*?)(?: EMIT (?:CHANGES|FINAL(?: IN ORDER)?))?(?: INTO (\w+))?", sql):
            name = found[2] or f"query{number}"
            try:
                self.tables[name] = self._select(found[1])
                self.answers[name] = self.tables[name].told()
            except CannotSay as error:
                self.unsaid[name] = str(error)
        else:
            raise CannotSay(sql)

    def _source(self, static: bool, columns: str, sql: str, rows: Sequence[Sequence[Any]]) -> Table:
        parts = [c.split(None, 1) for c in re.split(r",\s*(?![^(]*\))", columns)]
        names = [name for name, _ in parts]
        if (not static and not re.search(r"TIMESTAMP BY at\b", sql)) or re.search(
            r"UNIQUE|KEEP|PUNCTUATED|AHEAD|IDLE|END AFTER", sql
        ):
            raise CannotSay(sql)
        values = [{n: _naive(v) for n, v in zip(names, row, strict=True)} for row in rows]
        times = [BEFORE_ALL if static else micros(v["at"]) for v in values]
        delay = re.search(r"DELAY (\d+)( \w+)?", sql)
        bound = duration(delay[0]) if delay else None
        # "A row with a time before the frontier", the largest time seen less the DELAY, "is late. It is in no window."
        admitted = [i for i, t in enumerate(times) if bound is None or t >= max(times[: i + 1]) - bound]
        order = sorted(admitted, key=lambda i: (times[i], i))
        kinds = [TYPES.get(kind.strip().upper(), kind.strip()) for _, kind in parts]
        return Table(names, kinds, [Row(times[i], n, values[i]) for n, i in enumerate(order)], static=static)

    # --- queries

    def _select(self, sql: str) -> Table:
        parts = Parts.of(sql)
        if parts.joined:
            table, parts = self._joined(parts)
        else:
            table = self._relation(parts.source)
        if parts.window is None or (parts.stream and not re.search(r"\w\(", parts.columns)):
            return self._rows(parts, table)
        spec = self._window(parts.window, table)
        group = self._function(table, parts.group) if parts.group else (lambda row: ())
        found = looks(spec, table.rows, group)
        if spec.kind in OF_EVENTS:
            return self._of_events(parts, table, found, group)
        answer = self._of_looks(parts, table, found)
        return _compared(answer, parts.stream, spec.every.n) if parts.stream in ("ISTREAM", "DSTREAM") else answer

    def _relation(self, text: str) -> Table:
        if text.startswith("("):
            return self._select(text[1:-1].strip())
        if text not in self.tables:
            raise CannotSay(text)
        return self.tables[text]

    def _rows(self, parts: Parts, table: Table) -> Table:
        """Without an aggregate: rows one by one, or by DSTREAM when they leave their window."""
        if parts.group or parts.having:
            raise CannotSay("GROUP BY without a window")
        size, by, inside = 0, "row", ""
        if parts.window:
            spec = self._window(parts.window, table)
            if spec.kind != "range":
                raise CannotSay(parts.window)
            table = Table(table.names, table.types, [r for r in table.rows if spec.where(r) is True])
            if parts.stream == "DSTREAM":
                size, by = spec.size.n + spec.lag, "clock"
        elif table.by and set(table.by) != {"row"}:
            inside = "JOIN _how USING (_n)"
            self._fill("_how", ("_n BIGINT", "_by VARCHAR"), list(enumerate(table.by)))
        self._load("_rows", table)
        columns = (
            f"_t + {size}, _n, {'_by' if inside else repr(by)}, {self._all(table) if parts.columns == '*' else parts.columns}"
        )
        return self._answer(f"SELECT {columns} FROM _rows {inside} {_where(parts.where)} ORDER BY _n")

    def _all(self, table: Table) -> str:
        return ", ".join(f'"{n}"' for n in table.names)

    def _of_events(self, parts: Parts, table: Table, found: Sequence[Look], group: Callable[[Row], Any]) -> Table:
        """One row for every event, its own columns beside the aggregates; WHERE "applies after the window"."""
        counted = self._function(table, parts.where) if parts.where else (lambda row: True)
        kept = [look for look in found if counted(look.event) is True]
        inside = [(w.event.n, r.n) for w in kept for r in w.rows if counted(r) is True and group(r) == group(w.event)]
        self._load("_event", table)
        self._load("_row", table)
        self._fill("_in", ("event BIGINT", "n BIGINT"), inside)
        self._fill("_kept", ("event BIGINT",), [(look.event.n,) for look in kept])
        columns = ", ".join(f'_event."{n}"' for n in table.names)
        having = f" HAVING {of_window(parts.having, parts.columns)}" if parts.having else ""
        return self._answer(
            f"SELECT _event._t, _event._n, 'row', {of_window(parts.columns)} FROM _event JOIN _kept ON _event._n = _kept.event"
            f" LEFT JOIN _in ON _in.event = _event._n LEFT JOIN _row ON _row._n = _in.n"
            f" GROUP BY _event._n, _event._t, {columns}{having} ORDER BY _event._n"
        )

    def _of_looks(self, parts: Parts, table: Table, found: Sequence[Look]) -> Table:
        """One row for every group that has a row in the window when it is looked at, "and nothing for an empty one"."""
        self._load("_row", table)
        self._fill("_in", ("look BIGINT", "n BIGINT"), [(i, r.n) for i, look in enumerate(found) for r in look.rows])
        seen = [(i, look.at, look.by, look.at - look.lag, look.start) for i, look in enumerate(found)]
        self._fill("_look", ("look BIGINT", "_at BIGINT", "_by VARCHAR", "_upto BIGINT", "_start BIGINT"), seen)
        own = re.search(r"PARTITION(?:ED)? BY (.*?)(?: WHERE |$)", parts.window)
        keys = "".join(f", {k}" for k in (own[1] if own else "", parts.group) if k)
        source = (
            "(SELECT _row.*, look, _at, _by, make_timestamp(_upto) AS window_end, make_timestamp(_start) AS window_start"
            " FROM _look JOIN _in USING (look) JOIN _row ON _row._n = _in.n)"
        )
        return self._answer(
            f"SELECT _at, look, _by, {in_order(parts.columns)} FROM {source} {_where(parts.where)}"
            f" GROUP BY look, _at, _by, window_start, window_end{keys} {f'HAVING {parts.having}' if parts.having else ''}"
            " ORDER BY _at, look"
        )

    def _joined(self, parts: Parts) -> tuple[Table, Parts]:
        """All pairs as rows of one table, and the rest of the query over it."""
        tables = [self._relation(r.source) for r in parts.joined]
        one, two = (r.alias for r in parts.joined)
        self._load("_left", tables[0])
        self._load("_right", tables[1])
        both = f"_left AS {one} CROSS JOIN _right AS {two}"
        matched = set(self.db.execute(f"SELECT {one}._n, {two}._n FROM {both} WHERE {parts.on or 'TRUE'}").fetchall())
        with_table = tables[0].static or tables[1].static
        sides = [self._side(r, t, parts.kind, i, with_table) for i, (r, t) in enumerate(zip(parts.joined, tables, strict=True))]
        found = pairs(sides[0], sides[1], lambda a, b: (a.n, b.n) in matched)
        found.sort(key=lambda told: (told[0], _later(told[2])))  # "a pair stands where its later row stands"
        names = [[f"{alias}__{n}" for n in t.names] for alias, t in ((one, tables[0]), (two, tables[1]))]
        out = Table(names[0] + names[1], tables[0].types + tables[1].types, by=[by for _, by, _ in found])
        for n, (at, _, pair) in enumerate(found):
            cells = [r.values[c] if r else None for r, t in zip(pair, tables, strict=True) for c in t.names]
            out.rows.append(Row(at, n, dict(zip(out.names, cells, strict=True))))
        owned = {one: tables[0].names, two: tables[1].names}
        flatten = {name: flat(getattr(parts, name), owned) for name in ("columns", "where", "having")}
        group = ", ".join(re.sub(r" AS \w+$", "", flat(key, owned)) for key in parts.group.split(", ") if key)
        return out, Parts(group=group, window=parts.window, stream=parts.stream, **{**flatten, "where": _bare(flatten["where"])})

    def _side(self, relation: Relation, table: Table, kind: str, i: int, with_table: bool) -> Side:
        preserved = kind == "FULL" or kind == ("LEFT", "RIGHT")[i]
        if relation.window is None:
            if not with_table:
                raise CannotSay("a join without a window")
            return Side(table.rows, "unbounded" if table.static else "now", preserved=preserved)
        spec = self._window(relation.window, table)
        if spec.kind == "size":
            if spec.size.kind != "time" or spec.every.kind != "time" or preserved:
                raise CannotSay(relation.window)
            return Side(table.rows, "size", spec.size.n, every=spec.every.n, where=spec.where)
        size = spec.size.n if spec.size else 0
        return Side(table.rows, spec.kind, size, spec.lag, where=spec.where, partition=spec.partition, preserved=preserved)

    # --- windows

    def _window(self, text: str, table: Table) -> Spec:
        """`SIZE 10 SECONDS EVERY 5 PARTITIONED BY k WHERE x > 1`, as it stands in the brackets."""
        body, where = [*re.split(r" WHERE ", text, maxsplit=1), ""][:2]
        body, partition = [*re.split(r" PARTITION(?:ED)? BY ", body, maxsplit=1), ""][:2]
        rest: dict[str, Any] = {}
        if where:
            rest["where"] = self._function(table, where)
        if partition:
            rest["partition"] = self._function(table, partition)
        if "SYSTEM" in body:
            raise CannotSay(text)
        if found := re.fullmatch(r"RANGE (.+?)(?: LAG (.+?))?(?: SLIDE (.+))?", body):
            lag, size = duration(found[2] or ""), Amount("time", duration(found[1]))
            return Spec("size", size, amount(found[3]), lag, **rest) if found[3] else Spec("range", size, lag=lag, **rest)
        if found := re.fullmatch(r"ROWS (\d+)", body):
            return Spec("rows", Amount("rows", int(found[1])), **rest)
        if body in ("UNBOUNDED", "NOW"):
            return Spec(body.lower(), **rest)
        if found := re.fullmatch(r"SIZE (.+?)(?: EVERY (.+))?", body):
            return Spec("size", amount(found[1]), amount(found[2] or found[1]), **rest)
        if found := re.fullmatch(r"SESSION (.+)", body):
            return Spec("session", Amount("time", duration(found[1])), **rest)
        if found := re.fullmatch(r"DELTA (\S+) ON (.+)", body):
            return Spec("delta", Amount("field", float(found[1])), far=self._distance(table, found[2]), **rest)
        if found := re.fullmatch(r"LANDMARK (FROM|TO) '(.+?)' EVERY (.+)", body):
            at = instant(found[2])
            return Spec(found[1].lower(), every=amount(found[3]), begin=at, end=at, **rest)
        if found := re.fullmatch(r"FIXED FROM '(.+?)' TO '(.+?)'", body):
            return Spec("fixed", begin=instant(found[1]), end=instant(found[2]), **rest)
        raise CannotSay(text)

    def _distance(self, table: Table, text: str) -> Callable[[Row, Row], Any]:
        self._load("_one", table)
        self._load("_first", table)
        found = self.db.execute(f"SELECT _one._n, _first._n, {distance(text)} FROM _one CROSS JOIN _first").fetchall()
        known = {(a, b): far for a, b, far in found}
        return lambda row, first: known[row.n, first.n]

    def _function(self, table: Table, text: str) -> Callable[[Row], Any]:
        """A scalar expression, or several, of every row of a table."""
        self._load("_rows", table)
        found = self.db.execute(f"SELECT _n, {text} FROM _rows").fetchall()
        known = {row[0]: row[1] if len(row) == 2 else row[1:] for row in found}
        return lambda row: known[row.n]

    # --- DuckDB

    def _load(self, name: str, table: Table) -> None:
        columns = [f'"{n}" {k}' for n, k in zip(table.names, table.types, strict=True)]
        self._fill(
            name, ("_n BIGINT", "_t BIGINT", *columns), [(r.n, r.t, *(r.values[n] for n in table.names)) for r in table.rows]
        )

    def _fill(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({', '.join(columns)})")
        if rows:
            marks = f"({', '.join('?' * len(columns))})"
            self.db.execute(f"INSERT INTO {name} VALUES {', '.join([marks] * len(rows))}", [v for row in rows for v in row])

    def _answer(self, sql: str) -> Table:
        """The first three columns are the time, what orders rows of one time, and what lets them be told; the rest is the row."""
        cursor = self.db.execute(sql)
        names, types = ([str(d[i]) for d in cursor.description][3:] for i in (0, 1))
        found = cursor.fetchall()
        rows = [Row(row[0], n, dict(zip(names, row[3:], strict=True))) for n, row in enumerate(found)]
        return Table(names, types, rows, [row[2] for row in found])


def _compared(answer: Table, stream: str, every: int) -> Table:
    """ "ISTREAM those that were not there at the last look, DSTREAM those that were there then and no longer are." """
    out = Table(answer.names, answer.types)
    times = {r.t for r in answer.rows}
    for at in sorted(times | {t + every for t in times}):
        now, then = (Counter(tuple(r.values[n] for n in answer.names) for r in answer.rows if r.t == t) for t in (at, at - every))
        for row in (now - then if stream == "ISTREAM" else then - now).elements():
            out.rows.append(Row(at, len(out.rows), dict(zip(answer.names, row, strict=True))))
            out.by.append("clock")
    return out


def _later(pair: tuple[Row | None, Row | None]) -> tuple[int, int, int]:
    """The place of the later row: by time, then the stream that is named first, then by its own order."""
    return max((r.t, side, r.n) for side, r in enumerate(pair) if r is not None)


def _where(text: str) -> str:
    return f"WHERE {text}" if text else ""


def _bare(text: str) -> str:
    return re.sub(r" AS \w+$", "", text)


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
