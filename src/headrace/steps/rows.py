"""Rows that pass as they are: at once, or once they are final."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.changes.keys import Keys
from headrace.changes.values import batch_of_rows, rows_of
from headrace.plan.arrow import arrow_type
from headrace.state.open_rows import OpenRows
from headrace.state.rows import Rows
from headrace.steps.shown import carried, show, wanted
from headrace.steps.step import Live, Said, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.program.outputs import Output
    from headrace.program.rows import RowsProgram
    from headrace.program.stage import Stage
    from headrace.steps.step import Results, StepParts, Turn


class RowsStep(Step):
    """Nothing is kept but what waits."""

    def __init__(self, parts: StepParts, program: RowsProgram) -> None:
        self.stage, self.outputs = parts.stage, program.outputs
        # What may be taken back, or come twice, is not final at once.
        unsure = parts.stage.signed or parts.stage.unique is not None
        self.waits = [not o.emit.early and (o.emit.ordered or unsure) for o in self.outputs]
        self.keeps_open = any(self.waits) or parts.stage.unique is not None
        self._carried = carried(parts.stage)

    def turn(self, turn: Turn) -> Results:
        """What is taken back and what comes; or what became final."""
        out: Results = []
        for i, output in enumerate(self.outputs):
            if self.waits[i]:
                out += self._shown(i, output, turn.new, np.arange(turn.final), 1)
            else:
                out += self._shown(i, output, turn.old, turn.removed.nonzero()[0], -1)
                out += self._shown(i, output, turn.new, turn.added.nonzero()[0], 1)
        return out

    def _shown(self, index: int, output: Output, rows: OpenRows, which: np.ndarray, sign: int) -> Results:
        return show(output, rows, wanted(rows.wanted[index], which), self._carried, [], sign)

    def live(self) -> Live | None:
        return None if self.stage.unique is not None or self.stage.signed else LiveRows(self.stage, self.outputs, self.waits)

    def settle(self, turn: Turn) -> Iterable[list[np.ndarray]]:
        return [turn.new.rows.slice(0, turn.final).columns] if self.keeps_open else []


class LiveRows(Live):
    """Rows that pass or wait, one event a call."""

    def __init__(self, stage: Stage[Any], outputs: tuple[Output, ...], waits: list[bool]) -> None:
        self.outputs, self.waits, self._keeps_open = outputs, waits, any(waits)
        self._carried = carried(stage)
        self._kinds = [arrow_type(stage.inputs[i].type) for i in self._carried]
        self._shows = [tuple(i for _, i in o.columns) for o in outputs]
        self._picks = [tuple(self._carried.index(i) for _, i in o.columns) for o in outputs]
        self._keys: list[tuple[int, int, int]] = []  # of the rows that wait
        self._rows: list[tuple[tuple[bool, ...], tuple[Any, ...]]] = []  # for which outputs each counts, and what it carries
        self._event: tuple[tuple[int, int, int], tuple[Any, ...]] = ((0, 0, 0), ())

    def begin(self, open_: OpenRows) -> None:
        keys, flags = open_.rows.keys, [[True] * len(open_) if w is None else w.tolist() for w in open_.wanted]
        self._keys = list(zip(keys.ts.tolist(), keys.high.tolist(), keys.low.tolist(), strict=True))
        counts = zip(*flags, strict=True) if flags else iter([()] * len(open_))
        self._rows = list(zip(counts, rows_of(open_.carry), strict=True))

    def put(self, ts: int, high: int, low: int, values: tuple[Any, ...]) -> None:
        self._event = (ts, high, low), values

    def take(self, frontier: int, final_before: int) -> list[Said]:
        key, values = self._event
        counts = tuple(all(values[i] for i in o.masks) for o in self.outputs)
        if self._keeps_open:
            at = bisect_right(self._keys, key)
            self._keys.insert(at, key)
            self._rows.insert(at, (counts, tuple(values[i] for i in self._carried)))
        final = self._final(final_before)
        out: list[Said] = []
        for i, output in enumerate(self.outputs):
            if self.waits[i]:
                out += [said for of, said in final if of == i]
            elif counts[i]:
                out.append((output.query, 1, key, tuple(values[j] for j in self._shows[i])))
        return out

    def pass_time(self, frontier: int, final_before: int) -> list[Said]:
        final = self._final(final_before)
        return [said for i in range(len(self.outputs)) for of, said in final if of == i]

    def _final(self, before: int) -> list[tuple[int, Said]]:
        """What has waited and is final now, by output."""
        stop = bisect_right(self._keys, (before - 1, 1 << 63, 0))
        out: list[tuple[int, Said]] = []
        for key, (counts, carry) in zip(self._keys[:stop], self._rows[:stop], strict=True):
            for i, output in enumerate(self.outputs):
                if self.waits[i] and counts[i]:
                    out.append((i, (output.query, 1, key, tuple(carry[j] for j in self._picks[i]))))
        del self._keys[:stop], self._rows[:stop]
        return out

    def put_back(self) -> OpenRows:
        parts = zip(*self._keys, strict=True) if self._keys else ((), (), ())
        ts, high, low = (np.array(part, np.int64) for part in parts)
        carry = batch_of_rows(self._kinds, [f"i{i}" for i in self._carried], [own for _, own in self._rows])
        flags = [np.array([c[i] for c, _ in self._rows], np.bool_) if o.masks else None for i, o in enumerate(self.outputs)]
        return OpenRows(Rows(Keys(ts, high, low), []), carry, flags)
