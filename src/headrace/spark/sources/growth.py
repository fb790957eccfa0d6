"""Files that are read in place, whole, must stay as they are: whoever resumes a run, or ends one, finds out if they did not."""

from __future__ import annotations

from headrace.errors import StateError
from headrace.files.listing import found
from headrace.notices import warn
from headrace.plan.stream import Stream
from headrace.spark.storage.checkpoint import Checkpoint, files_of


def sizes_of(streams: tuple[Stream, ...]) -> dict[str, int]:
    return {path: status.st_size for name in files_of(streams) for path, status in found(name)}


def _changed(before: dict[str, int], now: dict[str, int]) -> list[tuple[str, int, int]]:
    """Files that have another size now than they had: their path and both."""
    return [(path, size, now[path]) for path, size in before.items() if now.get(path, size) != size]


def grown(facts: Checkpoint, streams: tuple[Stream, ...]) -> bool:
    """Whether there is more than when the input was taken to have ended. What is gone was read."""
    now = sizes_of(streams)
    return not set(files_of(streams)) <= set(facts.files) or bool(_changed(facts.sizes, now))


def refuse_changed(facts: Checkpoint, streams: tuple[Stream, ...]) -> None:
    """A run that goes on would miss what was added to files that it has read already. Notes what there is now."""
    now = sizes_of(streams)
    for path, size, larger in _changed(facts.sizes, now):
        message = f"{path} had {size} bytes when this run began, and has {larger} now: what was added would not be read"
        hint = "name a new checkpoint directory; files that grow are followed with --follow from the start"
        raise StateError(message, hint=hint)
    facts.sizes = {**now, **facts.sizes}


def tell_changed(begun: dict[str, int], streams: tuple[Stream, ...]) -> None:
    """At the end of a run: whatever grew while it was read was not read to its end. `begun`: how large files were then."""
    for path, size, larger in _changed(begun, sizes_of(streams)):
        warn(
            f"{path} had {size} bytes when the run began, and {larger} when it ended: what was added meanwhile may not be"
            " in the results. Files that grow are followed with --follow"
        )
