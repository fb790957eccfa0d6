"""Schemas: named, typed columns; names compare without case, as in Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from headrace.errors import QueryError, unknown


@lru_cache(maxsize=4096)
def normalize_type(text: str) -> str:
    """Spark SQL type text in one spelling: `normalize_type("int") == "INT"`."""
    if text.strip().upper() == "UNKNOWN":
        return "UNKNOWN"
    try:
        return exp.DataType.build(text, dialect="spark").sql(dialect="spark")  # fields of a STRUCT keep their case
    except SqlglotError as error:
        raise QueryError(f"{text!r} is not a type", hint="types are those of Spark SQL, for example BIGINT") from error


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    type: str

    def __post_init__(self) -> None:
        """Keep one spelling per type."""
        object.__setattr__(self, "type", normalize_type(self.type))

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream or relation, in order."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        """Two columns of one name would make every reference ambiguous."""
        twice = [n for n, c in Counter(f.name.lower() for f in self.fields).items() if c > 1]
        if twice:
            raise QueryError(f"column {twice[0]!r} is there twice", hint="give one of them another name with AS")

    @staticmethod
    def of(**types: str) -> Schema:
        """`Schema.of(card="STRING", amount="DOUBLE")`."""
        return Schema(tuple(Field(name, kind) for name, kind in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def has(self, name: str) -> bool:
        return any(f.name.lower() == name.lower() for f in self.fields)

    def field(self, name: str) -> Field:
        """The column of this name; an error that lists what exists otherwise."""
        for f in self.fields:
            if f.name.lower() == name.lower():
                return f
        raise QueryError(unknown("column", name, self.names))

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.fields)) + ")"
