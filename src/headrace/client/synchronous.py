"""The client for all other programs: the same, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from headrace.client.asynchronous import AsyncClient
from headrace.client.replies import Answered, Change, Late, Promised, Reply

T = TypeVar("T")


class Client:
    """May be used by several threads at once."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0, ca: str | Path | None = None) -> None:
        """As `AsyncClient`."""
        self._client = AsyncClient(url, token, timeout=timeout, ca=ca)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="headrace client")
        self._thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._do(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def post(self, stream: str, event: Mapping[str, Any], id: str | None = None) -> Answered | Late | Promised:
        """The reply to an event. One that does not fit, or is not answered in time, is an error with the reply in it."""
        return self._do(self._client.post(stream, event, id))

    def post_many(self, stream: str, events: Iterable[Mapping[str, Any]], id: str | None = None) -> list[Reply]:
        """A reply for each event, in order. What was rejected, or is not answered yet, stands among them."""
        return self._do(self._client.post_many(stream, events, id))

    def post_lines(self, stream: str, lines: Sequence[bytes], id: str | None = None) -> list[bytes]:
        """Events that are JSON already, and the texts of their replies."""
        return self._do(self._client.post_lines(stream, lines, id))

    @contextmanager
    def subscribe(self, *queries: str) -> Iterator[Iterator[Change]]:
        """All changes of these queries from now on. When it ends, changes may have been missed: that is an error."""
        listening = self._client.subscribe(*queries)
        changes = self._do(_begin(listening))
        try:
            yield self._each(changes)
        finally:
            self._do(_end(listening))

    def _each(self, changes: AsyncIterator[Change]) -> Iterator[Change]:
        while True:
            yield self._do(_next(changes))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _begin(listening: AbstractAsyncContextManager[AsyncIterator[Change]]) -> AsyncIterator[Change]:
    return await listening.__aenter__()


async def _next(changes: AsyncIterator[Change]) -> Change:
    return await anext(changes)


async def _end(listening: AbstractAsyncContextManager[AsyncIterator[Change]]) -> None:
    await listening.__aexit__(None, None, None)
