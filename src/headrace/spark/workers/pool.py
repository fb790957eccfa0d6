"""Python workers that stay with their partitions: the state a worker has in memory is of use only if its next batch comes to it.

Spark hands a task to whichever Python process it finds idle, so most batches would load from the state store what another process
still has. Here the processes are only Spark's by name. The daemon keeps the connections that Spark opens; when a task begins on
one, it looks at whose it is, and lends the connection to the process that had this partition last.
"""

from __future__ import annotations

import gc
import io
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

import numpy as np
from pyspark.core.broadcast import _broadcastRegistry as broadcasts
from pyspark.daemon import worker as run_task
from pyspark.serializers import UTF8Deserializer, read_int, write_int
from pyspark.util import enable_faulthandler
from pyspark.worker_message import BroadcastInfo

MOST_OWNERS = 10_000  # tasks that are remembered: partitions of queries, those of queries long gone included
PEEK = 1 << 16
CLEAN_S = 1.0
DONE = b"d"
BOUND = b"b"  # done, and Spark counts on this process for the next task on the connection

Task = tuple[str, int, int]  # query, kind of function, partition


@dataclass(eq=False, slots=True)
class Connection:
    """What Spark takes for a process: where it sends tasks, and the number it was told."""

    sock: socket.socket
    pid: int
    authenticated: bool
    bound: Process | None = None  # no other will do: it has the broadcasts that Spark sent here, and sends once


@dataclass(eq=False, slots=True)
class Process:
    """A process that runs tasks, one at a time."""

    pid: int
    link: socket.socket  # connections go there; a byte comes back for each that is free again
    serves: Connection | None = None
    bound: Connection | None = None
    doomed: bool = False  # it has been killed, though it may just have said that it is done
    tasks: int = 0  # that would come here


