"""Pure columnar functions over arrays: NumPy, Numba and Arrow; no plan, no Spark."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from numba import config as _numba

config: Any = _numba  # its settings are made when it is loaded, so a type checker does not know them


def _sources() -> str:
    """Identifies all kernels together: Numba notices a change in a function, but not in the functions it calls."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# Compiled kernels are kept per version of their sources, where any process of this user finds them.
if not config.CACHE_DIR:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    config.CACHE_DIR = os.path.join(root, "headrace", f"kernels-{_sources()}")

try:
    from numba.core.caching import CacheImpl, UserProvidedCacheLocator
except ImportError:  # a Numba that calls them otherwise: kept as well, but once for every place the sources lie in
    pass
else:

    class KernelCacheLocator(UserProvidedCacheLocator):
        """Wherever the sources lie: Spark unpacks what is shipped to it in a new place for every application."""

        @classmethod
        def get_suitable_cache_subpath(cls, py_file: str) -> str:
            """A directory for each folder of kernels; that above them names their version."""
            return Path(py_file).parent.name

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            """Only for what lies here."""
            here = Path(__file__).parent in Path(py_file).parents
            return super().from_function(py_func, py_file) if here else None

    CacheImpl._locator_classes.insert(0, KernelCacheLocator)
