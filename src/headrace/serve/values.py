"""Values of rows in records of the log: what msgpack can hold. A DECIMAL is its text there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.plan.arrow import arrow_type

Change = Callable[[Any], Any]


def wire(types: Sequence[str]) -> tuple[Callable[[Sequence[Any]], Sequence[Any]], Callable[[Sequence[Any]], Sequence[Any]]]:
    """How rows of these types are put into a record, and taken out of it."""
    kinds = [arrow_type(t) for t in types]
    return _by_place([_packing(k) for k in kinds]), _by_place([_unpacking(k) for k in kinds])


def _by_place(changes: Sequence[Change | None]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    some = [(i, change) for i, change in enumerate(changes) if change is not None]
    if not some:
        return lambda row: row

    def changed(row: Sequence[Any]) -> Sequence[Any]:
        out = list(row)
        for i, change in some:
            if out[i] is not None:
                out[i] = change(out[i])
        return out

    return changed


def _packing(kind: pa.DataType) -> Change | None:
    return _deep(kind, lambda value: format(value, "f"))


def _unpacking(kind: pa.DataType) -> Change | None:
    return _deep(kind, Decimal)


def _deep(kind: pa.DataType, of_decimal: Change) -> Change | None:
    """A change of all DECIMALs in a value; None: there are none."""
    if pa.types.is_decimal(kind):
        return of_decimal
    if pa.types.is_list(kind):
        inner = _deep(kind.value_type, of_decimal)
        return inner and (lambda value: [None if v is None else inner(v) for v in value])
    if pa.types.is_map(kind):
        keys, items = _deep(kind.key_type, of_decimal), _deep(kind.item_type, of_decimal)
        return (keys or items) and (
            lambda value: {keys(k) if keys else k: items(v) if items and v is not None else v for k, v in value.items()}
        )
    if pa.types.is_struct(kind):
        parts = [_deep(part.type, of_decimal) for part in kind]
        if not any(parts):
            return None
        return lambda value: [v if v is None or p is None else p(v) for p, v in zip(parts, value, strict=True)]
    return None
