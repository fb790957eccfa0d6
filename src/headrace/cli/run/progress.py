"""How far a run is: one line that stays in place on a terminal, one line at the end elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from headrace.cli.consoles import err, say, warnings_on
from headrace.plan.query import last_part
from headrace.runs.events import Progress as Counted
from headrace.runs.events import ProgressEvent
from headrace.runs.losses import LOUD, how_to_see


class Totals:
    """What the progress events of a run add up to."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.all = Counted()
        self.hits = self.misses = 0
        self.last: ProgressEvent | None = None

    def add(self, event: ProgressEvent) -> None:
        self.all = self.all.plus(event)
        self.hits += event.cache_hits
        self.misses += event.cache_misses
        self.last = event

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def line(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for name, value, style in self._parts():
            text.append(f"{name} ", style="dim").append(f"{value}  ", style=style)
        return text

    def _parts(self) -> Iterator[tuple[str, str, str]]:
        if self.last is None:
            yield "starting Spark", f"{self.seconds:.0f} s", ""
            return
        every = self.all
        yield "in", f"{every.rows_in:,}", "bold"
        yield "out", f"{every.rows_out:,}", "bold green"
        yield "late", f"{every.late:,}", "yellow" if every.late else ""
        yield "rejected", f"{every.rejected:,}", "red" if every.rejected else ""
        if every.punctuation:
            yield "punctuation", f"{every.punctuation:,}", ""
        if self.last.filling:
            yield "filling", ", ".join(map(last_part, self.last.filling)), "yellow"
        if self.last.waiting:
            yield "waiting", f"{self.last.waiting:,}", "yellow"
        yield "lag", "-" if self.last.frontier_lag_s is None else span(self.last.frontier_lag_s), ""
        yield "batch", f"{self.last.batch_id}", ""
        yield "took", f"{self.last.batch_ms:,.0f} ms", ""
        if self.hits + self.misses:
            yield "cache", f"{self.hits / (self.hits + self.misses):.1%}", ""

    def summary(self) -> str:
        every = self.all
        parts = [f"{every.rows_in:,} rows in", f"{every.rows_out:,} out", f"{every.late:,} late", f"{every.rejected:,} rejected"]
        parts += [f"{every.punctuation:,} punctuation"] if every.punctuation else []
        left = ", ".join(map(last_part, self.last.filling)) if self.last else ""
        return f"{', '.join(parts)}; {every.batches} batches, {span(self.seconds)}" + (f"; not full yet: {left}" if left else "")


class Progress:
    """Shows totals while a run goes on."""

    def __init__(self, quiet: bool) -> None:
        self.totals = Totals()
        self.quiet = quiet
        self.console = err()
        self.visible = self.console.is_terminal and not quiet
        self.live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While inside, the live line is on the screen, and warnings stand above it."""
        with warnings_on(self.console):
            self._start()
            try:
                yield
            finally:
                self._stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the line off the screen while something else is printed."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        if self.visible:  # a new one each time: one that is started again would wipe out the lines printed since
            self.live = Live(get_renderable=self.totals.line, console=self.console, transient=True, refresh_per_second=4,
                             redirect_stdout=False, redirect_stderr=False)  # fmt: skip
            self.live.start()

    def _stop(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def finish(self, note: str = "") -> None:
        if not self.quiet:
            say(self.totals.summary() + (f"; {note}" if note else ""), style="dim")
        for count in self.totals.all.streams:
            if count.share > LOUD:  # also where nothing else is said: these rows are missing from the results
                say(f"warning: {count}; {how_to_see(count.stream)}", style="bold red")
            elif count.rejected and not self.quiet:
                say(f"{count}; {how_to_see(count.stream)}", style="dim")


def span(seconds: float) -> str:
    """A stretch of time at a glance.

    >>> span(0.25), span(75), span(7500)
    ('0.2 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
