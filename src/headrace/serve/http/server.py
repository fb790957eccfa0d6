"""A front end that listens: its thread, its loop, and how it ends."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType

import uvloop

from headrace.errors import HeadraceError, QueryError, SystemFailure
from headrace.serve.front import Front
from headrace.serve.http.options import Options
from headrace.serve.http.outside import Outside
from headrace.serve.http.replies import told
from headrace.serve.http.texts import texts_of
from headrace.serve.http.tokens import Doorkeeper

BACKLOG = 1024
HANDSHAKE_S = 10.0
SPARE_FILES = 512  # beside those of connections

Say = Callable[[str], None]


def serve(front: Front, options: Options, ready: Callable[[], Sequence[str]], say: Say) -> None:
    """Listen until somebody interrupts, or until the front cannot go on: then that is raised.

    `ready`: what is still waited for before all is answered, in words; nothing: all units are there.
    """
    with HttpServer(front, options, ready, say) as server:
        say(f"listening on {server.url}")
        server.wait()


class HttpServer:
    """Listens from `start` to `stop`, in a thread of its own, which alone posts to the front."""

    def __init__(self, front: Front, options: Options, ready: Callable[[], Sequence[str]] = tuple, say: Say = print) -> None:
        self.front, self.options, self._ready, self._say = front, options, ready, say
        self._texts = texts_of(front.deployment)
        self._door = Doorkeeper(options.tokens, say)
        self._listening: Future[int] = Future()
        self._ended: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="front end")

    def __enter__(self) -> HttpServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        scheme, host = "https" if self.options.cert else "http", self.options.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self._listening.result()}"

    def start(self) -> None:
        """Returns once requests are answered."""
        _check(self.options, self._door)
        if self._door.open:
            self._say("there are no tokens: everybody on this machine may post and read, and nobody else can")
        elif not self.options.loopback and self.options.cert is None:
            self._say("tokens and events go over the network as they are: give a certificate, or listen behind a proxy with TLS")
        self._thread.start()
        self._listening.result()

    def wait(self, timeout: float | None = None) -> None:
        """Until it has ended. Why it had to is raised."""
        self._ended.result(timeout)

    def stop(self) -> None:
        """Let those who wait have their answers, and end."""
        if self._loop is not None and self._stop is not None and not self._ended.done():
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join()

    # ---- in the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._fail(error)
        for future in (self._ended, self._listening):
            if not future.done():
                future.set_result(None)  # type: ignore[arg-type]

    def _fail(self, error: BaseException) -> None:
        for future in (self._ended, self._listening):
            if not future.done():
                future.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        _allow_files(self.options.limits.connections + SPARE_FILES)
        bound, context = _bound(self.options), _tls(self.options)
        outside = Outside(self.front, self._texts, self._door, self.options, self._ready, self._say, self._broke)
        handshake = None if context is None else HANDSHAKE_S
        listener = await self._loop.create_server(
            outside.connections, sock=bound, ssl=context, ssl_handshake_timeout=handshake, backlog=BACKLOG
        )
        self._listening.set_result(listener.sockets[0].getsockname()[1])
        try:
            await self._stop.wait()
        finally:
            listener.close()
            await outside.end(hurry=self._ended.done)

    def _broke(self, error: Exception) -> None:
        """The front cannot go on. Those who wait are told, and it ends."""
        self._say(str(error) if isinstance(error, HeadraceError) else told(error))
        if not self._ended.done():
            self._ended.set_exception(error)
        if self._stop is not None:
            self._stop.set()


def _check(options: Options, door: Doorkeeper) -> None:
    if door.open and not options.loopback:
        message = f"without tokens nobody but this machine is answered, and {options.host} is reached from others"
        raise QueryError(message, hint="make a token with headrace token add, or listen on 127.0.0.1")
    if (options.cert is None) != (options.key is None):
        raise QueryError("TLS takes a certificate and its key, and one of them is missing")


def _bound(options: Options) -> socket.socket:
    """A socket with this address. Connections that nobody could serve wait in its backlog."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, proto)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        message = f"{options.host}, port {options.port}: {error.strerror or error}"
        raise SystemFailure(message, hint="choose another --port, or 0 for any that is free") from error
    return found


def _tls(options: Options) -> ssl.SSLContext | None:
    if options.cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.cert, options.key)
    except (OSError, ssl.SSLError) as error:
        raise SystemFailure(f"{options.cert}: {error}", hint="a certificate and its key, both in PEM") from error
    return context


def _allow_files(wanted: int) -> None:
    """As many open files as connections need, as far as this process may have them."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY and now < wanted:
        able = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, able), most))
