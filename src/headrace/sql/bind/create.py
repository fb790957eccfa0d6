"""CREATE SCHEMA and CREATE STREAM -> schemas and streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.errors import unknown
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import FrameSource, GenerateSource, Stream, Unique, kafka_position
from headrace.plan.types import INTEGRAL, base_type
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.fill import bind_body, conform
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import Span
from headrace.sql.parse.create import NamedColumns
from headrace.sql.parse.sources import generated_schemas
from headrace.sql.parse.syntax import Columns, CreateDerived, CreateSchema, CreateStream, Name, Scalar, Timing

NO_TIME = ("BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "VARIANT")


def bind_schema(statement: CreateSchema, catalog: Catalog) -> None:
    catalog.add_schema(statement.name, _columns(statement.columns, catalog))


def bind_derived(statement: CreateDerived, catalog: Catalog) -> None:
    """Declare a stream that is the result of a SELECT, or another one by a new name."""
    node = bind_body(statement.body, catalog)
    if statement.columns is not None:
        node = conform(node, shape_of(statement.columns, catalog), catalog, statement.name.span)
    catalog.add_stream(statement.name, node)


def bind_stream(statement: CreateStream, catalog: Catalog) -> None:
    schema = shape_of(statement.columns, catalog) if statement.columns else _known_columns(statement, catalog)
    scope = Scope(catalog.text, schema, (statement.name.text,))
    timing = statement.timing
    source = statement.source
    if isinstance(source, FrameSource):
        source = replace(source, position=kafka_position(schema))  # one with the columns of Kafka is placed by them
    # With punctuation, what is wrong about the clauses together is wrong about it.
    with catalog.text.at(timing.punctuation.span if timing.punctuation else statement.name.span):
        stream = Stream(
            name=statement.name.text,
            source=source,
            schema=schema,
            timestamp=_timestamp(timing, scope),
            timestamp_unit=timing.timestamp_unit or 1_000,
            delay=timing.delay,
            punctuation=_punctuation(timing, scope),
            idle=timing.idle,
            ahead=timing.ahead,
            end_after=timing.end_after,
            keep=timing.keep,
            unique=_unique(timing, scope),
            static=statement.table,
        )
    catalog.add_stream(statement.name, Scan(stream))
    catalog.base.append(stream)


def _columns(given: Columns, catalog: Catalog) -> Schema:
    """The columns of the parent, then its own."""
    fields = list(catalog.schema(given.parent).fields) if given.parent else []
    for own, place in _own(given, catalog):
        if any(own.name.lower() == f.name.lower() for f in fields):
            raise catalog.text.error(f"column {own.name!r} is there twice", place, hint=_whose(own.name, given, catalog))
        fields.append(own)
    return Schema(tuple(fields))


def _own(given: Columns, catalog: Catalog) -> Iterator[tuple[Field, Span]]:
    """Columns that are written, or those of the schema that is named in their place, and where to complain about each."""
    if isinstance(given, NamedColumns):
        yield from ((f, given.schema.span) for f in catalog.schema(given.schema).fields)
    for column in given.columns:
        with catalog.text.at(column.name.span):
            yield Field(column.name.text, column.type), column.name.span


def _whose(name: str, given: Columns, catalog: Catalog) -> str:
    if given.parent and catalog.schema(given.parent).has(name):
        return f"the schema {given.parent.text} that is extended has a column of that name"
    return "give one of them another name"


def shape_of(given: Columns | Name, catalog: Catalog) -> Schema:
    """Columns as they are written, or those of a named schema."""
    return catalog.schema(given) if isinstance(given, Name) else _columns(given, catalog)


def _known_columns(statement: CreateStream, catalog: Catalog) -> Schema:
    """Columns that the source brings with it."""
    match statement.source:
        case GenerateSource(kind=kind):
            if kind in (known := generated_schemas()):
                return known[kind]
        case FrameSource(name=name):
            if name in catalog.frames:
                return catalog.frames[name]
            raise catalog.text.error(unknown("DataFrame", name, catalog.frames), statement.source_span)
    hint = "write them behind the name: CREATE STREAM name (card STRING, amount DOUBLE, at TIMESTAMP) SOURCE .."
    raise catalog.text.error(f"the columns of {statement.name.text!r} are not given", statement.name.span, hint=hint)


def _timestamp(timing: Timing, scope: Scope) -> Expr | None:
    if timing.timestamp is None:
        return None
    bound, kind = _time(timing.timestamp, scope, "TIMESTAMP BY", "an integer and its unit")
    if timing.timestamp_unit is not None and kind not in (*INTEGRAL, "UNKNOWN"):
        raise scope.text.error(f"a unit is for integers, and this is a {kind}", timing.timestamp.span, hint="leave the unit out")
    return bound


def _punctuation(timing: Timing, scope: Scope) -> Expr | None:
    if timing.punctuation is None:
        return None
    return _time(timing.punctuation, scope, "PUNCTUATED BY", "an integer in the unit of TIMESTAMP BY")[0]


def _time(given: Scalar, scope: Scope, clause: str, otherwise: str) -> tuple[Expr, str]:
    """An expression that is a time, and its type."""
    bound = scope.bind(given, clause)
    kind = base_type(bound.type_in(scope.schema))
    if kind in NO_TIME:
        hint = f"it takes a TIMESTAMP, or {otherwise}: CAST it to one of them"
        raise scope.text.error(f"{clause} cannot take a {kind}", given.span, hint=hint)
    return bound, kind


def _unique(timing: Timing, scope: Scope) -> Unique | None:
    if timing.unique_within is None:
        return None
    return Unique(tuple(scope.bind(c, "UNIQUE BY") for c in timing.unique_by), timing.unique_within)
