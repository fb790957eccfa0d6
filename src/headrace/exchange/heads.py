"""What a cell says of itself: typed values, with one writer and one reader. A cell is a head and a body of bytes.

    RowsHead      rows of a source: the segments they come in, and what shape the body has
    FeedHead      rows of another stage                 FollowHead   how far that stage is
    ControlHead   that time has passed, or the input has ended
    ResultHead    results on their way to a sink        NumbersHead  numbers for progress
    RejectedHead  rows that cannot be used
    HandoverHead  what an earlier generation kept, for whoever goes on with it

Heads are lines of JSON, so that a command can be made, and a count be seen, where there is no Python (`spark/`).
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, fields
from typing import Any

import pyarrow as pa

from headrace.plan.arrow import arrow_type
from headrace.program.stage import Stage
from headrace.runtime.clock import Segment
from headrace.steps.step import Standing

Cell = tuple[str, bytes]  # head, body
COUNTED = '{"read"'  # how the head of a cell begins that says how many rows were read with it
CONTROL = '{"kind": "control", "now": %s, "ended": %s}'
OF_THE_END = '"ended": true'  # in the head of every cell that is there because the input has ended, and of no other
AFTER_THE_END = "rows came after the input was taken to have ended"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cell holds. Travels as a list in its head."""

    first: int  # time from which the others are counted
    short_ts: bool
    short_low: bool
    segments: bool  # whether rows say which segment they are in; else all are in the first
    behind: bool  # whether rows say that they are behind; else none is
    partitioned: bool  # whether the high half of a place is the partition
    times: tuple[int, ...]  # inputs that are the time itself, and do not travel

    def schema(self, stage: Stage[Any]) -> pa.Schema:
        fields = [("ts", pa.uint32() if self.short_ts else pa.int64()), ("low", pa.uint32() if self.short_low else pa.int64())]
        fields += [("segment", pa.int32())] if self.segments else []
        fields += [("behind", pa.uint8())] if self.behind else []
        return pa.schema([*fields, *((f"x{i}", arrow_type(stage.inputs[i].type)) for i in self.sent(stage))])

    def sent(self, stage: Stage[Any]) -> list[int]:
        return [i for i in range(len(stage.inputs)) if i not in self.times]


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows were read, how many of them cannot be used, and one of those in words. Said by one cell of several."""

    read: int
    rejected: int = 0
    example: str = ""


@dataclass(frozen=True, slots=True)
class RowsHead:
    """Rows of a source, or that it had none for this bucket. Rows read, and punctuation, are told to one bucket alone."""

    source: int
    now: int
    segments: tuple[Segment, ...]
    shape: Shape
    rows: int = 0
    punctuation: int = 0


@dataclass(frozen=True, slots=True)
class FeedHead:
    """Rows of another stage; `ended`: which it has given because the input has ended."""

    source: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class FollowHead:
    """How far the stage is that a source is; `ended`: because the input has ended."""

    source: int
    standing: Standing
    ended: bool = False


@dataclass(frozen=True, slots=True)
class ControlHead:
    """How late it is, and whether the input has ended."""

    now: int = 0
    ended: bool = False


@dataclass(frozen=True, slots=True)
class ResultHead:
    """Changes of a query that only sinks wait for."""

    query: str


@dataclass(frozen=True, slots=True)
class NumbersHead:
    """Numbers for progress, by name."""

    numbers: dict[str, int]


@dataclass(frozen=True, slots=True)
class RejectedHead:
    """Rows of a stream that cannot be used; or, where no stage reads it, only how many rows it had."""

    stream: str
    told: bool = True  # whether they count: not if the rows of the stream are read a second time
    rows: int = 0
    punctuation: int = 0


@dataclass(frozen=True, slots=True)
class HandoverHead:
    """A cell of the state of an earlier generation: of which stage and bucket there, and by which name."""

    stage: int
    bucket: int
    cell: str


Head = RowsHead | FeedHead | FollowHead | ControlHead | ResultHead | NumbersHead | RejectedHead | HandoverHead


KINDS: dict[str, type[Head]] = {
    "rows": RowsHead, "feed": FeedHead, "follow": FollowHead, "control": ControlHead, "result": ResultHead,
    "numbers": NumbersHead, "rejected": RejectedHead, "handover": HandoverHead,
}  # fmt: skip
NAMES = {head: kind for kind, head in KINDS.items()}


def write_head(head: Head, counted: Counted | None = None) -> str:
    if isinstance(head, ControlHead):
        return CONTROL % (head.now, json.dumps(head.ended))
    about = {field.name: getattr(head, field.name) for field in fields(head)}
    match head:
        case RowsHead():
            about["segments"] = [[s.partition, *s.place, s.highest, s.rows, s.promised] for s in head.segments]
            about["shape"] = astuple(head.shape)
            if not (head.rows or head.punctuation):
                del about["rows"], about["punctuation"]
        case FollowHead():
            about["standing"] = astuple(head.standing)
    first = {} if counted is None else {"read": counted.read, "rejected": counted.rejected, "example": counted.example}
    return json.dumps({**first, "kind": NAMES[type(head)], **about})


def read_head(line: str) -> Head:
    about: dict[str, Any] = {name: value for name, value in json.loads(line).items() if name not in Counted.__slots__}
    kind = KINDS[about.pop("kind")]
    if kind is RowsHead:
        about["segments"] = tuple(
            Segment(p, (high, low), top, rows, about["source"], promised)
            for p, high, low, top, rows, promised in about["segments"]
        )
        *shape, times = about["shape"]
        about["shape"] = Shape(*(*shape, tuple(times)))
    elif kind is FollowHead:
        about["standing"] = Standing(*about["standing"])
    return kind(**about)
