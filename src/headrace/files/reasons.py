"""Why a record of JSON does not fit the declared columns, in words: the same for a file and for an event that was posted."""

from __future__ import annotations

import json
from collections.abc import Iterable

from headrace.plan.schema import Schema


def shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def json_reason(text: str, nulls: Iterable[int], schema: Schema) -> str:
    """`nulls` are the numbers of columns that could not be read at all, or were not there."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    given = {str(key).lower(): value for key, value in found.items()}
    for number in nulls:
        field = schema.fields[number]
        if given.get(field.name.lower()) is not None:
            return f"column {field.name!r} is {field.type}, and here is {shown(given[field.name.lower()])}"
    nested = [f for f in schema.fields if "<" in f.type and given.get(f.name.lower()) is not None]
    if nested:  # of them what could be read is there
        texts = [f"{f.name!r} is {f.type}, and here is {shown(given[f.name.lower()])}" for f in nested]
        return f"column {texts[0]}" if len(texts) == 1 else f"one of these columns does not fit: {'; '.join(texts)}"
    return "it does not fit the declared columns"
