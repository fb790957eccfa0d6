"""Windows that aggregate, as data.

WindowProgram   a window, and what it is measured or parted by
Tally, Metric   an aggregate state per key of a table and window, and how a column of the result is read (aggregates.py)
Output          the rows one query gets for every event: columns of the event, metrics, which events, and when
Report          the rows of a query that looks at a window when a trigger fires: metrics of every key in it
SharedSlices    reports that look at windows of different lengths at the same times, and add up what lies between once
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.query import Emit
from headrace.plan.triggers import Trigger
from headrace.plan.windows import LookedAt
from headrace.program.aggregates import Metric, Tally
from headrace.program.outputs import Output
from headrace.program.stage import Stage


@dataclass(frozen=True, slots=True)
class WindowProgram:
    """A window; ROWS PARTITIONED BY names the table that numbers its partitions, ON the vector of the field it is measured on."""

    window: LookedAt
    partitions: int | None = None
    field: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of one query that looks at a window when a trigger fires: the metrics of every key that is in it."""

    query: str
    emit: Emit
    trigger: Trigger
    presence: int  # a tally: how many rows of a key are in the window
    metrics: tuple[Metric, ...]  # the keys first, then the aggregates
    bounds: int  # how many metrics stand before the bounds of the window
    ends: int = 2  # how many bounds are shown: both, or only the end
    partition: int | None = None  # the table whose keys have a count of rows, or a look, of their own
    counter: int | None = None  # the tally that counts the rows of each of those
    batch: int | None = None  # a table: rows of one time and one number in it are one batch
    field: int | None = None  # EVERY n ON: the vector of the field
    closed_by_rows: bool = False  # a window that ends by itself ends with the row that no longer fits
    moved: tuple[int, ...] = ()  # tallies of what came and went since the last look: a group without any is not told

    @property
    def by_rows(self) -> bool:
        """Whether rows let it look, and not time alone."""
        return self.trigger.by_rows or self.closed_by_rows


@dataclass(frozen=True, slots=True)
class SharedSlices:
    """Reports over windows that differ only in their length, and the tallies that nobody else reads."""

    reports: tuple[int, ...]
    tallies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowsProgram:
    """Windows over the rows of a stage, the tallies in them, and what is read for whom."""

    windows: tuple[WindowProgram, ...]
    tallies: tuple[Tally, ...]
    outputs: tuple[Output, ...] = ()
    reports: tuple[Report, ...] = ()
    slices: tuple[SharedSlices, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        return (*(o.query for o in self.outputs), *(r.query for r in self.reports))

    @property
    def sliced(self) -> frozenset[int]:
        """The tallies that slices keep."""
        return frozenset(t for s in self.slices for t in s.tallies)

    @property
    def moving(self) -> frozenset[int]:
        """The windows that rows enter and leave one by one: some tally of theirs is not kept by slices."""
        sliced = self.sliced
        only = {t.window for i, t in enumerate(self.tallies) if i in sliced}
        return frozenset({*range(len(self.windows))} - only | {t.window for i, t in enumerate(self.tallies) if i not in sliced})

    @property
    def edges(self) -> tuple[int, ...]:
        """The distances from now at which rows enter or leave some window; rows enter at 0 by themselves.

        Windows that share slices lose no rows, but the longest of all says until when a row holds its keys.
        """
        moving, offsets, longest = self.moving, set[int](), 0
        for i, program in enumerate(self.windows):
            edges = program.window.edges
            longest = max(longest, *edges, 0)
            offsets |= {*edges} if i in moving else set()
        return tuple(sorted((offsets | {longest}) - {0}))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All that is read from tallies, by any query."""
        return (*(m for o in self.outputs for m in o.metrics), *(m for r in self.reports for m in r.metrics))

    @property
    def lets_go(self) -> bool:
        """Whether every row leaves every window in the end, so that keys nobody holds can be forgotten."""
        return all(w.window.edges for w in self.windows) or (len(self.windows) == 1 and self.windows[0].window.rows_leave)

    @property
    def stores_rows(self) -> bool:
        """Whether rows must stay in the reservoir after they are final."""
        return any(w.window.stores_rows or w.window.last_rows is not None for w in self.windows)

    @property
    def by_instant(self) -> bool:
        """Whether rows of one time are seen together, and so must all be there before any of them is final."""
        return self.has_peers or any(r.trigger.depends_on == "instants" for r in self.reports)

    @property
    def has_peers(self) -> bool:
        """Whether an event sees rows of its time that stand behind it."""
        return any(w.window.waits for w in self.windows)


WindowStage = Stage[WindowsProgram]
