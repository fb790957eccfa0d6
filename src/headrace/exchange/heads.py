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
from dataclasses import astuple, dataclass
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

    def schema(self, stage: Stage) -> pa.Schema:
        fields = [("ts", pa.uint32() if self.short_ts else pa.int64()), ("low", pa.uint32() if self.short_low else pa.int64())]
        fields += [("segment", pa.int32())] if self.segments else []
        fields += [("behind", pa.uint8())] if self.behind else []
        return pa.schema([*fields, *((f"x{i}", arrow_type(stage.inputs[i].type)) for i in self.sent(stage))])

    def sent(self, stage: Stage) -> list[int]:
        """The inputs that travel."""
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


def write_head(head: Head, counted: Counted | None = None) -> str:
    match head:
        case ControlHead(now=now, ended=ended):
            return CONTROL % (now, json.dumps(ended))
        case RowsHead():
            segments = [[s.partition, *s.place, s.highest, s.rows, s.promised] for s in head.segments]
            about = {"kind": "rows", "source": head.source, "now": head.now, "segments": segments, "shape": astuple(head.shape)}
            about |= {"rows": head.rows, "punctuation": head.punctuation} if head.rows or head.punctuation else {}
        case FeedHead(source=source, ended=ended):
            about = {"kind": "feed", "source": source, **_ended(ended)}
        case FollowHead(source=source, standing=standing, ended=ended):
            about = {"kind": "follow", "source": source, "standing": astuple(standing), **_ended(ended)}
        case ResultHead(query=query):
            about = {"kind": "result", "query": query}
        case NumbersHead(numbers=numbers):
            about = {"kind": "numbers", "numbers": numbers}
        case RejectedHead():
            about = {"kind": "rejected", "stream": head.stream, "told": head.told, "rows": head.rows,
                     "punctuation": head.punctuation}  # fmt: skip
        case HandoverHead(stage=stage, bucket=bucket, cell=cell):
            about = {"kind": "handover", "stage": stage, "bucket": bucket, "cell": cell}
    if counted is not None:
        about = {"read": counted.read, "rejected": counted.rejected, "example": counted.example, **about}
    return json.dumps(about)


def _ended(ended: bool) -> dict[str, bool]:
    return {"ended": True} if ended else {}


def read_head(line: str) -> Head:
    about: dict[str, Any] = json.loads(line)
    match about["kind"]:
        case "rows":
            given, source = about["segments"], about["source"]
            segments = tuple(Segment(p, (high, low), top, rows, source, promised) for p, high, low, top, rows, promised in given)
            first, short_ts, short_low, several, behind, partitioned, times = about["shape"]
            shape = Shape(first, short_ts, short_low, several, behind, partitioned, tuple(times))
            return RowsHead(source, about["now"], segments, shape, about.get("rows", 0), about.get("punctuation", 0))
        case "feed":
            return FeedHead(about["source"], about.get("ended", False))
        case "follow":
            return FollowHead(about["source"], Standing(*about["standing"]), about.get("ended", False))
        case "control":
            return ControlHead(about["now"], about["ended"])
        case "result":
            return ResultHead(about["query"])
        case "numbers":
            return NumbersHead(about["numbers"])
        case "rejected":
            return RejectedHead(about["stream"], about["told"], about["rows"], about["punctuation"])
        case "handover":
            return HandoverHead(about["stage"], about["bucket"], about["cell"])
    raise AssertionError(f"no cell is headed {line!r}")
