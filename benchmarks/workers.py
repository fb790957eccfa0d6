"""Memory of Spark's Python workers, watched from the driver (Linux: /proc)."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.session import LOCAL

from .report import NotMeasured

MIB = 1024.0
DAEMONS = (b"pyspark.daemon", LOCAL["spark.python.daemon.module"].encode())  # of an ordinary session, and of ours


@dataclass
class Memory:
    """MiB of resident memory: the most that one worker ever had, and the most that all had at one time."""

    largest: float = 0.0
    total: float = 0.0


class Watch(threading.Thread):
    """Looks at all workers below this process twice a second."""

    def __init__(self) -> None:
        super().__init__(name="worker-memory", daemon=True)
        self.memory, self._halt = Memory(), threading.Event()

    def run(self) -> None:
        while not self._halt.wait(0.5):
            self.look()

    def look(self) -> None:
        seen = [m for m in (_memory(pid) for pid in workers()) if m is not None]
        self.memory.total = max(self.memory.total, sum(now for now, _ in seen))
        self.memory.largest = max([self.memory.largest, *(peak for _, peak in seen)])

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._halt.set()
        self.join()
        self.look()
        if failed is None and not self.memory.largest > 0.0:
            names = " or ".join(name.decode() for name in DAEMONS)
            raise NotMeasured(f"no Python worker was seen below process {os.getpid()}: none is called {names}")


def workers() -> list[int]:
    """Forked by a daemon of Spark: their parent is one too."""
    parents = {int(p.name): _parent(p) for p in Path("/proc").iterdir() if p.name.isdigit()}
    return [pid for pid, up in parents.items() if _is_daemon(pid) and _is_daemon(up) and _below(pid, parents)]


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def _below(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1 and pid != os.getpid():
        pid = parents.get(pid, 0)
    return pid == os.getpid()


def _is_daemon(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(name in words for name in DAEMONS)


def _memory(pid: int) -> tuple[float, float] | None:
    """Now, and at most so far."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [re.search(rf"^{name}:\s+(\d+) kB", text, re.M) for name in ("VmRSS", "VmHWM")]
    return (int(found[0].group(1)) / MIB, int(found[1].group(1)) / MIB) if found[0] and found[1] else None
