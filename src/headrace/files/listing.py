"""The files behind a path."""

from __future__ import annotations

import glob
import os

from headrace.errors import DataError
from headrace.files.opening import has_scheme


def existing(path: str, where: str) -> list[str]:
    """The files behind a local path; an error if there is nothing to read now or later."""
    if has_scheme(path):
        return []
    if os.path.isdir(path):
        return sorted(p for p in glob.glob(os.path.join(glob.escape(path), "*")) if _visible(p))
    found = sorted(p for p in glob.glob(path) if _visible(p))
    if not found and not os.path.isdir(os.path.dirname(path) or "."):
        raise DataError(f"there is no file or directory {path!r}", where=where, hint=_looked_from())
    if not found and not glob.has_magic(path):
        raise DataError(f"there is no file {path!r}", where=where, hint=_looked_from())
    return found


def _looked_from() -> str:
    return f"check SOURCE FILE; paths are taken from the folder you are in, {os.getcwd()}"


def _visible(path: str) -> bool:
    return os.path.isfile(path) and not os.path.basename(path).startswith((".", "_"))
