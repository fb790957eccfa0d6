"""The entry point of the `headrace` command. It imports little: the JVM of a run starts before anything else is loaded."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM: to be treated as Ctrl-C is, but for the exit code."""


def main() -> None:
    signal.signal(signal.SIGTERM, terminate)
    name = next(iter(sys.argv[1:]), "")
    if name == "run" and not {"-v", "--verbose", "-h", "--help"} & set(sys.argv):
        from headrace.spark.jvm.process import begin

        begin()
    from headrace.cli.commands import COMMANDS, command_line

    command_line(*([name] if name in COMMANDS else []))()


def terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headrace.cli.commands import command_line

    return command_line()


if __name__ == "__main__":
    main()
