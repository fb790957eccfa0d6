"""Ctrl-C while a script runs."""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, TracebackType


class Interrupts:
    """The first Ctrl-C asks a run to stop, the next one ends everything at once.

    While a run goes on, most of the time is spent waiting for the JVM. An exception thrown into that leaves the connection
    half read, so the first Ctrl-C only leaves a note.
    """

    def __init__(self) -> None:
        """Nothing was asked for."""
        self.running = self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        """From now on."""
        logging.getLogger().addHandler(logging.NullHandler())  # py4j reports an interrupted call to whoever listens
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        """As it was."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.running and not self.asked:
            self.asked = True
            return
        raise KeyboardInterrupt
