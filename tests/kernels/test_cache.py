"""Compiled kernels are kept once for a version of their sources, wherever those lie."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import headrace
from headrace.kernels.keys import segments

CODE = """
import headrace.kernels as kernels
from headrace.kernels.keys import segments
found = {f._cache.cache_path for f in vars(segments).values() if hasattr(f, "_cache")}
print(kernels.__file__, *found, sep="\\n")
"""


def test_a_copy_of_the_sources_finds_what_was_compiled(tmp_path):
    places = []
    for source in (Path(headrace.__file__).parent, tmp_path / "shipped" / "headrace"):
        if not source.exists():
            source.mkdir(parents=True)
            (source / "__init__.py").touch()
            (source / "kernels").symlink_to(Path(segments.__file__).parents[1])
        told = subprocess.run(
            [sys.executable, "-c", CODE], env={**os.environ, "PYTHONPATH": str(source.parent)}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        where, *caches = told.stdout.splitlines()
        assert where.startswith(str(source.parent))
        places.append(caches)
    assert len(places[0]) == 1
    assert places[0] == places[1]
