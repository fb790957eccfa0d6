"""What a file is, by what is in it."""

from __future__ import annotations

import json
import re
from typing import Any

from headrace.files.opening import BROKEN, open_file

LOOK = 1 << 16  # bytes of a file that are looked at
BOM = b"\xef\xbb\xbf"
MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "zip", b"ORC": "orc", b"Obj\x01": "avro", b"ARROW1": "arrow", b"\xd0\xcf": "xls"}
NOT_UTF8 = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
TEXTS = ("csv", "json")


def format_of(head: bytes) -> str | None:
    """The format of a file that begins so: csv, json, parquet, one that cannot be read, or None if there is nothing in it."""
    for magic, kind in {**MAGIC, **NOT_UTF8}.items():
        if head.startswith(magic):
            return kind
    text = head.removeprefix(BOM).lstrip()
    if not text:
        return None
    return "json" if text[:1] in b"{[" and _looks_like_json(text) else "csv"


def _looks_like_json(text: bytes) -> bool:
    """Whether what begins with a bracket goes on as JSON does. Not all of it may be here."""
    first = text.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    begun = re.match(rb'\{\s*("([^"\\]|\\.)*"\s*:|\})|\[\s*([\[{"\d\]-]|$)', text)
    return begun is not None or json_value(first) is not None


def json_value(text: str | bytes) -> Any:
    """What a text says in JSON; None if it says nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def look(path: str, size: int = LOOK) -> bytes:
    """The first bytes of a file, unpacked; what can be had of them if it is damaged."""
    with open_file(path) as file:
        try:
            return file.read(size)
        except BROKEN:
            return b""
