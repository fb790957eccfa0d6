"""The state of a task processor, to and from bytes: a small head, and pages of keys of which only changed ones are written.

head           clock, open rows, how many keys each table has, and the head parts of the step
page (t, p)    keys p*PAGE .. of table t, with the key parts that belong to it
chunk c        sealed rows of the reservoir, written once
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.errors import StateError
from headrace.plan.time import START_OF_TIME
from headrace.runtime.processor import TaskProcessor
from headrace.state.codec import decode, encode, fingerprint
from headrace.state.open_rows import dump_open, load_open
from headrace.state.parts import HeadPart, KeyPart, PageStore, State
from headrace.state.tables import PAGE, UNKNOWN, KeyTable, ValueTable


def save(processor: TaskProcessor, pages: PageStore) -> bytes:
    """Write the pages that changed since the last save, and give the head."""
    heads, keyed = _parts(processor)
    for table in range(len(processor.tables)):
        for page in processor.tables.changed(table):
            pages.put_page(f"{table}.{page}", encode(_page(processor, keyed, table, page)))
    processor.step.save_pages(pages)
    head: State = {
        "fingerprint": fingerprint(processor.stage),
        "clock": processor.clock.dump(),
        "counts": [t.count for t in processor.tables],
        "counted": processor.open.counts.view(np.uint8),
        "begun": processor.begun,
        "since": processor.since,
        "fresh": processor.fresh,
        **_named("open", dump_open(processor.open.rows)),
    }
    for part in heads:
        head |= _named(part.name, part.dump())
    for i, keys in enumerate(processor.tables):
        if isinstance(keys, ValueTable):
            head |= _named(f"values{i}", keys.dump())
    return encode(head)


def load(processor: TaskProcessor, head: bytes, pages: PageStore) -> None:
    state = decode(head, "the head of a bucket")
    if state["fingerprint"] != fingerprint(processor.stage):
        raise StateError(
            f"the state of stage {processor.stage.name!r} was written by another query",
            hint="give the changed query a new checkpoint directory",
        )
    opening = processor.open
    processor.clock.load(state["clock"])
    processor.begun, processor.since = state["begun"], state.get("since", START_OF_TIME)
    processor.fresh = state.get("fresh", False)
    opening.rows = load_open(_of(state, "open"), processor.layout, len(opening.rows.wanted))
    opening.counts = state["counted"].view(np.bool_)
    paged = list(_pages(state["counts"]))
    decoded = {name: decode(pages.get_page(name), f"page {name}") for name, *_ in paged}
    for table, count in enumerate(state["counts"]):
        _load_table(processor, table, count, state, decoded)
    heads, keyed = _parts(processor)
    processor.step.grow()
    if opening.uniques is not None:
        opening.uniques.grow(opening.uniques.table.capacity)
    for part in heads:
        part.load(_of(state, part.name))
    for name, table, start, stop in paged:
        for key_part in keyed:
            if key_part.table == table:
                key_part.load(start, stop, _of(decoded[name], key_part.name))
    processor.step.restored(opening.rows, pages)


def _parts(processor: TaskProcessor) -> tuple[list[HeadPart], list[KeyPart]]:
    parts = list(processor.step.parts())
    uniques = processor.open.uniques
    if uniques is not None:
        parts.append(KeyPart("unique", uniques.index, uniques.dump, uniques.load))
    return [p for p in parts if isinstance(p, HeadPart)], [p for p in parts if isinstance(p, KeyPart)]


def _pages(counts: list[int]) -> Iterator[tuple[str, int, int, int]]:
    """All pages: name, table, and the numbers from .. to."""
    for table, count in enumerate(counts):
        for start in range(0, count, PAGE):
            yield f"{table}.{start // PAGE}", table, start, min(count, start + PAGE)


def _named(name: str, state: State) -> State:
    return {f"{name}.{key}": value for key, value in state.items()}


def _of(state: State, name: str) -> State:
    return {key.split(".", 1)[1]: value for key, value in state.items() if key.startswith(name + ".")}


def _page(processor: TaskProcessor, parts: list[KeyPart], table: int, page: int) -> State:
    start = page * PAGE
    stop = min(processor.tables[table].count, start + PAGE)
    out = _named("keys", {k: v[start:stop] for k, v in KeyTable.dump(processor.tables[table]).items()})
    for part in parts:
        if part.table == table:
            out |= _named(part.name, part.dump(start, stop))
    return out


def _load_table(processor: TaskProcessor, table: int, count: int, state: State, pages: dict[str, State]) -> None:
    """Put the keys of a table together."""
    parts = [pages[f"{table}.{p}"] for p in range((count + PAGE - 1) // PAGE)]
    if not parts:
        return
    keys: dict[str, Any] = {
        k: np.concatenate([p[f"keys.{k}"][: count - i * PAGE] for i, p in enumerate(parts)])
        for k in ("high", "low", "live", "refs")
    }
    if any("keys.routes" in p for p in parts):  # a version before this one did not note them
        known = [p.get("keys.routes", np.full(len(p["keys.high"]), UNKNOWN))[: count - i * PAGE] for i, p in enumerate(parts)]
        keys["routes"] = np.concatenate(known)
    processor.tables[table].load({**_of(state, f"values{table}"), **keys})
