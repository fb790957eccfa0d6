"""Which reports share slices: those that look at the same groups at the same times, through windows of different lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.plan.aggregates import Laws
from headrace.plan.triggers import EveryTime
from headrace.program.stage import TableRole
from headrace.program.windows import SharedSlices

if TYPE_CHECKING:
    from collections.abc import Hashable

    from headrace.program.windows import Report
    from headrace.stages.builder import StageBuilder

FEWEST = 3  # windows. Slices also cost something, and two windows are as cheap each on its own
MOST = 32  # slices of the longest window, for each of the windows: a look goes through all of them


def share_slices(stage: StageBuilder) -> tuple[SharedSlices, ...]:
    """All sets of reports for which it pays."""
    together: dict[Hashable, list[int]] = {}
    for i, report in enumerate(stage.reports):
        if _can(stage, report):
            presence = stage.tallies[report.presence]
            together.setdefault((report.trigger, report.emit, presence.group, presence.vector), []).append(i)
    chosen = [reports for reports in together.values() if _pays(stage, reports)]
    return tuple(SharedSlices(tuple(reports), _own(stage, reports, chosen)) for reports in chosen)


def _can(stage: StageBuilder, report: Report) -> bool:
    """Whether the window is a whole number of slices, and all that is read of it can be subtracted; its keys are known anyway."""
    presence = stage.tallies[report.presence]
    window = stage.windows[presence.window].window
    if not window.edges or window.lag or not isinstance(report.trigger, EveryTime) or report.moved:
        return False
    if window.edges[1] % report.trigger.every or stage.tables[presence.group].role is not TableRole.GROUP:
        return False
    keys = {m.tally for m in report.metrics[: report.bounds]}
    tallies = [stage.tallies[m.tally] for m in report.metrics if m.tally not in keys]
    return all(t.window == presence.window and t.kind.laws is Laws.ADDITIVE for t in tallies)


def _pays(stage: StageBuilder, reports: list[int]) -> bool:
    sizes = set()
    for report in (stage.reports[r] for r in reports):
        window = stage.windows[stage.tallies[report.presence].window].window
        assert isinstance(report.trigger, EveryTime)
        sizes.add(window.edges[1] // report.trigger.every)
    return len(sizes) >= FEWEST and max(sizes) <= MOST * len(sizes)


def _own(stage: StageBuilder, reports: list[int], chosen: list[list[int]]) -> tuple[int, ...]:
    """The tallies of these reports that nobody reads who does not share slices."""
    sharing = {r for some in chosen for r in some}
    others = {t for i, r in enumerate(stage.reports) if i not in sharing for t in _read(r)}
    others |= {t for o in stage.outputs for m in o.metrics for t in (m.tally, m.count) if t is not None}
    return tuple(sorted({t for i in reports for t in _read(stage.reports[i])} - others))


def _read(report: Report) -> set[int]:
    read = {report.presence, *report.moved, *(m.tally for m in report.metrics)}
    counted = {m.count for m in report.metrics if m.count is not None}
    return read | counted | ({report.counter} if report.counter is not None else set())
