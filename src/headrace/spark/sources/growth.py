"""Files that are read in place, whole, must stay as they are: whoever resumes a run, or ends one, finds out if they did not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headrace.errors import StateError
from headrace.notices import warn
from headrace.spark.storage.checkpoint import files_of

if TYPE_CHECKING:
    from headrace.plan.stream import Stream
    from headrace.spark.storage.checkpoint import Checkpoint


def sizes_of(streams: tuple[Stream, ...]) -> dict[str, int]:
    """How large the files of these streams are."""
    out = {}
    for path in files_of(streams):
        try:
            out[path] = os.stat(path).st_size
        except OSError:
            continue
    return out


def grown(facts: Checkpoint, streams: tuple[Stream, ...]) -> bool:
    """Whether there is more than when the input was taken to have ended. What is gone was read."""
    now = sizes_of(streams)
    return not set(files_of(streams)) <= set(facts.files) or any(now.get(path, n) != n for path, n in facts.sizes.items())


def refuse_changed(facts: Checkpoint, streams: tuple[Stream, ...]) -> None:
    """A run that goes on would miss what was added to files that it has read already. Notes what there is now."""
    now = sizes_of(streams)
    for path, size in facts.sizes.items():
        if now.get(path, size) != size:
            raise StateError(
                f"{path} had {size} bytes when this run began, and has {now[path]} now: what was added would not be read",
                hint="name a new checkpoint directory; files that grow are followed with --follow from the start",
            )
    facts.sizes = {**now, **facts.sizes}


def tell_changed(begun: dict[str, int], streams: tuple[Stream, ...]) -> None:
    """At the end of a run: whatever grew while it was read was not read to its end. `begun`: how large files were then."""
    now = sizes_of(streams)
    for path, size in begun.items():
        if now.get(path, size) != size:
            warn(
                f"{path} had {size} bytes when the run began, and {now[path]} when it ended: what was added meanwhile may not be"
                " in the results. Files that grow are followed with --follow"
            )