@dataclass(slots=True)
class Pool:
    """All processes and connections of one daemon."""

    listen: socket.socket
    authenticated: bool  # without asking for a secret
    reuse: bool
    fixed: bool = False  # every process stays with the connection it was made for
    poller: Any = field(default_factory=select.poll)
    connections: dict[int, Connection] = field(default_factory=dict)  # by descriptor
    processes: dict[int, Process] = field(default_factory=dict)  # by descriptor of the link
    owners: OrderedDict[Task, Process] = field(default_factory=OrderedDict)  # the process that had a task last

    def serve(self, commands: BinaryIO) -> None:
        """Until Spark closes `commands`, on which it says which processes to kill."""
        self.poller.register(commands, select.POLLIN)
        self.poller.register(self.listen, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in self.poller.poll()]
            for descriptor in sorted(ready, key=self.connections.__contains__):  # who is free is known before tasks are given out
                if descriptor == commands.fileno():
                    try:
                        self.kill(read_int(commands))
                    except EOFError:
                        return
                elif descriptor == self.listen.fileno():
                    self.accept()
                elif descriptor in self.connections:
                    self.begin(self.connections[descriptor])
                elif descriptor in self.processes:
                    self.end(self.processes[descriptor])

    def accept(self) -> None:
        sock, _ = self.listen.accept()
        try:
            process = self._fork(sock)
        except OSError as error:
            with sock, sock.makefile("wb") as out:
                write_int(-error.errno if error.errno else -1, out)  # what is below zero, Spark takes for a failure
            return
        with suppress(OSError), sock.makefile("wb") as out:  # if Spark is gone, its end of the connection says so next
            write_int(process.pid, out)
        connection = Connection(sock, process.pid, self.authenticated)
        if self.fixed:
            _bind(connection, process)
        self.connections[sock.fileno()] = connection
        self.poller.register(sock, select.POLLIN)

    def _fork(self, sock: socket.socket) -> Process:
        """A new process. It has no use for the connection that it is made for until that is lent to it."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self._close_all(ours, sock)
                _live(theirs, self.reuse, self.fixed)
            finally:
                os._exit(1)  # never back into the daemon's own loop
        theirs.close()
        process = Process(pid, ours)
        self.processes[ours.fileno()] = process
        self.poller.register(ours, select.POLLIN)
        return process

    def _close_all(self, *more: socket.socket) -> None:
        """In a new process: what others hold open must end when they do."""
        for sock in (self.listen, *more):
            sock.close()
        for connection in self.connections.values():
            connection.sock.close()
        for process in self.processes.values():
            process.link.close()
            if process.serves is not None:
                process.serves.sock.close()

    def begin(self, connection: Connection) -> None:
        """A task begins on an idle connection, or Spark has closed it."""
        start = _heard(connection.sock, PEEK, socket.MSG_PEEK)
        if start is None:
            return  # it has the number of one that was ready, and is gone
        process = self._choose(task_of(start), connection) if start else None
        if process is None:
            self._give_up(connection)
            self._trim()
            return
        self._forget(connection)
        process.serves = connection
        with suppress(OSError):  # it has died: its link says so next
            socket.send_fds(process.link, [bytes([connection.authenticated])], [connection.sock.fileno()])
        connection.authenticated = True

    def _choose(self, task: Task | None, connection: Connection) -> Process | None:
        """The idle process that had a task last, or the one that has least to do. There is one, unless some have died."""
        if connection.bound is not None:
            return connection.bound
        idle = [p for p in self.processes.values() if p.serves is None and p.bound is None and not p.doomed]
        if not idle:
            try:
                idle = [self._fork(connection.sock)]
            except OSError:
                return None
        owner = self.owners.pop(task, None) if task is not None else None
        if owner is not None:
            owner.tasks -= 1
        chosen = owner if owner in idle else min(idle, key=lambda p: p.tasks)
        assert chosen is not None
        if task is not None:
            self.owners[task] = chosen
            chosen.tasks += 1
            if len(self.owners) > MOST_OWNERS:
                self.owners.popitem(last=False)[1].tasks -= 1
        return chosen

    def end(self, process: Process) -> None:
        """A process has done its task, or has died."""
        said = _heard(process.link, 1)
        if said is None:
            return
        connection, process.serves = process.serves, None
        if said and connection is not None:
            _bind(connection, process if said == BOUND else None)
            self.connections[connection.sock.fileno()] = connection
            self.poller.register(connection.sock, select.POLLIN)
        elif not said:
            if connection is not None:
                _shut(connection.sock)  # Spark sees that the task has failed
            self._dismiss(process)
        self._trim()

    def kill(self, pid: int) -> None:
        """Spark gives up a connection, by the number it was told: whoever works on it must stop."""
        for process in list(self.processes.values()):
            if process.serves is not None and process.serves.pid == pid:
                process.doomed = True
                with suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)
                return
        for connection in list(self.connections.values()):
            if connection.pid == pid:
                self._give_up(connection)
        self._trim()

    def _give_up(self, connection: Connection) -> None:
        """An idle connection is no more. Who is bound to it has broadcasts that nobody would take away again."""
        self._forget(connection)
        _shut(connection.sock)
        process = connection.bound
        if process is not None:
            _bind(connection, None)
            self._dismiss(process)

    def _trim(self) -> None:
        """As many processes as connections will do: idle ones go that were made for connections that are gone."""
        served = [p.serves for p in self.processes.values() if p.serves is not None]
        told = {c.pid for c in (*self.connections.values(), *served)}
        spare = [p for p in self.processes.values() if p.serves is None and p.bound is None and p.pid not in told]
        for process in spare[: max(0, len(self.processes) - len(told))]:
            self._dismiss(process)

    def _forget(self, connection: Connection) -> None:
        self.poller.unregister(connection.sock)
        del self.connections[connection.sock.fileno()]

    def _dismiss(self, process: Process) -> None:
        """Its link ends, and it does; so does a connection for which no other will do."""
        self.poller.unregister(process.link)
        del self.processes[process.link.fileno()]
        process.link.close()
        for task in [t for t, owner in self.owners.items() if owner is process]:
            del self.owners[task]
        connection = process.bound
        if connection is not None:
            _bind(connection, None)
            if connection.sock.fileno() in self.connections:
                self._give_up(connection)


def _bind(connection: Connection, process: Process | None) -> None:
    """Have a connection and a process for each other only; None: no longer."""
    if connection.bound is not None:
        connection.bound.bound = None
    connection.bound = process
    if process is not None:
        process.bound = connection


def _heard(sock: socket.socket, most: int, flags: int = 0) -> bytes | None:
    """What is there now; empty where the other end is gone, None where it has said nothing."""
    try:
        return sock.recv(most, flags | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _shut(sock: socket.socket) -> None:
    """Whoever else holds it, what a task has started included."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def task_of(start: bytes) -> Task | None:
    """Whose task begins with these bytes; None if they do not say."""
    stream, text = io.BytesIO(start), UTF8Deserializer()
    try:
        read_int(stream), read_int(stream)  # that this is a beginning, and how long it is
        partition = read_int(stream)
        text.loads(stream)  # the version of Python
        properties = json.loads(text.loads(stream))["localProperties"]
        text.loads(stream)  # where files are
        for _ in range(read_int(stream)):
            text.loads(stream)
        BroadcastInfo.from_stream(stream)
        return properties.get("sql.streaming.queryId", ""), read_int(stream), partition
    except Exception:  # whatever is there, any process can run it
        return None


def _live(link: socket.socket, reuse: bool, fixed: bool) -> NoReturn:
    """The life of a process: a connection comes, a task is run on it, the connection is free again."""
    code = 0
    try:
        np.random.seed()  # else all processes would draw the same numbers
        null = os.open(os.devnull, os.O_RDONLY)  # standard input is the daemon's
        os.dup2(null, 0)
        os.close(null)
        cleaned = time.monotonic()
        with enable_faulthandler():
            while code == 0 and (given := socket.recv_fds(link, 1, 1))[1]:
                with socket.socket(fileno=given[1][0]) as sock:
                    sock.set_inheritable(False)  # a program that a task starts must not keep it open
                    code = run_task(sock, given[0] == b"\x01")
                    if code or not reuse:
                        _wait_for_end(sock)
                        break
                link.sendall(BOUND if fixed or broadcasts else DONE)
                cleaned = _clean(cleaned)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _clean(before: float) -> float:
    """Let garbage go after a task: of objects older than the task once in a while, `before` the last time; give that time back.

    Spark's daemon looks at all objects after every task: where there are many, that is most of a short task.
    """
    now = time.monotonic()
    if now - before < CLEAN_S:
        gc.collect(1)
        return before
    gc.collect()
    return now


def _wait_for_end(sock: socket.socket) -> None:
    with suppress(OSError):
        while sock.recv(1024):
            pass
