"""A deployment on a real log, with units in threads, and a front end that listens on loopback."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from served_world import MemoryKeeper

from headrace.log.files import FileLog
from headrace.log.log import At
from headrace.serve.deployment import deploy
from headrace.serve.front import Front
from headrace.serve.http.options import Limits, Options
from headrace.serve.http.server import HttpServer
from headrace.serve.http.tokens import add_token
from headrace.serve.unit import Assign, Unit
from headrace.sql import parse_script

SCRIPT = """CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('payments.csv') TIMESTAMP BY at DELAY 10 SECONDS;
SELECT id, card, SUM(amount) AS total, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card INTO card_profile;
SELECT id, merchant, AVG(amount) AS mean FROM payments [RANGE 5 MINUTES] GROUP BY merchant INTO shop;
EVENT SEQ(payments a, payments b) WHERE a.card = b.card AND b.amount > 10 * a.amount WITHIN 1 MINUTE
  RETURN a.id AS small, b.id AS large INTO jumps;"""
PAYMENTS = "/streams/payments/events"


class World:
    """All of it, in one process."""

    def __init__(
        self, folder: Path, script: str = SCRIPT, units: int = 1, tokens: dict[str, str] | None = None,
        limits: Limits | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """`tokens`: names, and their scopes."""
        self.folder, self.log = folder / "log", FileLog(folder / "log")
        self.deployment = deploy(parse_script(script), partitions=2)
        for topic, partitions in self.deployment.log_topics().items():
            self.log.create(topic, partitions)
        self.keeper, self.said, self.waits = MemoryKeeper(self.deployment), list[str](), list[str]()
        file = folder / "tokens.json" if tokens else None
        self.tokens = {name: add_token(folder / "tokens.json", name, scopes.split()) for name, scopes in (tokens or {}).items()}
        self.options = Options(tokens=file, limits=limits or Limits(), **{"beat_s": 60.0, "grace_s": 0.5, **options})
        self._units: list[Unit] = []
        self._threads: list[threading.Thread] = []
        self._logs: list[FileLog] = []
        self.begin()
        for _ in range(units):
            self.add_unit()

    def begin(self) -> None:
        """A front end, from what the log has. It keeps its port."""
        log = FileLog(self.folder)
        self._logs.append(log)
        self.front = Front(self.deployment, log, 0, lambda: time.time_ns() // 1_000)
        self.server = HttpServer(self.front, self.options, lambda: self.waits, self.said.append)
        self.server.start()
        self.options = replace(self.options, port=urlsplit(self.server.url).port or 0)

    def restart(self) -> None:
        self.server.stop()
        self.begin()

    def add_unit(self) -> None:
        """The first takes all partitions; others would have none."""
        orders: list[Assign] = []
        log = FileLog(self.folder)
        unit = Unit(self.deployment, log, self.keeper, lambda: [orders.pop(0) for _ in range(len(orders))])
        topics = [(self.deployment.log_topic(t), topic) for t, topic in enumerate(self.deployment.topics)]
        orders.append(Assign({At(n, p): 1 for n, t in topics for p in range(t.partitions(self.deployment.partitions))}))
        thread = threading.Thread(target=unit.run, args=(0.05,), daemon=True)
        thread.start()
        self._units.append(unit)
        self._threads.append(thread)
        self._logs.append(log)

    def close(self) -> None:
        with suppress(Exception):
            self.server.stop()
        for unit in self._units:
            unit.running = False
        for thread in self._threads:
            thread.join(5)
        for log in (self.log, *self._logs):
            log.close()

    # ---- asking ---------------------------------------------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.options.port

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body. `token`: by its name."""
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        every = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            every["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, every | (headers or {}))
            got = connection.getresponse()
            text = got.read()
            return got.status, dict(got.getheaders()), _body(got.headers.get_content_type(), text)
        finally:
            connection.close()

    def post(self, body: Any, path: str = PAYMENTS, **more: Any) -> tuple[int, Any]:
        status, _, reply = self.ask("POST", path, body, **more)
        return status, reply

    def metric(self, line: str, **more: Any) -> float:
        """The value of a line of /metrics."""
        text = self.ask("GET", "/metrics", **more)[2]
        return next(float(row.split()[-1]) for row in text.decode().splitlines() if row.startswith(line + " "))


def payment(id: int, card: str = "a", amount: float = 10.0, at: int = 0, merchant: str = "x") -> dict[str, Any]:
    """`at`: seconds after noon."""
    return {"id": id, "card": card, "merchant": merchant, "amount": amount, "at": clock(at)}


def clock(at: int) -> str:
    return f"2026-01-01T12:{at // 60:02}:{at % 60:02}Z"


def _body(kind: str, text: bytes) -> Any:
    match kind:
        case "application/json":
            return json.loads(text)
        case "application/x-ndjson":
            return [json.loads(line) for line in text.splitlines()]
    return text
