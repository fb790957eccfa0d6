"""The files behind a path: the file of that name, the files that a pattern fits, or those that lie in a directory itself."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from headrace.errors import DataError
from headrace.files.opening import local_path

HIDDEN = (".", "_")
Found = tuple[str, os.stat_result]  # a file, by its path
_MAGIC = re.compile(r"([{}\[\]*?\\])")  # of Hadoop, whose patterns Spark takes


def existing(path: str, where: str) -> list[str]:
    """The files behind a local path; an error if there is nothing to read now or later."""
    local = local_path(path)
    if local is None:
        return []
    if os.path.isdir(local):
        return sorted(p for p in glob.glob(os.path.join(glob.escape(local), "*")) if _visible(p))
    pattern = is_pattern(local)
    if not os.path.isdir(base_of(local) if pattern else os.path.dirname(local) or "."):
        raise DataError(f"there is no file or directory {path!r}", where=where, hint=_looked_from())
    if pattern:
        return sorted(p for p in glob.glob(local) if _visible(p))
    if not os.path.isfile(local):
        raise DataError(f"there is no file {path!r}", where=where, hint=_looked_from())
    if not _visible(local):
        raise DataError(
            f"{path!r} is not read: Spark takes names that begin with '.' or '_' for files that are not whole yet", where=where,
            hint="give the file another name",
        )  # fmt: skip
    return [local]


def found(path: str) -> Iterator[Found]:
    """The file at this path, if there is one."""
    with suppress(OSError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            yield path, status


def found_in(folder: str) -> Iterator[Found]:
    with suppress(OSError):
        for name in os.listdir(folder or "."):
            yield from found(os.path.join(folder, name))


def find(path: str) -> list[Found]:
    """The files behind a local path, now."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        files = found_in(path)
    else:
        files = (file for name in (glob.glob(path) if is_pattern(path) else [path]) for file in found(name))
    return [file for file in files if not os.path.basename(file[0]).startswith(HIDDEN)]


def passed_by(path: str) -> list[str]:
    """What lies behind a local path and is not read: folders, whose files are not those of the path, and links to nothing."""
    local = local_path(path)
    if local is None or not (os.path.isdir(local) or is_pattern(local)):
        return []
    there = glob.glob(os.path.join(glob.escape(local), "*") if os.path.isdir(local) else local)
    return sorted(p for p in there if not os.path.isfile(p) and not os.path.basename(p).startswith(HIDDEN))


def is_pattern(path: str) -> bool:
    """Whether a local path stands for all that it fits. One that exists as it is written is that one."""
    return glob.has_magic(path) and not os.path.lexists(path)


def base_of(path: str) -> str:
    """The folder below which all files of a local path are.

    >>> base_of("/tmp/web-*/a.csv"), base_of("/tmp/*.csv")
    ('/tmp', '/tmp')
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return path
    while is_pattern(path):
        path = os.path.dirname(path)
    return path if os.path.isdir(path) else os.path.dirname(path)


def literal(path: str) -> str:
    r"""A path as a pattern that fits nothing else.

    >>> print(literal("/logs/[a].csv"), literal("/logs/a.csv"))
    /logs/\[a\].csv /logs/a.csv
    """
    return _MAGIC.sub(r"\\\1", path)


def _looked_from() -> str:
    return f"check SOURCE FILE; paths are taken from the folder you are in, {os.getcwd()}"


def _visible(path: str) -> bool:
    return os.path.isfile(path) and not os.path.basename(path).startswith(HIDDEN)
