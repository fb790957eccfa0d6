"""A process that has loaded what Spark's Python processes need, and forks them: `python -m headrace.spark.workers.zygote SOCKET`.

For one query Spark starts some six Python processes, one after the other: to find Python data sources, to make the sink, to plan
its writing, to see what state there is, the daemon of the workers, and one that commits. Each would import PySpark, pandas and
Arrow. Here they are imported once, while the JVM starts. What Spark runs as Python (`python.sh`, `stub.py`) hands over its
arguments, its environment and its standard streams, and waits for the exit code.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

MOST = 1 << 20  # of arguments and environment
BACKLOG = 64


def listen_at(path: str) -> socket.socket:
    """A socket that is there before anything is loaded: who comes early waits."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(BACKLOG)
    return server


def load() -> None:
    """What the processes need. No thread may run when they are forked: see `headrace.spark.workers.daemon`."""
    from headrace.spark.exchange import bucket  # noqa: F401
    from headrace.spark.workers import daemon  # noqa: F401

    gc.collect()
    gc.freeze()


@dataclass(slots=True)
class Zygote:
    """The processes that were forked, each with the connection over which it was asked for."""

    server: socket.socket
    children: dict[int, socket.socket] = field(default_factory=dict)

    def serve(self) -> None:
        """Until standard input ends, which whoever started this process holds open."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            watched = {s.fileno(): pid for pid, s in self.children.items()}
            ready, _, _ = select.select([0, read, self.server.fileno(), *watched], [], [])
            if 0 in ready and not os.read(0, 1):
                return
            if read in ready:
                os.read(read, 4096)
                self._reap()
            if self.server.fileno() in ready:
                self._accept((read, write))
            for number in ready:
                if number in watched and watched[number] in self.children:
                    self._gone(watched[number])

    def _accept(self, pipe: tuple[int, int]) -> None:
        connection, _ = self.server.accept()
        try:
            data, streams = _receive(connection)
        except (OSError, ValueError):
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (*pipe, *(s.fileno() for s in (self.server, connection, *self.children.values()))):
                os.close(descriptor)
            _become(data, streams)
        for descriptor in streams:
            os.close(descriptor)
        self.children[pid] = connection

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            connection = self.children.pop(pid, None)
            if connection is not None:
                code = os.waitstatus_to_exitcode(status)
                with suppress(OSError), connection:
                    connection.sendall(bytes([code if code >= 0 else 128 - code]))

    def _gone(self, pid: int) -> None:
        """Whoever asked for a process has been killed: that was meant for the process."""
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        self.children.pop(pid).close()


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, streams, _, _ = socket.recv_fds(connection, MOST, 3)
    while not data.endswith(b"\0"):
        more = connection.recv(MOST)
        if not more:
            raise ValueError("half a request")
        data += more
    return json.loads(data[:-1]), streams


def _become(asked: dict[str, Any], streams: list[int]) -> NoReturn:
    code = 1
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _call_itself(sys.executable, *asked["arguments"])
        os.chdir(asked["directory"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.stdin = os.fdopen(0, closefd=False)
        code = _run(asked["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _call_itself(*words: str) -> None:
    """Show this command line to who lists processes (Linux): written where the kernel looks for it, as far as there is room."""
    try:
        with open("/proc/self/stat") as about:
            start, end = map(int, about.read().rsplit(")", 1)[1].split()[45:47])
    except (OSError, ValueError):
        return
    if end > start > 0:
        ctypes.memmove(start, "\0".join(words).encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


def _run(arguments: list[str]) -> int:
    if arguments[:1] != ["-m"] or len(arguments) < 2:
        os.execv(sys.executable, [sys.executable, *arguments])
    random.seed()
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = list(dict.fromkeys([os.getcwd(), *path, *sys.path]))
    sys.argv = ["", *arguments[2:]]  # run_module fills in the first
    sys.modules.pop(arguments[1], None)  # runpy would warn of a module that is loaded already
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    return 0


def main(path: str) -> None:
    server = listen_at(path)
    load()
    Zygote(server).serve()


if __name__ == "__main__":
    main(sys.argv[1])
