"""SOURCE FILE(..) | HOST(..) | GENERATE(..) | DATAFRAME(..)."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import unknown
from headrace.plan.schema import Schema
from headrace.plan.sinks import ENDINGS
from headrace.plan.stream import FileSource, FrameSource, GenerateSource, HostSource, Source
from headrace.sql.errors import Span
from headrace.sql.parse.durations import whole_number
from headrace.sql.parse.syntax import Name
from headrace.sql.parse.tokens import STRINGS, Cursor, span, words

FORMATS = ("csv", "json", "parquet")


def generated_schemas() -> dict[str, Schema]:
    """The kinds of GENERATE and their columns; read where a script asks for them."""
    from headrace.generate import SCHEMAS

    return dict(SCHEMAS)


def source(cursor: Cursor) -> tuple[Source, Span]:
    """Read what stands after SOURCE."""
    start = cursor.index
    kind = cursor.expect(*SOURCES)
    cursor.expect("(")
    found = SOURCES[kind](cursor)
    cursor.expect(")", what="',' or ')'")
    return found, cursor.since(start)


def _file(cursor: Cursor) -> FileSource:
    path = cursor.string("a path in quotes").text
    kind, delimiter = _format(cursor, FORMATS)
    if kind is None and delimiter is not None:
        kind = "csv"
    named = next((kind for ending, kind in ENDINGS.items() if path.lower().endswith(ending) and kind in FORMATS), "auto")
    return FileSource(path, kind or named, delimiter or ("\t" if path.endswith(".tsv") else ","))


def _host(cursor: Cursor) -> HostSource:
    host = cursor.string("a host in quotes").text
    cursor.expect(",", what="',' and a port")
    where = cursor.here()
    port = whole_number(cursor, "a port number")
    if not 0 < port < 65536:
        raise cursor.text.error(f"{port} is not a port", where, hint="ports go from 1 to 65535")
    kind, delimiter = _format(cursor, ("csv", "json"))
    return HostSource(host, port, kind or "csv", delimiter or ",")


def _format(cursor: Cursor, formats: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Format and delimiter, by name or by what they look like."""
    found: dict[str, str] = {}
    while cursor.accept(","):
        named = cursor.accept("FORMAT", "DELIMITER")
        if named:
            cursor.expect("=>", what=f"'=>' after {named}")
        value = cursor.string("a format or a delimiter in quotes")
        slot = (named or ("FORMAT" if len(value.text) > 1 else "DELIMITER")).lower()
        if slot in found:
            raise cursor.text.error(f"the {slot} is there twice", value.span)
        _check_format(cursor, slot, value, formats)
        found[slot] = value.text.lower() if slot == "format" else value.text
    return found.get("format"), found.get("delimiter")


def _check_format(cursor: Cursor, slot: str, value: Name, formats: tuple[str, ...]) -> None:
    if slot == "format" and value.text.lower() not in formats:
        raise cursor.text.error(unknown("format", value.text, formats), value.span, hint="a delimiter is one character")
    if slot == "delimiter" and len(value.text) != 1:
        raise cursor.text.error(f"a delimiter is one character, not {value.text!r}", value.span)


def _generate(cursor: Cursor) -> GenerateSource:
    kind = cursor.string("what to generate, in quotes") if _at_string(cursor) else cursor.name("what to generate")
    known = generated_schemas()
    if kind.text.lower() not in known:
        raise cursor.text.error(unknown("generator", kind.text, known), kind.span)
    options: list[tuple[str, str]] = []
    while cursor.accept(","):
        name = cursor.name("an option, for example rate => 100")
        cursor.expect("=>", what=f"'=>' after {name.text}")
        if any(name.text.lower() == n for n, _ in options):
            raise cursor.text.error(f"the option {name.text} is there twice", name.span)
        options.append((name.text.lower(), _value(cursor)))
    return GenerateSource(kind.text.lower(), tuple(options))


SOURCES: dict[str, Callable[[Cursor], Source]] = {
    "FILE": _file, "HOST": _host, "GENERATE": _generate,
    "DATAFRAME": lambda cursor: FrameSource(cursor.name("the name of a DataFrame").text),
}  # fmt: skip


def _at_string(cursor: Cursor) -> bool:
    token = cursor.peek()
    return token is not None and token.token_type in STRINGS


def _value(cursor: Cursor) -> str:
    """A string, a number, a word, or a number with a unit, as text."""
    if _at_string(cursor):
        return cursor.string("a value").text
    start = cursor.index
    while (token := cursor.peek()) is not None and (words(token) and token.text not in (",", ")", "(", "=>", "[", "]")):
        cursor.index += 1
    if cursor.index == start:
        raise cursor.expected("a value")
    taken = cursor.tokens[start : cursor.index]
    return " ".join(cursor.text.slice(span(taken[0]).to(span(taken[-1]))).split())
