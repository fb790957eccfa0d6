"""Points at which a Python process of Spark kills itself, one armed at a time; and what lay on the disk when it did.

`wrap` is called once, in the process from which all others are forked (`kill_zygote.py`): product code knows nothing of this. A
test arms a point by a file; whoever takes it away is the one that dies there, so that one process dies once.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "HEADRACE_KILL_POINTS"  # in the environment: where points are armed, and deaths told; beside sinks and checkpoint

# For every kind of moment the points at which it is met, and how often a process passes one at least and at most before it dies.
# Whether it truly was such a moment, `kind_of` says afterwards, by the disk.
POINTS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "planned": (
        ("rows to pack", 0, 0),
        ("bucket to process", 0, 2),
        ("state to save", 0, 2),
        ("pages saved", 0, 2),
        ("state saved", 0, 2),
    ),
    "staged": (
        ("half a file staged", 0, 2),
        ("task staged", 0, 0),
        ("batch to publish", 0, 0),
        ("file to publish", 0, 0),
    ),
    "partly published": (
        ("file to publish", 1, 4),
        ("file published", 0, 3),
        ("target in order merged", 0, 0),
        ("target published", 1, 4),
    ),
    "published": (("batch published", 0, 0), ("target published", 7, 7)),  # the last of eight targets
}
IDLE = "idle"
KINDS = (*POINTS, IDLE)
# Whose workers die when nothing is done: the one that plans the writing of a batch, the one that publishes. Those that keep state
# and stage are killed at points, and idle with the whole tree: Spark has many of them idle, and learns of each that it is dead by
# one more run that fails.
DAEMONS = ("pyspark.sql.worker.write_into_data_source", "pyspark.sql.worker.python_streaming_sink_runner")


class Disk(NamedTuple):
    """The last batch that was planned and committed; files staged for it, and published, each with its inode."""

    planned: int
    committed: int
    staged: dict[str, int]
    published: dict[str, int]


def disk(root: Path) -> Disk:
    """What lies there now."""
    planned = last_batch(root, "offsets")
    staged, published = _inodes(root, "*/_staging/*"), _inodes(root, f"*/batch-{planned:010d}-*")
    return Disk(planned, last_batch(root, "commits"), staged, published)


def last_batch(root: Path, log: str) -> int:
    """The last batch in one of Spark's logs; -1 if there is none."""
    folder = root / "checkpoint" / "spark" / log
    return max((int(name) for name in (os.listdir(folder) if folder.exists() else ()) if name.isdigit()), default=-1)


def _inodes(root: Path, pattern: str) -> dict[str, int]:
    found = {}
    for path in root.glob(pattern):
        try:
            found[str(path.relative_to(root))] = path.stat().st_ino
        except FileNotFoundError:  # published or removed since it was listed
            continue
    return found


def kind_of(now: Disk, before: Disk) -> str:
    """The kind of moment. What an earlier try of the batch has published, and is still there, does not count."""
    if now.planned == now.committed:
        return IDLE
    published = now.published.items() - before.published.items()
    if not published:
        return "staged" if now.staged else "planned"
    return "partly published" if now.staged else "published"


class Death(NamedTuple):
    """Who died, where, and what lay on the disk."""

    point: str
    pid: int
    program: str
    disk: Disk


def arm(folder: Path, point: str, passes: int, group: int | None) -> None:
    """Have the next process that has passed the point so many times die there; with it all processes of a group."""
    for old in folder.iterdir():
        old.unlink()
    hidden = folder / ".armed"
    hidden.write_text(json.dumps([point, passes, group]))
    hidden.rename(folder / "armed")


def death(folder: Path) -> Death | None:
    """Who died at the point that was armed; None as long as nobody has."""
    try:
        point, pid, program, found = json.loads((folder / "died").read_text())
    except FileNotFoundError:
        return None
    return Death(point, pid, program, Disk(*found))


_passed: dict[tuple[int, int], int] = {}  # how often this process has been at a point since it was armed


def reach(point: str, last: Callable[[], None] | None = None) -> None:
    """Die if this point is armed, after a last deed."""
    folder = Path(os.environ[FOLDER])
    armed = folder / "armed"
    try:
        name, passes, group = json.loads(armed.read_text())
        arming = armed.stat().st_ino, armed.stat().st_mtime_ns
    except FileNotFoundError:
        return
    if name != point:
        return
    _passed[arming] = _passed.get(arming, 0) + 1
    if _passed[arming] <= passes:
        return
    try:
        armed.rename(folder / "taken")
    except FileNotFoundError:
        return  # another process dies of it
    if last is not None:
        last()
    program = Path("/proc/self/cmdline").read_text().replace("\0", " ").strip()
    hidden = folder / ".died"
    hidden.write_text(json.dumps([point, os.getpid(), program, disk(folder.parent)]))
    hidden.rename(folder / "died")
    if group is not None:
        os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def wrap() -> None:
    """Put the points around the steps of a batch, in the order in which they come."""
    from headrace.exchange import host
    from headrace.spark.exchange import pack, stateful
    from headrace.spark.sinks import publish, sink

    around(pack, "pack_rows", before="rows to pack")
    around(stateful.Buckets, "process", before="bucket to process")
    around(stateful.Buckets, "_save", before="state to save", after="state saved")
    around(host, "save", after="pages saved")  # and not yet the head that knows of them
    around(host.Host, "end", before="bucket to end", after="bucket ended")
    _halve_files(sink)
    around(sink.Writer, "write", after="task staged")
    around(sink.Writer, "commit", before="batch to publish", after="batch published")
    around(sink, "publish", after="target published")
    around(publish, "_merged", after="target in order merged")
    _watch_renames()


def around(owner: Any, name: str, before: str = "", after: str = "") -> None:
    """A point before, and one after a function."""
    inner = getattr(owner, name)

    @wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        if before:
            reach(before)
        result = inner(*args, **kwargs)
        if after:
            reach(after)
        return result

    setattr(owner, name, outer)


def _halve_files(sink: Any) -> None:
    """Of the file that is staged here only half has reached the disk."""
    inner = sink.write_table

    @wraps(inner)
    def write_table(path: str, *args: Any, **kwargs: Any) -> None:
        inner(path, *args, **kwargs)
        reach("half a file staged", last=lambda: os.truncate(path, os.path.getsize(path) // 2))

    sink.write_table = write_table


def _watch_renames() -> None:
    """A point before and after each file that becomes visible; an older one of its name, from an earlier try, is gone by then."""
    inner = os.rename

    @wraps(inner)
    def rename(source: Any, target: Any, **kwargs: Any) -> None:
        visible = os.path.basename(target).startswith("batch-")
        if visible:
            reach("file to publish")
        inner(source, target, **kwargs)
        if visible:
            reach("file published")

    os.rename = rename
