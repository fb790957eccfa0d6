"""Shared by all tests: hypothesis profiles, and one Spark session for those that need it."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from quick import INTERPRETED, QUICK
from turns import SHARED, ours, rank

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
    if SHARED:
        items.sort(key=lambda item: (not is_alone(item), rank(file_of(item))))


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """What another process has taken is none of ours (`turns.py`). Those of a file that are alone are asked for by themselves."""
    if ours(file_of(item) + " alone" * is_alone(item)):
        return None
    item.session._setupstate.teardown_exact(nextitem)  # as behind one that was run: what the next one does not need
    return True


def pytest_collection_finish() -> None:
    """Thousands of tests that wait for their turn are no garbage: looking through them again and again takes minutes of a run."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries count what is left of theirs when Python ends."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker for all tests; those that ask for one are marked `kafka`."""
    pytest.importorskip("confluent_kafka", reason="Kafka's client is not installed: pip install 'headrace[kafka]'")
    from headrace.log.broker import QUICK, Broker, NotFetchedError

    broker = Broker(tmp_path_factory.mktemp("kafka"), heap="256m", options=QUICK)
    try:
        broker.start()
    except NotFetchedError as why:
        pytest.skip(f"no Kafka to test with: {why}")
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory):
    """A directory on the class path of the session, for Java that a test brings along."""
    return tmp_path_factory.mktemp("classes")


CLASS_PATH = "spark.driver.extraClassPath"


def with_classes_behind(command_of: Callable[..., list[str] | None]) -> Callable[..., list[str] | None]:
    """Spark would put them in front of its own: the archive of Spark's classes would not fit, and its launcher be asked anew."""

    def command_with(java: str, home: Path, settings: dict[str, str]) -> list[str] | None:
        command = command_of(java, home, {key: value for key, value in settings.items() if key != CLASS_PATH})
        if command is not None:
            command[command.index("-cp") + 1] += f":{settings[CLASS_PATH]}"
        return command

    return command_with


@pytest.fixture(scope="session")
def spark(java_classes):
    """A local Spark session with Headrace's profile.

    It does little for plans that run once (`quick.py`). `HEADRACE_THROUGHOUT` has them compiled, and so has what is about how
    Spark computes (`compiled`).
    """
    from headrace.spark.jvm import process
    from headrace.spark.session import local_session

    how = {} if os.environ.get("HEADRACE_THROUGHOUT") else QUICK
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "kept_command", with_classes_behind(process.kept_command))
        session = local_session(**how, **{CLASS_PATH: str(java_classes)})
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
