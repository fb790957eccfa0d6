"""Shared by all tests: hypothesis profiles, and one Spark session for those that need it."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from quick import INTERPRETED, QUICK

settings.register_profile("fast", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Most properties take a share of this: a sixth for policies and cascades (300), a third for joins and merges (600).
settings.register_profile("long", max_examples=1_800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


ASKS_FOR_SPARK = re.compile(r"[(, ]spark[,):]|mark\.spark\b")  # as a fixture, or by its mark
ASKS_TO_BE_ALONE = re.compile(r"mark\.alone\b")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m spark`, files that nowhere ask for it are not even read: some make hundreds of tests when they are."""
    asks = {"spark": ASKS_FOR_SPARK, "spark and not alone": ASKS_FOR_SPARK, "alone": ASKS_TO_BE_ALONE}
    wanted = asks.get(config.getoption("markexpr"))
    if wanted is None or collection_path.suffix != ".py":
        return None
    return None if wanted.search(collection_path.read_text(encoding="utf-8")) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for Spark is marked so: `pytest -m "not spark"` needs no Java, and `make test` runs it beside the rest."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_collection_finish() -> None:
    """Thousands of tests that wait for their turn are no garbage: looking through them again and again takes minutes of a run."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries count what is left of theirs when Python ends."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory):
    """A directory on the class path of the session, for Java that a test brings along."""
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="session")
def spark(java_classes):
    """A local Spark session with Headrace's profile.

    It does little for plans that run once (`quick.py`). `HEADRACE_THROUGHOUT` has them compiled, and so has what is about how
    Spark computes (`compiled`).
    """
    from headrace.spark.session import local_session

    how = {} if os.environ.get("HEADRACE_THROUGHOUT") else QUICK
    session = local_session(**how, **{"spark.driver.extraClassPath": str(java_classes)})
    yield session
    session.stop()


@pytest.fixture
def compiled(spark):
    """Plans are compiled, as they are by default."""
    before = {key: spark.conf.get(key, None) for key in INTERPRETED}
    for key, value in (("spark.sql.codegen.wholeStage", "true"), ("spark.sql.codegen.factoryMode", "FALLBACK")):
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)
