"""How a front end listens, and what it bears."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What is refused beyond, so that memory has a bound whoever asks for what."""

    body: int = 1 << 20  # bytes of a request, or of a message of a WebSocket
    bodies: int = 64 << 20  # bytes of all bodies that are being read, or waited for
    batch: int = 1_000  # events of a request
    in_flight: int = 4_000  # events whose senders wait for the answers
    in_flight_each: int = 1_000  # of one token
    rate: float | None = None  # events a second of one token
    unanswered: int = 50_000  # events that no unit has answered, whether somebody still waits or not
    connections: int = 2_000
    outbox: int = 4 << 20  # bytes that wait for somebody who reads his WebSocket too slowly


@dataclass(frozen=True, slots=True)
class Options:
    """All of it. Times are seconds."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    cert: Path | None = None
    key: Path | None = None
    tokens: Path | None = None
    limits: Limits = field(default_factory=Limits)
    header_s: float = 10.0  # until the first request of a connection is there with all its headers
    body_s: float = 20.0
    idle_s: float = 75.0  # between two requests of a connection
    answer_s: float = 10.0  # until units must have answered
    grace_s: float = 5.0  # for who waits when the front end ends
    beat_s: float = 1.0
    post_on_thread: bool = False  # where an append takes long (Kafka), so that the others need not wait for it

    @property
    def loopback(self) -> bool:
        """Whether nobody outside this machine can reach it."""
        return self.host == "localhost" or (_is_address(self.host) and ip_address(self.host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
