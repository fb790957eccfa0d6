"""The world of `tests/serve` is that of these tests, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture
def world(tmp_path):
    """Makes a deployment that is served, and takes it down."""
    from http_world import World

    made = []

    def make(**how):
        made.append(World(tmp_path, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()
