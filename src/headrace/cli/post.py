"""`headrace post`: events from standard input to a deployment that is served, and its replies to standard output."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.status import Status

from headrace.cli.consoles import err, say
from headrace.cli.failures import FAILED, reported
from headrace.client import Answered, Client, Late, Promised, Rejected
from headrace.client.replies import read_reply

CHUNK = 1 << 16
AT_ONCE = 500
WORDS = {Answered: "answered", Late: "late", Promised: "punctuation", Rejected: "rejected"}


def post(
    url: Annotated[str, typer.Argument(help="Where the front end listens: http://127.0.0.1:8080")],
    stream: Annotated[str, typer.Argument(help="The stream that the events are of.")],
    token_file: Annotated[Path | None, typer.Option(help="A file with the token; or set HEADRACE_TOKEN.")] = None,
    ca: Annotated[Path | None, typer.Option(help="Certificates to trust, in PEM.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds until events must be answered, all tries together.")] = 60.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks of unexpected errors.")] = False,
) -> None:
    """Post events, a line of JSON each, from standard input; print the reply to each of them, a line each, in order.

    A post that fails is tried again with the same id, so an event counts once.

    [bold]Examples[/]
      echo '{"card": "a", "amount": 10, "at": "2026-01-01T00:00:00Z"}' |
        headrace post http://127.0.0.1:8080 payments
      headrace generate payments --format json |
        HEADRACE_TOKEN=hr_... headrace post https://host:8443 payments > replies.jsonl
    """
    with reported(verbose):
        token = token_file.read_text(encoding="utf-8").strip() if token_file else os.environ.get("HEADRACE_TOKEN")
        began, run, found = time.monotonic(), uuid.uuid4().hex, Counter[str]()
        with Client(url, token, timeout=timeout, ca=ca) as client, Shown() as shown:
            for number, lines in enumerate(_batches(sys.stdin.buffer)):
                for reply in client.post_lines(stream, lines, f"{run}.{number}"):
                    found[WORDS.get(type(read_reply(reply)), "unanswered")] += 1
                    sys.stdout.write(reply.decode() + "\n")
                sys.stdout.flush()
                shown.show(_summary(found, time.monotonic() - began))
        say(_summary(found, time.monotonic() - began))
        if found["rejected"] or found["unanswered"]:
            raise typer.Exit(FAILED)


class Shown:
    """One line that stays in place, where somebody looks."""

    def __init__(self) -> None:
        console = err()
        self._status = Status("posting", console=console) if console.is_terminal else None

    def __enter__(self) -> Shown:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *of: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)


def _batches(file: BinaryIO) -> Iterator[list[bytes]]:
    """What is there by now, a batch; so events that come slowly are posted as they come."""
    rest = b""
    while data := file.read1(CHUNK) if hasattr(file, "read1") else file.read(CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        yield from _cut(lines)
    yield from _cut([rest])


def _cut(lines: list[bytes]) -> Iterator[list[bytes]]:
    some = [line for line in lines if line.strip()]
    for first in range(0, len(some), AT_ONCE):
        yield some[first : first + AT_ONCE]


def _summary(found: Counter[str], seconds: float) -> str:
    every = sum(found.values())
    parts = [f"{every:,} events", *(f"{found[word]:,} {word}" for word in (*WORDS.values(), "unanswered") if found[word])]
    return f"{', '.join(parts)}; {seconds:.1f} s, {every / seconds if seconds else 0:,.0f} a second"
