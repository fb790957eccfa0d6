"""Chunks that are loaded ahead in a thread: who waits is a miss, who need not is a hit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace.changes.keys import Keys
from headrace.errors import StateError
from headrace.serve.store.ahead import AheadCache
from headrace.state.chunk import Chunk
from headrace.state.reservoir import Reservoir
from headrace.state.rows import Layout, Rows

CHUNK, CHUNKS = 10, 6


class SlowStore:
    """Gives a chunk when it is allowed to."""

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] = {}
        self.go, self.asked = threading.Event(), threading.Event()
        self.go.set()
        self.by: list[str] = []

    def get(self, chunk: int) -> Chunk | None:
        self.by.append(threading.current_thread().name.split("_")[0])
        self.asked.set()
        self.go.wait(10)
        return self.chunks.get(chunk)

    def put(self, chunk: int, rows: Chunk) -> None:
        self.chunks[chunk] = rows

    def delete(self, chunk: int) -> None:
        del self.chunks[chunk]


@pytest.fixture
def cache():
    made = AheadCache(4)
    yield made
    made.close()


def filled(cache: AheadCache) -> tuple[SlowStore, Reservoir]:
    store = SlowStore()
    reservoir = Reservoir(Layout((np.int64,), ((0,),), (None,), 0), store, cache, "bucket", CHUNK, largest=1)
    for first in range(0, CHUNK * CHUNKS, CHUNK):
        ts = np.arange(first, first + CHUNK, dtype=np.int64)
        reservoir.append(Rows(Keys(ts, ts, ts), [ts]))
    return store, reservoir


def settled(cache: AheadCache) -> None:
    for coming in cache._coming.values():
        coming.result()


def counted(cache: AheadCache) -> tuple[int, int]:
    return cache.hits, cache.misses


def test_a_chunk_that_has_come_is_a_hit(cache):
    store, reservoir = filled(cache)
    reservoir.load_ahead(0)
    settled(cache)
    assert counted(cache) == (0, 0)
    assert reservoir.between(0, 5)[0].ts.tolist() == [0, 1, 2, 3, 4]
    assert counted(cache) == (1, 0)
    assert store.by == ["headrace-load"]


def test_a_chunk_that_is_still_read_is_waited_for(cache):
    store, reservoir = filled(cache)
    store.go.clear()
    reservoir.load_ahead(0)
    assert store.asked.wait(10)
    threading.Timer(0.05, store.go.set).start()
    assert reservoir.between(0, 1)[0].ts.tolist() == [0]
    assert counted(cache) == (0, 1)
    assert store.by == ["headrace-load"]


def test_a_chunk_that_nobody_reads_yet_is_read_at_once(cache):
    store, reservoir = filled(cache)
    store.go.clear()
    reservoir.load_ahead(0)
    assert store.asked.wait(10)
    reservoir.load_ahead(CHUNK)  # waits for its turn
    threading.Timer(0.05, store.go.set).start()
    assert reservoir.between(CHUNK, CHUNK + 1)[0].ts.tolist() == [CHUNK]
    assert counted(cache) == (0, 1)
    assert "MainThread" in store.by


def test_behind_the_middle_of_a_chunk_the_next_is_loaded_too(cache):
    _, reservoir = filled(cache)
    reservoir.load_ahead(CHUNK // 2)
    assert list(cache._coming) == [("bucket", 0)]
    reservoir.load_ahead(CHUNK // 2 + 1)
    assert list(cache._coming) == [("bucket", 0), ("bucket", 1)]


def test_an_edge_that_is_not_too_quick_never_waits(cache):
    _, reservoir = filled(cache)
    seen = []
    for row in range(CHUNK * CHUNKS - CHUNK):
        reservoir.load_ahead(row)
        settled(cache)
        seen += reservoir.between(row, row + 1)[0].ts.tolist()
    assert seen == list(range(CHUNK * CHUNKS - CHUNK))
    assert counted(cache)[1] == 0
    assert len(cache._chunks) <= 4
    assert len(cache._coming) <= 4


def test_a_chunk_that_is_gone_is_an_error_for_who_asks(cache):
    store, reservoir = filled(cache)
    store.chunks.clear()
    reservoir.load_ahead(0)
    with pytest.raises(StateError, match="chunk 0 of the reservoir is gone"):
        reservoir.between(0, 1)


def test_what_is_let_go_is_not_kept(cache):
    _, reservoir = filled(cache)
    reservoir.load_ahead(0)
    settled(cache)
    reservoir.drop_before(CHUNK)
    assert not cache._coming
    assert not cache._chunks
