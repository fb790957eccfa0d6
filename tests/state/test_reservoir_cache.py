"""Hits and misses of the chunk cache: whatever a batch waits for is a miss, also where it was loaded ahead."""

from __future__ import annotations

import numpy as np

from headrace.changes.keys import Keys
from headrace.state.reservoir import ChunkCache, Reservoir
from headrace.state.rows import Layout, Rows
from headrace.testing.local import MemoryStore

CHUNK, CHUNKS = 10, 6


def filled(size: int) -> tuple[ChunkCache, Reservoir]:
    """Six sealed chunks of ten rows."""
    cache = ChunkCache(size)
    reservoir = Reservoir(Layout((np.int64,), ((0,),), (None,), 0), MemoryStore(), cache, "bucket", CHUNK, largest=1)
    for first in range(0, CHUNK * CHUNKS, CHUNK):
        ts = np.arange(first, first + CHUNK, dtype=np.int64)
        reservoir.append(Rows(Keys(ts, ts, ts), [ts]))
    return cache, reservoir


def counted(cache: ChunkCache) -> tuple[int, int]:
    return cache.hits, cache.misses


def test_a_chunk_that_was_loaded_ahead_but_waited_for_is_a_miss():
    cache, reservoir = filled(size=4)
    reservoir.load_ahead(0)
    assert counted(cache) == (0, 1)  # the batch waited for it
    reservoir.between(0, 5)
    assert counted(cache) == (0, 1)  # who asks first finds what was waited for: that is no hit, and no second miss
    reservoir.between(5, 10)
    assert counted(cache) == (1, 1)


def test_loading_ahead_what_is_there_is_nothing():
    cache, reservoir = filled(size=4)
    reservoir.between(0, 5)
    reservoir.load_ahead(0)
    reservoir.load_ahead(3)
    assert counted(cache) == (0, 1)
    reservoir.between(0, 5)
    assert counted(cache) == (1, 1)


def test_what_was_loaded_ahead_and_had_to_make_room_is_waited_for_twice():
    cache, reservoir = filled(size=1)
    reservoir.load_ahead(0)
    reservoir.load_ahead(CHUNK)  # the first makes room
    reservoir.between(0, 5)
    assert counted(cache) == (0, 3)
    reservoir.between(0, 5)
    assert counted(cache) == (1, 3)


def test_a_pass_over_all_chunks_waits_for_each_once():
    ahead, plain = filled(size=2), filled(size=2)
    for first in range(0, CHUNK * CHUNKS, CHUNK // 2):  # an edge that moves half a chunk a batch
        ahead[1].load_ahead(first)
        for _, reservoir in (ahead, plain):
            reservoir.between(first, first + CHUNK // 2)
    assert counted(ahead[0]) == counted(plain[0]) == (CHUNKS, CHUNKS)
