"""Parts of an expression: each has its type before anything is written, and writes the lines of Python that compute it.

What Spark does not compute is not computed here either, because it might fail: a binary operator whose left side is NULL never
looks at its right side, and only the branch that was chosen is gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from headrace.scalars.row.casts import Cast, cast_of
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.types import BOOLEAN, VOID, Type


@dataclass(slots=True)
class Writer:
    """Lines with their depths, and what they call by a name of its own."""

    java: int
    lines: list[tuple[int, str]] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=lambda: {"Failed": Failed})
    known: dict[int, Atom] = field(default_factory=dict)  # parts that are used again
    depth: int = 2
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append((self.depth, text))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def bind(self, thing: Any) -> str:
        """A name for a function or a constant."""
        name = f"k{len(self.scope)}"
        self.scope[name] = thing
        return name


@dataclass(frozen=True, slots=True)
class Atom:
    """What a part has become: a name or a constant of Python, and whether it may be None."""

    text: str
    null: bool = True


Make = Callable[[Writer, list[str]], str]  # writes what has to come before, and returns the value, of atoms that are not None


@dataclass(frozen=True, slots=True)
class Part:
    """A typed part. A `literal` is written out in the query: Spark gives it no more digits than it has.

    `before` is the integer that was cast to FLOAT: if that becomes a DOUBLE, Spark's optimizer leaves the FLOAT out.
    """

    type: Type
    write: Callable[[Writer], Atom]
    literal: Any = None
    before: Part | None = None


def constant(kind: Type, value: Any) -> Part:
    """A value that is written out."""
    if value is None:
        return Part(kind, lambda _: Atom("None"))
    plain = isinstance(value, bool | int | str | bytes) or (isinstance(value, float) and value - value == 0.0)
    if plain:
        return Part(kind, lambda _: Atom(f"({value!r})" if isinstance(value, int | float) else repr(value), False), value)
    return Part(kind, lambda writer: Atom(writer.bind(value), False), value)


NULL = constant(VOID, None)


def strict(kind: Type, parts: Sequence[Part], make: Make, *, nulls: bool = False) -> Part:
    """NULL where one of the parts is; later ones are then not computed."""

    def write(writer: Writer) -> Atom:
        out, depth, start = writer.name(), writer.depth, len(writer.lines)
        atoms: list[str] = []
        pending: list[str] = []
        for part in parts:
            mark = len(writer.lines)
            atom = part.write(writer)
            if pending and len(writer.lines) > mark:
                written = [(d + 1, text) for d, text in writer.lines[mark:]]
                del writer.lines[mark:]
                _guard(writer, pending)
                writer.lines += written
            pending += [f"{atom.text} is not None"] if atom.null else []
            atoms.append(atom.text)
        _guard(writer, pending)
        writer.line(f"{out} = {make(writer, atoms)}")
        guarded = writer.depth > depth
        if guarded:
            writer.lines.insert(start, (depth, f"{out} = None"))
        writer.depth = depth
        return Atom(out, guarded or nulls)

    return Part(kind, write)


def _guard(writer: Writer, pending: list[str]) -> None:
    if pending:
        writer.line(f"if {' and '.join(dict.fromkeys(pending))}:")
        writer.depth += 1
        pending.clear()


def call(
    kind: Type, function: Callable[..., Any], parts: Sequence[Part], *more: Any, nulls: bool = False, eager: bool = False
) -> Part:
    """What a function makes of the parts, and of what is known already."""

    def make(writer: Writer, atoms: list[str]) -> str:
        given = [*atoms, *(repr(m) if isinstance(m, int | str) else writer.bind(m) for m in more)]
        return f"{writer.bind(function)}({', '.join(given)})"

    return strict(kind, parts, make, nulls=nulls)


def cast(part: Part, kind: Type, java: int) -> Part:
    """A part as another type."""
    if part.type == kind:
        return part
    if part.before is not None and kind.name == "DOUBLE":
        return cast(part.before, kind, java)
    found = cast_of(part.type, kind, java)
    if found.run is None:
        return replace(part, type=kind, literal=None, before=None)
    if kind.name == "FLOAT" and part.type.is_integer:
        return replace(_cast(part, kind, found), before=part)
    return _cast(part, kind, found)


def _cast(part: Part, kind: Type, found: Cast) -> Part:
    run = found.run
    assert run is not None, "it is another value"
    if part.literal is not None and not found.fails:
        return replace(constant(kind, run(part.literal)), literal=None)
    text = _WRITTEN.get((part.type.name, kind.name)) if kind.name != "DECIMAL" else None
    if text is not None:
        return strict(kind, [part], lambda _, atoms: text.format(atoms[0]))
    return strict(kind, [part], lambda writer, atoms: f"{writer.bind(run)}({atoms[0]})", nulls=found.nulls)


# Casts that are written out, because nearly every query has them.
_WRITTEN = {
    **{(kind, "DOUBLE"): "float({0})" for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT")},
    ("TIMESTAMP", "DATE"): "{0} // 86400000000", ("TIMESTAMP", "BIGINT"): "{0} // 1000000",
}  # fmt: skip


def attempt(part: Part, kind: Type, java: int) -> Part:
    """TRY_CAST: NULL where the cast fails; what it is about may fail all the same."""
    found = cast_of(part.type, kind, java)
    if found.run is None or not found.fails:
        return cast(part, kind, java)
    run = found.run

    def tried(value: Any) -> Any:
        try:
            return run(value)
        except Failed:
            return None

    return call(kind, tried, [part], nulls=True)


def both(left: Part, right: Part, *, conjunction: bool) -> Part:
    """AND, or OR: the right side is only computed where it matters."""
    decides, other = ("False", "True") if conjunction else ("True", "False")

    def write(writer: Writer) -> Atom:
        one = left.write(writer)
        out = writer.name()
        writer.line(f"{out} = {decides}")
        with writer.block(f"if {one.text} is not {decides}:"):
            two = right.write(writer)
            if one.null:
                writer.line(f"{out} = {two.text} if {one.text} is {other} else {decides} if {two.text} is {decides} else None")
            else:
                writer.line(f"{out} = {two.text}")
        return Atom(out, one.null or two.null)

    return Part(BOOLEAN, write)


def negated(part: Part) -> Part:
    return strict(BOOLEAN, [part], lambda _, atoms: f"not {atoms[0]}")


def is_null(part: Part) -> Part:
    def write(writer: Writer) -> Atom:
        atom = part.write(writer)
        return Atom(_kept(writer, f"{atom.text} is None") if atom.null else "False", False)

    return Part(BOOLEAN, write)


def is_exactly(part: Part, truth: bool) -> Part:
    """IS TRUE, IS FALSE."""

    def write(writer: Writer) -> Atom:
        return Atom(_kept(writer, f"{part.write(writer).text} is {truth}"), False)

    return Part(BOOLEAN, write)


def _kept(writer: Writer, text: str) -> str:
    name = writer.name()
    writer.line(f"{name} = {text}")
    return name


def choose(kind: Type, branches: Sequence[tuple[Part, Part]], default: Part) -> Part:
    """The value of the first condition that is true, or the default."""

    def write(writer: Writer) -> Atom:
        out, null = writer.name(), False
        with writer.block("while True:"):
            for condition, value in branches:
                test = condition.write(writer)
                with writer.block(f"if {test.text}:"):
                    null |= _gives(writer, out, value)
            null |= _gives(writer, out, default)
        return Atom(out, null)

    return Part(kind, write)


def _gives(writer: Writer, out: str, part: Part) -> bool:
    """The result of a loop that is gone through once; whether it may be NULL."""
    atom = part.write(writer)
    writer.line(f"{out} = {atom.text}")
    writer.line("break")
    return atom.null


def first_there(kind: Type, parts: Sequence[Part]) -> Part:
    """COALESCE: the first that is not NULL."""

    def write(writer: Writer) -> Atom:
        out = writer.name()
        with writer.block("while True:"):
            for part in parts[:-1]:
                atom = part.write(writer)
                if not atom.null:
                    writer.line(f"{out} = {atom.text}")
                    writer.line("break")
                    return Atom(out, False)
                with writer.block(f"if {atom.text} is not None:"):
                    writer.line(f"{out} = {atom.text}")
                    writer.line("break")
            null = _gives(writer, out, parts[-1])
        return Atom(out, null)

    return Part(kind, write)


def kept(part: Part) -> Part:
    """A part that is used several times and computed once, where it is first written."""

    def write(writer: Writer) -> Atom:
        if id(part) not in writer.known:
            writer.known[id(part)] = part.write(writer)
        return writer.known[id(part)]

    return replace(part, write=write)


def digits_needed(literal: int) -> int:
    """Of a whole number that is written out."""
    return len(str(abs(literal)))


def decimal_literal(value: Decimal) -> tuple[int, int]:
    """Precision and scale of a decimal that is written out."""
    scale = max(0, -int(value.as_tuple().exponent))
    return max(len(value.as_tuple().digits), scale), scale
