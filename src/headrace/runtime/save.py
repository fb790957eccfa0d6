"""The state of a task processor, to and from bytes: a small head, and pages of keys of which only changed ones are written.

head           clock, open rows, edges, index of the reservoir, how many keys each table has
page (t, p)    keys p*PAGE .. of table t, with the tallies and rings that belong to it
cells (s, p)   the p-th of equal parts of the cells of slices that windows share
chunk c        sealed rows of the reservoir, written once
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.aggregates.tally import DistinctTally
from headrace.errors import StateError
from headrace.runtime import zone as zones
from headrace.state.codec import decode, encode, fingerprint
from headrace.state.tables import KeyTable, ValueTable

if TYPE_CHECKING:
    from headrace.runtime.processor import TaskProcessor
    from headrace.steps.windows.slices import Slices

PAGE = 1024


class PageStore(Protocol):
    """Where pages lie."""

    def get_page(self, name: str) -> bytes:
        """A page."""

    def put_page(self, name: str, data: bytes) -> None:
        """Keep a page."""

    def drop_page(self, name: str) -> None:
        """Let a page go."""


def save(processor: TaskProcessor, pages: PageStore) -> bytes:
    """Write the pages that changed since the last save, and give the head."""
    evaluator = processor.evaluator
    for table, numbers in enumerate(evaluator.touched):
        if numbers:
            touched = np.zeros(processor.tables[table].count // PAGE + 1, np.bool_)
            for some in numbers:
                touched[some // PAGE] = True
            for page in np.flatnonzero(touched):
                pages.put_page(f"{table}.{page}", encode(_page(processor, table, int(page))))
        numbers.clear()
    for i, slices in enumerate(evaluator.slices):
        _save_cells(slices, i, pages)
    head: dict[str, Any] = {
        "fingerprint": fingerprint(processor.stage),
        "clock": processor.clock.dump(),
        "numbered": evaluator.numbered,
        "edges": [list(pair) for pair in evaluator.edges.items()],
        "ended": sorted(evaluator.ended),
        "fields": [[vector, field.dump()] for vector, field in evaluator.fields.items()],
        "counts": [t.count for t in processor.tables],
        "cells": [list(s.cells) for s in evaluator.slices],
    }
    head |= {f"reservoir.{k}": v for k, v in processor.reservoir.dump().items()}
    head |= {f"zone.{k}": v for k, v in zones.dump(processor.zone).items()}
    head |= processor.joining.dump() if processor.joining is not None else {}
    head |= processor.matching.dump() if processor.matching is not None else {}
    head["kept"] = processor.kept.view(np.uint8)
    for i, keys in enumerate(processor.tables):
        if isinstance(keys, ValueTable):
            head |= {f"values{i}.{k}": v for k, v in keys.dump().items()}
    return encode(head)


def load(processor: TaskProcessor, head: bytes, pages: PageStore) -> None:
    """Put a fresh processor into the state that was saved."""
    state = decode(head, "the head of a bucket")
    if state["fingerprint"] != fingerprint(processor.stage):
        raise StateError(
            f"the state of stage {processor.stage.name!r} was written by another query",
            hint="give the changed query a new checkpoint directory",
        )
    evaluator = processor.evaluator
    processor.clock.load(state["clock"])
    evaluator.numbered = state["numbered"]
    evaluator.edges = {offset: row for offset, row in state["edges"]}
    evaluator.ended = set(state["ended"])
    for vector, field in state["fields"]:
        evaluator.fields[vector].load(field)
    processor.reservoir.load(_part(state, "reservoir"))
    processor.zone = zones.load(_part(state, "zone"), processor.layout, len(processor.zone.wanted))
    processor.kept = state["kept"].view(np.bool_)
    names = [f"{i}.{p}" for i, count in enumerate(state["counts"]) for p in range((count + PAGE - 1) // PAGE)]
    decoded = {name: decode(pages.get_page(name), f"page {name}") for name in names}
    for i, count in enumerate(state["counts"]):
        _load_table(processor, i, count, state, decoded)
    evaluator.grow()
    if processor.joining is not None:
        processor.joining.load([_part(state, f"join{side}") for side in (0, 1)])
    if processor.matching is not None:
        processor.matching.load(_part(state, "pattern"), _part(state, "ready"), processor.zone.rows)
    if processor.uniques is not None:
        processor.uniques.grow()
    for lives in processor.lives:
        lives.grow()
    for i, count in enumerate(state["counts"]):
        for start in range(0, count, PAGE):
            _load_page(processor, i, start, min(count, start + PAGE), decoded[f"{i}.{start // PAGE}"])
    for i, (slices, (start, stop)) in enumerate(zip(evaluator.slices, state["cells"], strict=True)):
        _load_cells(slices, i, (start, stop), pages)


def _cell_pages(slices: Slices, start: int, stop: int) -> range:
    return range(start // slices.page, (stop - 1) // slices.page + 1) if start < stop else range(0)


def _save_cells(slices: Slices, index: int, pages: PageStore) -> None:
    """Cells never change once their slice is over, so each is written about once."""
    start, stop = slices.cells
    for page in _cell_pages(slices, max(start, slices.settled), stop):
        pages.put_page(f"cells {index}.{page}", encode(slices.dump(page)))
    now = _cell_pages(slices, start, stop)
    for page in slices.pages:
        if page not in now:
            pages.drop_page(f"cells {index}.{page}")
    slices.pages, slices.settled = now, stop


def _load_cells(slices: Slices, index: int, cells: tuple[int, int], pages: PageStore) -> None:
    slices.pages = _cell_pages(slices, *cells)
    names = [f"cells {index}.{page}" for page in slices.pages]
    slices.load(cells, [decode(pages.get_page(name), name) for name in names])


def _part(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {k.split(".", 1)[1]: v for k, v in state.items() if k.startswith(name + ".")}


def _page(processor: TaskProcessor, table: int, page: int) -> dict[str, Any]:
    start = page * PAGE
    stop = min(processor.tables[table].count, start + PAGE)
    out: dict[str, Any] = {f"keys.{k}": v[start:stop] for k, v in KeyTable.dump(processor.tables[table]).items()}
    evaluator = processor.evaluator
    for i, tally in enumerate(evaluator.tallies):
        if processor.stage.tallies[i].group == table:
            out |= {f"tally{i}.{k}": v for k, v in tally.dump(start, stop).items()}
        if isinstance(tally, DistinctTally) and tally.pairs == table:
            out |= {f"pairs{i}.{k}": v for k, v in tally.dump_pairs(start, stop).items()}
    for i, slices in enumerate(evaluator.slices):
        if slices.group == table:
            out |= {f"slices{i}.{k}": v for k, v in slices.dump_keys(start, stop).items()}
    for (group, partition), owner in evaluator.owners.items():
        if group == table:
            out[f"owner{partition}"] = owner[start:stop]
    for i, ring in evaluator.rings.items():
        if ring.partitions == table:
            out |= {f"ring{i}.{k}": v for k, v in ring.dump(start, stop).items()}
    if processor.uniques is not None and processor.uniques.index == table:
        out |= {f"unique.{k}": v for k, v in processor.uniques.dump(start, stop).items()}
    for lives in processor.lives:
        out |= lives.dump(table, start, stop)
    return out


def _load_table(processor: TaskProcessor, index: int, count: int, state: dict[str, Any], pages: dict[str, dict]) -> None:
    """Put the keys of a table together; tallies refer to the list of tables, so it is changed in place."""
    parts = [pages[f"{index}.{p}"] for p in range((count + PAGE - 1) // PAGE)]
    if not parts:
        return
    keys = {
        k: np.concatenate([p[f"keys.{k}"][: count - i * PAGE] for i, p in enumerate(parts)])
        for k in ("high", "low", "live", "refs")
    }
    table = processor.tables[index]
    restored: KeyTable
    if isinstance(table, ValueTable):
        restored = ValueTable.restore({**_part(state, f"values{index}"), **keys}, table.values.type)
    else:
        restored = KeyTable.load(keys)
    table.__dict__.update(restored.__dict__)


def _load_page(processor: TaskProcessor, table: int, start: int, stop: int, page: dict[str, Any]) -> None:
    evaluator = processor.evaluator
    for i, tally in enumerate(evaluator.tallies):
        if processor.stage.tallies[i].group == table:
            tally.load(start, stop, _part(page, f"tally{i}"))
        if isinstance(tally, DistinctTally) and tally.pairs == table:
            tally.load_pairs(start, stop, _part(page, f"pairs{i}"))
    for i, slices in enumerate(evaluator.slices):
        if slices.group == table:
            slices.load_keys(start, stop, _part(page, f"slices{i}"))
    for (group, partition), owner in evaluator.owners.items():
        if group == table:
            owner[start:stop] = page[f"owner{partition}"]
    for i, ring in evaluator.rings.items():
        if ring.partitions == table:
            ring.load(start, stop, _part(page, f"ring{i}"))
    if processor.uniques is not None and processor.uniques.index == table:
        processor.uniques.load(start, stop, _part(page, "unique"))
    for lives in processor.lives:
        lives.load(table, start, stop, page)
