"""An engine that plays back what a test tells it, in the place of Spark."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from headrace.cli.main import app
from headrace.plan.nodes import Scan
from headrace.plan.query import ConsoleSink, Emit, Query, Script
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.runs.events import ProgressEvent, RowsEvent


class FakeHandle:
    def __init__(self, polls, error=None):
        self.polls = list(polls)
        self.failure = error
        self.stopped = False

    @property
    def done(self):
        return not self.polls

    @property
    def error(self):
        return self.failure if self.done else None

    def poll(self, timeout_s):
        events = self.polls.pop(0) if self.polls else []
        if isinstance(events, BaseException):
            raise events
        return events

    def stop(self):
        self.stopped = True


class FakeEngine(ModuleType):
    """`headrace.spark.run`, with one handle prepared."""

    def __init__(self):
        super().__init__("headrace.spark.run")
        self.handle = FakeHandle([])
        self.calls = []

    def start_script(
        self, script, checkpoint, follow, verbose, options=None, overwrite=False, max_rejected=None, buckets=None,
        from_now=(), backfill=(),
    ):  # fmt: skip
        self.calls.append((script, checkpoint, follow, verbose))
        self.buckets, self.changed = buckets, (from_now, backfill)
        if isinstance(self.handle, Exception):
            raise self.handle
        return self.handle


@pytest.fixture
def engine(monkeypatch):
    fake = FakeEngine()
    monkeypatch.setitem(sys.modules, "headrace.spark.run", fake)
    monkeypatch.setattr("headrace.cli.run.command.load", lambda path: one_query())
    return fake


@pytest.fixture
def headrace():
    """Run a command line as a user would, with standard output and standard error apart."""
    return lambda *arguments, **more: CliRunner().invoke(app, [str(a) for a in arguments], **more)


def one_query(*names):
    schema = Schema.of(card="STRING", n="BIGINT", at="TIMESTAMP")
    stream = Stream("s", FileSource("s.csv"), schema, delay=0)
    queries = tuple(Query(name, Scan(stream), Emit.CHANGES, ConsoleSink()) for name in names or ("counts",))
    return Script(queries, (stream,))


def rows(query="counts", batch_id=None, **columns):
    batch = pa.record_batch(columns)
    return RowsEvent(query, tuple(batch.schema.names), batch, batch_id)


def progress(batch_id=0, **values):
    given = {"rows_in": 10, "rows_out": 3, "late": 0, "rejected": 0, "frontier_lag_s": 2.0, "batch_ms": 280.0} | values
    return ProgressEvent(batch_id, **given)


@pytest.fixture
def fake():
    """What tests build runs from; a fixture, so that it can be had under any import mode of pytest."""
    return SimpleNamespace(handle=FakeHandle, script=one_query, rows=rows, progress=progress)
