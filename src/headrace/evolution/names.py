"""The parts of a stage, named by what they mean: not by where they stand, nor by which query asked for them first.

State is stored by place, as a program has it; the program that wrote it is stored once beside it. Of two programs, parts with
one name are one part: that is all it takes to carry state from one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from headrace.plan.expr import Expr
from headrace.plan.types import INTEGRAL, base_type, decimal_parts
from headrace.program.aggregates import Tally
from headrace.program.stage import ByHash, Stage, Table, TableRole, Vector
from headrace.program.windows import WindowProgram

FEED = re.compile(r"#\d+")
NOTHING = re.compile(r"^CAST\(NULL AS [^()]*(\([^()]*\))?\)$")  # what rows of another source have in the place of a column
DOUBLE = re.compile(r"CAST\(.* AS DOUBLE\)")


def family(kind: str) -> str:
    """Types whose values look the same in state, so that one may be widened to another."""
    base = base_type(kind)
    if base in INTEGRAL:
        return "integer"
    if base in ("FLOAT", "DOUBLE"):
        return "floating"
    return f"decimal of scale {decimal_parts(kind)[1]}" if base == "DECIMAL" else kind


def written(exprs: tuple[Expr, ...]) -> str:
    """One thing of every row, as text: once where it is the same in the rows of every source. Nothing is so in every type."""
    return exprs[0].sql if len(set(exprs)) == 1 else " | ".join(NOTHING.sub("NULL", e.sql) for e in exprs)


def _widened(text: str, kind: str) -> str:
    """Without a cast to DOUBLE, which a floating-point number needs as long as it is a FLOAT."""
    inner = text[len("CAST(") : -len(" AS DOUBLE)")] if kind == "floating" and DOUBLE.fullmatch(text) else text
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in inner)
    return text if min(depths, default=0) < 0 else inner


@dataclass(frozen=True, slots=True)
class Names:
    """What everything in a stage is called."""

    stage: str
    sources: tuple[str, ...]
    inputs: tuple[str, ...]
    tables: tuple[str, ...]
    vectors: tuple[str, ...]
    values: tuple[str, ...]  # of vectors, however they lie in memory

    def route(self, stage: Stage[Any]) -> str:
        """What its rows are parted by."""
        return _route(stage, self.inputs)

    def window(self, program: WindowProgram) -> str:
        """A window, with what it is parted by and measured on."""
        parted = "" if program.partitions is None else f" of {self.tables[program.partitions]}"
        return f"{program.window}{parted}" + ("" if program.field is None else f" by {self.vectors[program.field]}")

    def tally(self, tally: Tally, windows: tuple[WindowProgram, ...]) -> str:
        """An aggregate state."""
        pairs = "" if tally.pairs is None else f" in {self.tables[tally.pairs]}"
        of = f"{tally.kind.name.lower()} {tally.mode}".strip()
        of += "" if tally.shown is None else f" of {self.vectors[tally.shown]} by that"
        window, group = self.window(windows[tally.window]), self.tables[tally.group]
        return f"{of} of {self.vectors[tally.vector]} over {window} by {group}{pairs}"


def names_of(stage: Stage[Any], feeds: Mapping[str, str]) -> Names:
    """Of one stage; `feeds` says what the results mean that other stages give it."""

    def told(text: str) -> str:
        return FEED.sub(lambda feed: f"<{feeds.get(feed[0], feed[0])}>", text)

    sources = tuple(told(s.name) for s in stage.sources)
    inputs = tuple(written(i.exprs) for i in stage.inputs)
    kinds = [family(i.type) for i in stage.inputs]
    tables: list[str] = []
    for table in stage.tables:
        tables.append(_table(table, [f"{inputs[i]} {kinds[i]}" for i in table.inputs], tables))
    values = tuple(_value(v, inputs, kinds) for v in stage.vectors)
    vectors = tuple(f"{v.kind.value} {value}".strip() for v, value in zip(stage.vectors, values, strict=True))
    doors = "; ".join(f"{', '.join(sources[i] for i in d.sources)} after {d.slack}" for d in stage.doors)
    unique = "" if stage.unique is None else f" unique by {tables[stage.unique.table]} within {stage.unique.within}"
    kind = type(stage.program).__name__.removesuffix("Program").lower()
    name = f"{kind} over {', '.join(sources)} by {_route(stage, inputs)}{unique} {told(stage.apart)} {doors}".strip()
    return Names(name, sources, inputs, tuple(tables), vectors, values)


def _route(stage: Stage[Any], inputs: tuple[str, ...]) -> str:
    return ", ".join(inputs[i] for i in stage.route.inputs) if isinstance(stage.route, ByHash) else type(stage.route).__name__


def _table(table: Table, inputs: list[str], known: list[str]) -> str:
    """Tables stand behind those they follow from."""
    of = f"{table.role.value} ({', '.join(inputs)})"
    if table.role is TableRole.LIFE and table.base is not None:
        return f"{of} of {known[table.base]} until {table.window or 'KEEP'}"
    return f"{of} of {known[table.life]}" if table.life is not None else of


def _value(vector: Vector, inputs: tuple[str, ...], kinds: list[str]) -> str:
    i = vector.input
    value = "" if i is None else f"{_widened(inputs[i], kinds[i])} {kinds[i]}"
    masks = "" if not vector.masks else f" if {' and '.join(sorted(inputs[m] for m in vector.masks))}"
    return (value + masks).strip()
