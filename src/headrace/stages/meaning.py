"""What parts of a plan mean, written out: equal texts, equal meaning, whatever they are called and wherever they stand."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, get_args

from headrace.plan.nodes import Node, Scan, children
from headrace.plan.patterns import Place
from headrace.program.script import Asked, ScriptProgram

if TYPE_CHECKING:
    from headrace.stages.lower import Lowered


def meaning(what: object) -> str:
    """As text: plans with all that is below them, and what several parts together mean."""
    match what:
        case None:
            return ""
        case Enum():
            return str(what.value)
        case tuple():
            return f"({'; '.join(map(meaning, what))})"
        case Place():
            return f"{what} of {meaning(what.input)}"
        case Scan(stream=stream):
            return stream.name
        case _ if isinstance(what, get_args(Node)):
            return f"{what} over ({', '.join(map(meaning, children(what)))})"
    return str(what)


def program_of(lowered: Lowered) -> ScriptProgram:
    """What a checkpoint remembers of a script."""
    feeds = tuple((f.query.name, f"{f.query.emit.value} {meaning(f.query.node)}") for f in lowered.feeds)
    queries = tuple(
        Asked(f.query.name, f.query.emit, meaning(f.query.node), lowered.apart.get(f.query.name, "")) for f in lowered.finishes
    )
    return ScriptProgram(lowered.stages, feeds, queries)
