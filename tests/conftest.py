"""Shared by all tests: hypothesis profiles, and one Spark session for those that need it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("fast", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Most properties take a share of this: a sixth for policies and cascades (300), a third for joins and merges (600).
settings.register_profile("long", max_examples=1_800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever asks for Spark is marked so: `pytest -m "not spark"` needs no Java.

    Beside each other (`make test`), the tests of the shared session go to one process, first, and the others by file to whichever
    is free: one session is enough, and what a file has prepared is prepared once.
    """
    for item in items:
        shared = "spark" in getattr(item, "fixturenames", ())
        if shared:
            item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.xdist_group("spark" if shared else str(item.path.relative_to(config.rootpath))))
    if config.getoption("dist", "no") != "no":
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory):
    """A directory on the class path of the session, for Java that a test brings along."""
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="session")
def spark(java_classes):
    """A local Spark session with Headrace's profile."""
    from headrace.spark.session import local_session

    session = local_session(**{"spark.driver.extraClassPath": str(java_classes)})
    yield session
    session.stop()
