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
    _, keyed = parts_of(processor)
    for table in range(len(processor.tables)):
        for page in processor.tables.changed(table):
            pages.put_page(f"{table}.{page}", encode(_page(processor, keyed, table, page)))
    processor.step.save_pages(pages)
    head = dump_head(processor)
    for i, keys in enumerate(processor.tables):
        if isinstance(keys, ValueTable):
            head |= named(f"values{i}", keys.dump())
    return encode(head)


def dump_head(processor: TaskProcessor) -> State:
    """All but what belongs to the numbers of tables."""
    head: State = {
        "fingerprint": fingerprint(processor.stage),
        "clock": processor.clock.dump(),
        "counts": [t.count for t in processor.tables],
        "counted": processor.open.counts.view(np.uint8),
        "begun": processor.begun,
        "since": processor.since,
        "fresh": processor.fresh,
        **named("open", dump_open(processor.open.rows)),
    }
    for part in parts_of(processor)[0]:
        head |= named(part.name, part.dump())
    return head


def load(processor: TaskProcessor, head: bytes, pages: PageStore) -> None:
    state = decode(head, "the head of a bucket")
    load_head(processor, state)
    paged = list(_pages(state["counts"]))
    decoded = {name: decode(pages.get_page(name), f"page {name}") for name, *_ in paged}
    for table, count in enumerate(state["counts"]):
        _load_table(processor, table, count, state, decoded)
    keyed = load_heads(processor, state)
    for name, table, start, stop in paged:
        for part in keyed:
            if part.table == table:
                part.load_at(slice(start, stop), of(decoded[name], part.name))
    processor.step.restored(processor.open.rows, pages)


def load_head(processor: TaskProcessor, state: State) -> None:
    """What stands before the tables: the clock and the open rows."""
    if state["fingerprint"] != fingerprint(processor.stage):
        raise StateError(
            f"the state of stage {processor.stage.name!r} was written by another query",
            hint="give the changed query a new checkpoint directory",
        )
    opening = processor.open
    processor.clock.load(state["clock"])
    processor.begun, processor.since = state["begun"], state.get("since", START_OF_TIME)
    processor.fresh = state.get("fresh", False)
    opening.rows = load_open(of(state, "open"), processor.layout, len(opening.rows.wanted))
    opening.counts = state["counted"].view(np.bool_)


def load_heads(processor: TaskProcessor, state: State) -> list[KeyPart]:
    """What stands behind the tables: room for their numbers, and the head parts. Gives the key parts, which come next."""
    heads, keyed = parts_of(processor)
    uniques = processor.open.uniques
    processor.step.grow()
    if uniques is not None:
        uniques.grow(uniques.table.capacity)
    for part in heads:
        part.load(of(state, part.name))
    return keyed


def parts_of(processor: TaskProcessor) -> tuple[list[HeadPart], list[KeyPart]]:
    parts = list(processor.step.parts())
    uniques = processor.open.uniques
    if uniques is not None:
        parts.append(KeyPart("unique", uniques.index, uniques.dump_at, uniques.load_at))
    return [p for p in parts if isinstance(p, HeadPart)], [p for p in parts if isinstance(p, KeyPart)]


def _pages(counts: list[int]) -> Iterator[tuple[str, int, int, int]]:
    """All pages: name, table, and the numbers from .. to."""
    for table, count in enumerate(counts):
        for start in range(0, count, PAGE):
            yield f"{table}.{start // PAGE}", table, start, min(count, start + PAGE)


def named(name: str, state: State) -> State:
    return {f"{name}.{key}": value for key, value in state.items()}


def of(state: State, name: str) -> State:
    """What was named so."""
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(name + ".")}


def _page(processor: TaskProcessor, parts: list[KeyPart], table: int, page: int) -> State:
    start = page * PAGE
    stop = min(processor.tables[table].count, start + PAGE)
    out = named("keys", {k: v[start:stop] for k, v in KeyTable.dump(processor.tables[table]).items()})
    for part in parts:
        if part.table == table:
            out |= named(part.name, part.dump_at(slice(start, stop)))
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
    processor.tables[table].load({**of(state, f"values{table}"), **keys})
