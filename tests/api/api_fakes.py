"""What the API needs of Spark: a frame with a schema, and `headrace.spark` with two functions."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class DataType:
    text: str

    def simpleString(self) -> str:
        return self.text


@dataclass(frozen=True)
class StructField:
    name: str
    dataType: DataType


@dataclass(frozen=True)
class StructType:
    fields: list[StructField]


class Frame:
    def __init__(self, **types: str) -> None:
        self.schema = StructType([StructField(name, DataType(kind)) for name, kind in types.items()])


class Spark(ModuleType):
    def __init__(self) -> None:
        super().__init__("headrace.spark")
        self.calls: list[tuple] = []

    def to_df(self, script, frames):
        self.calls.append(("to_df", script, frames))
        return "a DataFrame"

    def start(self, script, frames, *, checkpoint=None, **options):
        self.calls.append(("start", script, frames, checkpoint, options))
        return "a query"
