"""An engine that remembers everything and asks the oracle again after each batch; and broken ones that the suite must catch."""

from copy import deepcopy
from dataclasses import replace

from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import canonical_row
from headrace.plan.nodes import WindowAggregate, children
from headrace.plan.query import Emit
from headrace.plan.windows import RangeWindow
from headrace.testing.engine import Change


class NaiveEngine:
    def __init__(self, script, buckets=4, saved=None):
        self.script, self.buckets = script, buckets
        self.batches, self.out = deepcopy(saved) if saved is not None else ([], {q.name: {} for q in script.queries})

    def push(self, batch):
        self.batches.append(deepcopy(batch))
        return self._emit(end=False)

    def finish(self, now):
        return self._emit(end=True)

    def save(self):
        return deepcopy((self.batches, self.out))

    def state_size(self):
        return sum(len(rows) for b in self.batches for rows in b.rows.values())

    def _emit(self, end):
        return {q.name: self._changes(q, end) for q in self.script.queries}

    def expected(self, query, end):
        return expected_after_each_batch(query, self.batches, end=end)[-1]

    def _changes(self, query, end):
        expected = self.expected(query, end)
        rows = expected.changes if query.emit is Emit.CHANGES else expected.final
        now = {(key, canonical_row(row)): Change(1, key, row) for key, row in rows}
        before = self.out[query.name]
        self.out[query.name] = now
        minus = [Change(-1, c.key, c.row) for i, c in before.items() if i not in now]
        return minus + [c for i, c in now.items() if i not in before]


class ClosedBelow(NaiveEngine):
    """[t - size, t] instead of (t - size, t]."""

    def expected(self, query, end):
        return super().expected(replace(query, node=_wider(query.node)), end)


def _wider(node):
    below = children(node)
    if not below:
        return node
    if isinstance(node, WindowAggregate) and isinstance(node.window, RangeWindow):
        node = replace(node, window=replace(node.window, size=node.window.size + 1))
    return replace(node, input=_wider(below[0]))


class ForgetsRetractions(NaiveEngine):
    def _changes(self, query, end):
        return [c for c in super()._changes(query, end) if c.sign > 0]


class EmitsTwice(NaiveEngine):
    def _changes(self, query, end):
        changes = super()._changes(query, end)
        return changes + changes[-1:] if changes and changes[-1].sign > 0 else changes


class Backwards(NaiveEngine):
    def _changes(self, query, end):
        changes = super()._changes(query, end)
        return [c for c in changes if c.sign < 0] + [c for c in changes if c.sign > 0][::-1]


class RetractsTooMuch(NaiveEngine):
    """Takes back in one batch what it takes back only later."""

    def _changes(self, query, end):
        changes = super()._changes(query, end)
        return [Change(-1, c.key, c.row) for c in changes if c.sign > 0][:1] + changes + changes[:1]


class Hasty(NaiveEngine):
    """Under FINAL, releases one batch too early what the frontier has not passed."""

    def expected(self, query, end):
        found = super().expected(query, end)
        return replace(found, final=found.changes)


class Tardy(NaiveEngine):
    """Under FINAL, releases only at the end."""

    def expected(self, query, end):
        found = super().expected(query, end)
        return found if end else replace(found, final=[])


class LosesLate(NaiveEngine):
    """Late rows are dropped silently."""

    def expected(self, query, end):
        found = super().expected(query, end)
        return replace(found, changes=[]) if query.name.startswith("late") else found


class Forgetful(NaiveEngine):
    """A restart loses the rows of the last batch."""

    def save(self):
        batches, out = super().save()
        return [*batches[:-1], replace(batches[-1], rows={})] if batches else [], out


class KeepsLists(NaiveEngine):
    """Keeps the very batch it was given."""

    def push(self, batch):
        self.batches.append(batch)
        return self._emit(end=False)


class SharesState(NaiveEngine):
    """What it saved changes when it goes on."""

    def save(self):
        return self.batches, self.out

    def __init__(self, script, buckets=4, saved=None):
        super().__init__(script, buckets)
        if saved is not None:
            self.batches, self.out = saved


class DependsOnBuckets(NaiveEngine):
    def _changes(self, query, end):
        changes = super()._changes(query, end)
        return changes[:1] if self.buckets == 1 else changes


class RoundsZero(NaiveEngine):
    """Gives -0.0 where the sum is 0.0."""

    def expected(self, query, end):
        found = super().expected(query, end)
        return replace(
            found, changes=[(k, tuple(-0.0 if v == 0 and isinstance(v, float) else v for v in r)) for k, r in found.changes]
        )


BROKEN = (ClosedBelow, ForgetsRetractions, EmitsTwice, Backwards, RetractsTooMuch, Hasty, Tardy, LosesLate, Forgetful, KeepsLists,
          SharesState, DependsOnBuckets, RoundsZero)  # fmt: skip
