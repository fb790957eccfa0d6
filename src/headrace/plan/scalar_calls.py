"""Calls of functions, as they are written for Spark: by its name, with the arguments in its order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError


@dataclass(frozen=True, slots=True)
class Call:
    """A function by Spark's name for it; an argument is None where it is not one of the parts as it stands."""

    name: str
    arguments: tuple[exp.Expr | None, ...]


def call_of(node: exp.Func) -> Call | None:
    """The call that a function is written as for Spark, which is what will be run; None if it is not in the form of one."""
    parts: list[exp.Expr] = []

    def stand_in(part: object) -> object:
        if isinstance(part, list):
            return [stand_in(p) for p in part]
        if not isinstance(part, exp.Expr):
            return part
        if isinstance(part, exp.TsOrDsToDate):  # Spark is not told of some of them
            return exp.TsOrDsToDate(this=stand_in(part.this))
        if not isinstance(part, exp.Condition) or isinstance(part, exp.Var):
            return part.copy()
        parts.append(part)
        return exp.column(f"__a{len(parts) - 1}")

    try:
        shape = type(node)(**{key: stand_in(part) for key, part in node.args.items()})
        text = shape.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError):
        return None  # what cannot be written that way is not known
    found = re.fullmatch(r"(\w+)\(([^()]*)\)", text)
    if found is None:
        return None
    given = [a.strip() for a in found[2].split(",")] if found[2].strip() else []
    named = {f"__a{i}": part for i, part in enumerate(parts)}
    return Call(found[1].lower(), tuple(named.get(a) for a in given))
