"""What `hr.start` gives back: one shape for streams and for static DataFrames."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from headrace.runs.events import Event, Progress


@runtime_checkable
class Run(Protocol):
    """Queries that run, or have run. Over static DataFrames a run is done when `hr.start` returns it.

    As a context manager it is stopped at the end of the block: `with hr.start({..}) as run: run.wait(60)`.
    """

    @property
    def done(self) -> bool:
        """Whether it has ended: its input did, it was stopped, or it failed."""

    @property
    def error(self) -> Exception | None:
        """Why it failed, as an error of Headrace; None while it runs, and if all went well."""

    @property
    def progress(self) -> Progress:
        """How far it is: micro-batches, and rows in, out, late and rejected, since it was started."""

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until it has ended, and raise what went wrong; `NotEnded` after `timeout` seconds, and it goes on.

        A run over streams without `follow` ends when all that was there is answered; with `follow`, when it is stopped.
        """

    def stop(self) -> None:
        """End after the running micro-batch. What was given out stays, and a checkpoint can be resumed. Twice does no harm."""

    def poll(self, timeout_s: float) -> list[Event]:
        """What has happened since the last call, after at most so many seconds.

        A `RowsEvent` has rows of a query without a place of its own (`hr.console()`), a `ProgressEvent` a micro-batch. Rows
        that are given out here are gone from the run: the console tells at least once, files and tables exactly once.
        """

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        """Stop it."""
