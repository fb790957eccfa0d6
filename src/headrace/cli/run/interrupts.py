"""Ctrl-C and SIGTERM while a script runs."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType
from typing import Any

from headrace.cli.main import Terminated

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The first Ctrl-C, or SIGTERM, asks a run to stop, the next one ends everything at once.

    While a run goes on, most of the time is spent waiting for the JVM. An exception thrown into that leaves the connection
    half read, so the first one only leaves a note.
    """

    def __init__(self) -> None:
        self.running = self.asked = False
        self.number = signal.SIGINT  # the signal that came last
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        logging.getLogger().addHandler(logging.NullHandler())  # py4j reports an interrupted call to whoever listens
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        if self.running and not self.asked:
            self.asked = True
            return
        raise self.exception

    @property
    def exception(self) -> KeyboardInterrupt:
        """What ends a command that was interrupted: its exit code tells by which signal."""
        return Terminated() if self.number == signal.SIGTERM else KeyboardInterrupt()
