"""The implementations, by name. An address is a text, so that processes which a test starts open the same log.

They import what they need and nothing else: a process that is to be killed has to start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.log.log import Log

SMALL_SEGMENT = 400
USUAL_SEGMENT = 64 * 1024


def open_log(kind: str, address: str, *, small: bool = False) -> Log:
    """`small`: a segment has a few records. Others are small enough that processes begin many while they append."""
    segment = SMALL_SEGMENT if small else USUAL_SEGMENT
    match kind:
        case "files":
            from headrace.log.files import FileLog

            return FileLog(address, segment_bytes=segment)
        case "kafka":
            from headrace.log.kafka import KafkaLog

            brokers, prefix = address.split("/")
            how = {"fetch_ms": 5, "stale_s": 0.0} if small else {}  # histories look at each other's work at every step
            return KafkaLog(brokers, prefix, **how)
    raise ValueError(f"no log is called {kind!r}")
