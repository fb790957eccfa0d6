"""The store of serving: for each partition of a topic, commits of the state of its task processors with the offset of the log.

    root/<topic>/<partition>/commits/<epoch>-<number>.commit    the offset, what is small of the state, and where the rest is
                            /data/<epoch>-<number>.keys         what one commit found changed (runtime/increments.py)
                                 /<epoch>-<number>.blobs        chunks of the reservoir that were sealed since the last one

State is a function of the log's prefix, so any commit is right for its offset, whoever wrote it (decisions/0036).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.log.log import At
from headrace.program.stage import Stage
from headrace.serve.store.ahead import AheadCache
from headrace.serve.store.partition import Partition
from headrace.serve.store.places import place_of
from headrace.serve.store.writer import Writer
from headrace.state.reservoir import CHUNK_ROWS, ChunkCache


class Store:
    """What a process opens partitions of. All of them share a writer and the chunks that are loaded."""

    def __init__(self, path: str, chunks: int = 256, cache: ChunkCache | None = None) -> None:
        """`path`: a folder of this machine, or a URL; `chunks`: how many decoded chunks are kept at most."""
        self.place = place_of(path)
        self.cache = AheadCache(chunks) if cache is None else cache
        self.writer = Writer()

    def open(self, at: At, epoch: int, stages: Sequence[Stage[Any]], chunk_rows: int = CHUNK_ROWS) -> Partition:
        """Take a partition over, as its newest commit left it. Units of earlier epochs are refused from now on."""
        place = self.place.below(at.topic, str(at.partition))
        return Partition(place, at, epoch, stages, self.writer, self.cache, chunk_rows)

    def close(self) -> None:
        """What is under way is written."""
        self.writer.close()
        if isinstance(self.cache, AheadCache):
            self.cache.close()
