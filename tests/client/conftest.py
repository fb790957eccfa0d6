"""The world of `tests/serve/http` is that of these tests, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SERVE = Path(__file__).parents[1] / "serve"
sys.path += [str(SERVE), str(SERVE / "http")]


@pytest.fixture
def world(tmp_path):
    from http_world import World

    made = []

    def make(**how):
        made.append(World(tmp_path, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()
