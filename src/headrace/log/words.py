"""What every log says when it is asked for what is not there: the same words, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import LogError, unknown
from headrace.log.log import At


def no_topic(name: str, there: Iterable[str], where: str) -> LogError:
    return LogError(unknown("topic", name, there), where=where, hint="create it first; if it was there, it was deleted")


def no_partition(at: At, partitions: int, where: str) -> LogError:
    hint = f"topic {at.topic!r} has {partitions}, the first of which is 0"
    return LogError(f"there is no partition {at.partition}", where=where, hint=hint)


def no_partitions(name: str, partitions: int) -> LogError:
    return LogError(f"{partitions} partitions are none", where=f"topic {name!r}", hint="a topic has at least one")


def other_partitions(name: str, there: int, asked: int) -> LogError:
    hint = "ask for as many as it has, or delete it first: keys would be in other partitions than they were"
    return LogError(f"it is there with {there} partitions, not {asked}", where=f"topic {name!r}", hint=hint)


def deleted(names: Iterable[str], where: str) -> LogError:
    hint = "poll the other topics without it"
    return LogError(f"topic {', '.join(map(repr, names))} is gone: it was deleted", where=where, hint=hint)


def before_begin(at: At, offset: int, begin: int) -> LogError:
    hint = f"go on from {begin}; what was trimmed is nowhere any more"
    return LogError(f"offset {offset} is gone: the log begins at {begin}", where=str(at), hint=hint)


def behind_end(at: At, offset: int, end: int) -> LogError:
    hint = f"go on from {end}; if what is missing had been read, it was lost before it was synced"
    return LogError(f"offset {offset} is not there yet: the log ends at {end}", where=str(at), hint=hint)


def too_many_bytes(at: At, size: int, most: int) -> LogError:
    hint = "append in several calls"
    return LogError(f"{size:,} bytes are too many for one append: {most:,} at most", where=str(at), hint=hint)
