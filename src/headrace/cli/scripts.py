"""Reading a script from a file or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.errors import QueryError
from headrace.plan.query import Script
from headrace.plan.stream import GenerateSource


def load(path: str) -> Script:
    return parse(*read(path))


def parse(text: str, name: str, profile: str | None = None) -> Script:
    """Parse a script that asks for something, under a profile if one is named."""
    from headrace.sql import parse_script

    if not text.strip():
        raise QueryError("there is nothing in it", where=name, hint="write a CREATE STREAM and a SELECT; see docs/language.md")
    script: Script = parse_script(text, name, profile=profile)
    if not script.queries and not script.answers:
        raise QueryError("it declares streams but asks for nothing", where=name, hint="add a SELECT")
    check_options(script)
    return script


def check_options(script: Script) -> None:
    """Refuse a bad option of a generator before anything runs."""
    for stream in script.streams:
        if isinstance(stream.source, GenerateSource):
            from headrace.generate import parse_options

            parse_options(stream.source.kind, stream.source.options)


def read(path: str) -> tuple[str, str]:
    if path == "-":
        return sys.stdin.read(), "standard input"
    file = Path(path)
    if file.is_dir():
        raise QueryError("that is a directory", where=path, hint="name a script, for example examples/fraud.cql")
    if not file.exists():
        near = sorted(str(p) for p in file.parent.glob("*.cql")) if file.parent.is_dir() else []
        raise QueryError("there is no such script", where=path, hint=f"here are: {', '.join(near)}" if near else None)
    try:
        return file.read_text(encoding="utf-8"), path
    except UnicodeDecodeError as error:
        raise QueryError(f"not UTF-8 text (byte {error.start})", where=path) from error
