"""What a script has declared so far, by name without case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.errors import unknown

if TYPE_CHECKING:
    from headrace.plan.nodes import Node
    from headrace.plan.schema import Schema
    from headrace.plan.stream import Stream
    from headrace.sql.errors import Text
    from headrace.sql.syntax import Name


@dataclass
class Catalog:
    """Schemas and streams. Changed by statements as they are bound, in their order."""

    text: Text
    schemas: dict[str, Schema] = field(default_factory=dict)
    streams: dict[str, Node] = field(default_factory=dict)
    frames: dict[str, Schema] = field(default_factory=dict)  # DataFrames of the caller
    base: list[Stream] = field(default_factory=list)  # declared by this script

    def stream(self, name: Name) -> Node:
        """The plan of a stream."""
        for known, node in self.streams.items():
            if known.lower() == name.text.lower():
                return node
        raise self.text.error(unknown("stream", name.text, self.streams), name.span, hint=self._hint(name))

    def schema(self, name: Name) -> Schema:
        """A named schema."""
        for known, schema in self.schemas.items():
            if known.lower() == name.text.lower():
                return schema
        raise self.text.error(unknown("schema", name.text, self.schemas), name.span)

    def add_stream(self, name: Name, node: Node) -> None:
        """Declare a stream; its name must be new."""
        if any(known.lower() == name.text.lower() for known in self.streams):
            raise self.text.error(f"stream {name.text!r} is there already", name.span, hint="choose another name")
        self.streams[name.text] = node

    def add_schema(self, name: Name, schema: Schema) -> None:
        """Declare a schema; its name must be new."""
        if any(known.lower() == name.text.lower() for known in self.schemas):
            raise self.text.error(f"schema {name.text!r} is there already", name.span, hint="choose another name")
        self.schemas[name.text] = schema

    def _hint(self, name: Name) -> str | None:
        if any(known.lower() == name.text.lower() for known in self.schemas):
            return f"{name.text} is a schema: CREATE STREAM s {name.text} SOURCE .. makes a stream of it"
        return None if self.streams else "CREATE STREAM comes first"
