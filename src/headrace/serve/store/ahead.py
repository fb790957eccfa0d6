"""Chunks are loaded ahead in a thread of its own: the loop of a unit waits only for one that is needed and not there yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from headrace.state.chunk import Chunk
from headrace.state.reservoir import ChunkCache


class AheadCache(ChunkCache):
    """A miss is a chunk that the loop waits for, a hit one that is there when it asks.

    Only the thread of the loop touches what is in here; the other one reads chunks, and gives them back by a future.
    """

    further = True

    def __init__(self, size: int = 256) -> None:
        super().__init__(size)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-load")
        self._coming: OrderedDict[Hashable, Future[Chunk]] = OrderedDict()

    def get(self, key: Hashable, load: Callable[[], Chunk]) -> Chunk:
        coming = self._coming.pop(key, None)
        if coming is None or coming.cancel():  # nobody reads it yet: the loop is quicker itself
            return super().get(key, load)
        if coming.done():
            self.hits += 1
        else:
            self.misses += 1
        return self.keep(key, coming.result())

    def ahead(self, key: Hashable, load: Callable[[], Chunk]) -> None:
        if key in self._chunks:
            self._chunks.move_to_end(key)
        elif key not in self._coming:
            self._coming[key] = self._thread.submit(load)
            while len(self._coming) > self.size:
                self._coming.popitem(last=False)[1].cancel()

    def forget(self, key: Hashable) -> None:
        super().forget(key)
        coming = self._coming.pop(key, None)
        if coming is not None:
            coming.cancel()

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
