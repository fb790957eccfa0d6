"""Says which unit has which partitions, and hears of their deaths: by a connection that closes, or a heartbeat that stays out.

Units connect to it, a line of JSON for each message: a unit says who it is and, again and again, that it is well; it is told what
it has.
Epochs go on from those that were given before, which lie in the store with the commits: so a coordinator may die as well.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from headrace.log.log import At
from headrace.serve.assignment import Assignment
from headrace.serve.unit import Assign, Stop

BEAT_S = 0.25  # between two heartbeats of a unit
SILENT_S = 2.0  # without one a unit is taken to hang


@dataclass(slots=True)
class Member:
    """A unit that is connected."""

    connection: socket.socket
    heard: float = field(default_factory=time.monotonic)
    process: int = 0


class Coordinator:
    """Listens on loopback, or on an address that others reach."""

    def __init__(self, partitions: Sequence[At], epochs: Mapping[At, int], secret: str, host: str = "127.0.0.1") -> None:
        """`epochs`: the highest of each partition so far. `secret`: what units must know."""
        self.assignment = Assignment(partitions, epochs=dict(epochs))
        self._secret, self._guard, self._closed = secret, threading.Lock(), False
        self._members: dict[int, Member] = {}
        self._server = socket.create_server((host, 0))
        self.address: tuple[str, int] = self._server.getsockname()[:2]
        self.changed = threading.Condition(self._guard)
        for work in (self._accept, self._watch):
            threading.Thread(target=work, daemon=True, name=f"coordinator {work.__name__}").start()

    def members(self) -> dict[int, int]:
        """The units that are there, with their processes."""
        with self._guard:
            return {unit: member.process for unit, member in self._members.items()}

    def wait_for(self, units: int, seconds: float) -> bool:
        """Until so many units are there."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self._members) >= units, seconds)

    def stop(self) -> None:
        """Tell all units to save and end."""
        with self._guard:
            self._closed = True
            for member in self._members.values():
                _tell(member.connection, {"stop": True})
        self._server.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """One unit, from its first word to its end."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        unit = None
        with suppress(OSError, ValueError), connection, connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if unit is None:
                    if message.get("secret") != self._secret:
                        return
                    unit = int(message["unit"])
                    self._join(unit, Member(connection, process=int(message["process"])))
                else:
                    self._members[unit].heard = time.monotonic()
        if unit is not None:
            self._leave(unit, connection)

    def _join(self, unit: int, member: Member) -> None:
        with self.changed:
            old = self._members.get(unit)
            if old is not None:
                _cut(old.connection)
            self._members[unit] = member
            self._share(always=unit)

    def _leave(self, unit: int, connection: socket.socket) -> None:
        with self.changed:
            member = self._members.get(unit)
            if member is not None and member.connection is connection:
                del self._members[unit]
                self._share()

    def _share(self, always: int | None = None) -> None:
        """What has changed is told."""
        told = self.assignment.give(self._members.keys())
        for unit in told | ({always} if always is not None else set()):
            epochs = self.assignment.of(unit)
            _tell(self._members[unit].connection, {"assign": [[at.topic, at.partition, e] for at, e in epochs.items()]})
        self.changed.notify_all()

    def _watch(self) -> None:
        """A unit that hangs has its connection cut: then it is dead."""
        while not self._closed:
            time.sleep(BEAT_S)
            with self._guard:
                silent = [m for m in self._members.values() if time.monotonic() - m.heard > SILENT_S]
            for member in silent:
                _cut(member.connection)


class Link:
    """A unit's side: its orders, and its heartbeats."""

    def __init__(self, address: tuple[str, int], unit: int, process: int, secret: str) -> None:
        self._connection = socket.create_connection(address)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._orders: list[Assign | Stop] = []
        self._guard, self._well = threading.Lock(), True
        _tell(self._connection, {"unit": unit, "process": process, "secret": secret})
        for work in (self._listen, self._beat):
            threading.Thread(target=work, daemon=True, name=f"unit {unit} {work.__name__}").start()

    def orders(self) -> list[Assign | Stop]:
        """Asked for in every round of the loop: a unit that does not ask any more hangs."""
        self._well = True
        if not self._orders:
            return []
        with self._guard:
            orders, self._orders = self._orders, []
        return orders

    def close(self) -> None:
        _cut(self._connection)

    def _listen(self) -> None:
        with suppress(OSError, ValueError), self._connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                self._put(_order(json.loads(line)))
        self._put(Assign({}))  # nobody knows of this unit any more: another has its partitions
        self._put(Stop())

    def _put(self, order: Assign | Stop) -> None:
        with self._guard:
            self._orders.append(order)

    def _beat(self) -> None:
        there = True
        while there:
            if self._well:
                self._well, there = False, _tell(self._connection, {})
            time.sleep(BEAT_S)


def _order(message: Mapping[str, object]) -> Assign | Stop:
    if message.get("stop"):
        return Stop()
    found = message["assign"]
    assert isinstance(found, list)
    return Assign({At(topic, partition): epoch for topic, partition, epoch in found})


def _tell(connection: socket.socket, message: Mapping[str, object]) -> bool:
    try:
        connection.sendall((json.dumps(message) + "\n").encode())
    except OSError:
        return False
    return True


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
