"""What a script has declared so far, by name without case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headrace.errors import unknown
from headrace.plan.nodes import Node
from headrace.plan.profiles import Settings
from headrace.plan.schema import Schema
from headrace.plan.stream import Stream
from headrace.sql.errors import Text
from headrace.sql.parse.syntax import Branch, Name, Statement


@dataclass
class Fill:
    """A stream without a source: what is put into it, bound when it is first read."""

    name: str
    schema: Schema
    parts: list[Statement | Branch]
    make: Callable[[], Node]
    node: Node | None = None
    open: bool = False


@dataclass
class Catalog:
    """Schemas and streams. Changed by statements as they are bound, in their order."""

    text: Text
    schemas: dict[str, Schema] = field(default_factory=dict)
    streams: dict[str, Node] = field(default_factory=dict)
    frames: dict[str, Schema] = field(default_factory=dict)  # DataFrames of the caller
    base: list[Stream] = field(default_factory=list)  # declared by this script
    fills: dict[str, Fill] = field(default_factory=dict)  # streams without a source, by name in lower case
    read: set[str] = field(default_factory=set)  # streams that some statement reads, in lower case
    settings: Settings = field(default_factory=Settings)  # of queries that do not say otherwise

    def stream(self, name: Name, *, reads: bool = True) -> Node:
        """The plan of a stream; one without a source is all that any statement of the script puts into it."""
        if reads:
            self.read.add(name.text.lower())
        fill = self.fills.get(name.text.lower())
        if fill is not None:
            return self._filled(fill, name)
        found = spelt(name, self.streams)
        if found is not None:
            return self.streams[found]
        raise self.text.error(unknown("stream", name.text, self._names()), name.span, hint=self._hint(name))

    def _filled(self, fill: Fill, name: Name) -> Node:
        if fill.node is None:
            if fill.open:
                raise self.text.error(f"stream {name.text!r} is filled from itself", name.span)
            if not fill.parts:
                hint = f"INSERT INTO {name.text} SELECT .."
                raise self.text.error(f"stream {name.text!r} has no source, and nothing fills it", name.span, hint=hint)
            fill.open = True
            fill.node = fill.make()
        return fill.node

    def schema(self, name: Name) -> Schema:
        found = spelt(name, self.schemas)
        if found is not None:
            return self.schemas[found]
        raise self.text.error(unknown("schema", name.text, self.schemas), name.span)

    def add_stream(self, name: Name, node: Node) -> None:
        """Declare a stream; its name must be new."""
        self._refuse_known(name)
        self.streams[name.text] = node

    def add_fill(self, name: Name, fill: Fill) -> None:
        """Declare a stream without a source; its name must be new."""
        self._refuse_known(name)
        self.fills[name.text.lower()] = fill

    def _refuse_known(self, name: Name) -> None:
        if spelt(name, self._names()) is not None:
            raise self.text.error(f"stream {name.text!r} is there already", name.span, hint="choose another name")

    def _names(self) -> list[str]:
        return [*self.streams, *(fill.name for fill in self.fills.values())]

    def add_schema(self, name: Name, schema: Schema) -> None:
        """Declare a schema; its name must be new."""
        if spelt(name, self.schemas) is not None:
            raise self.text.error(f"schema {name.text!r} is there already", name.span, hint="choose another name")
        self.schemas[name.text] = schema

    def _hint(self, name: Name) -> str | None:
        if spelt(name, self.schemas) is not None:
            return f"{name.text} is a schema: CREATE STREAM s {name.text} SOURCE .. makes a stream of it"
        return None if self._names() else "CREATE STREAM comes first"


def spelt(name: Name, known: Iterable[str]) -> str | None:
    """A name as it was declared."""
    return next((one for one in known if one.lower() == name.text.lower()), None)
