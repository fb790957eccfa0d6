"""Every benchmark runs to its end in its `--quick` form, and what cannot be measured is an error.

They share the one session of all tests: what starts a session of its own by itself gets that one, and cannot stop it. Flink is
not there; a stand-in takes its place, which parses what it is given with the arguments of the real script.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import command, engine, workers
from benchmarks.patterns_questions import questions, stream
from benchmarks.report import NotMeasured, Result, Target
from benchmarks.rivals import flink_env

from headrace.cli.bench import benchmarks
from headrace.spark.session import LOCAL

FOLDER = Path(command.__file__).parent
# `versions` compares checkouts (test_bench_versions.py); `first_result` starts a session each time, which is what it measures;
# `flink_windows` holds answers, not speeds, against a real Flink.
ELSEWHERE = {"versions", "first_result", "flink_windows"}
QUICK = ("sliding", "hops", "windows", "small_batches", "one_event", "log_hop", "saves", "patterns")


class Lent:
    """A session that others use too."""

    def __init__(self, spark: Any) -> None:
        self.__dict__["spark"] = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)

    def stop(self) -> None:
        """Not this one."""


class StandIn:
    """Flink as far as it goes without Flink: the script is there, takes these arguments, and has rows to read."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def run(self, env: object, script: str, arguments: dict[str, object], timeout: float = 0.0) -> dict[str, Any]:
        name = script.removesuffix(".py")
        module = importlib.import_module(name)
        words = [w for key, value in arguments.items() for w in (f"--{key.replace('_', '-')}", str(value))]
        options = module.arguments().parse_args(["--jars", "none", *words])
        rows = sum(pq.ParquetFile(path).metadata.num_rows for path in Path(options.data).glob("*.parquet"))
        self.asked.append((name, options))
        if options.output:  # results are wanted: the right ones
            (question,) = [q for q in questions(stream(4_000, 2), (0.01,)) if str(q.flink()["define"]) == options.define
                           and q.delay_seconds == options.delay_seconds]  # fmt: skip
            matches = question.by_hand(stream(4_000, 2, question.late))
            pq.write_table(pa.table(list(matches.T), names=question.columns), Path(options.output) / "part")
        times = {"seconds": 2.0, "total_seconds": 5.0, "warm_seconds": [1.0] * (options.repeat - 1)}
        return {"rows": rows, **times, "hop_seconds": arguments.get("hop_seconds")}


@pytest.fixture
def flink(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER / "rivals"))
    stand_in = StandIn()
    monkeypatch.setattr(flink_env, "ensure", lambda: flink_env.FlinkEnv(Path(sys.executable), ()))
    monkeypatch.setattr(flink_env, "run", stand_in.run)
    return stand_in


@pytest.fixture
def quick(spark, quick_alone, monkeypatch):
    """Run a benchmark with these arguments; what it wrote."""
    monkeypatch.setattr(engine, "session", lambda **_: Lent(spark))
    return quick_alone


@pytest.fixture
def quick_alone(flink, tmp_path, monkeypatch):
    """The same for what needs no Spark."""
    monkeypatch.setattr(command, "DATA", tmp_path / "data")
    before = signal.getsignal(signal.SIGTERM)

    def run(name: str, *arguments: str) -> dict[str, Any]:
        module = importlib.import_module(f"benchmarks.{name}")
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        words = ["--quick", "--json", str(out), "--plot", str(out), *arguments]
        module.main(module.arguments().parse_args(words))
        return json.loads((out / f"{name}.json").read_text())

    yield run
    signal.signal(signal.SIGTERM, before)


def names(document: dict[str, Any]) -> list[str]:
    return [r["name"] for r in document["results"]]


def test_every_benchmark_is_tried():
    assert set(benchmarks(FOLDER)) - ELSEWHERE == set(QUICK)


def test_sliding(quick, flink):
    found = names(quick("sliding"))
    assert found[:3] == ["headrace", "flink OVER", "flink OVER, with start-up"]
    assert {"spark groupBy", "headrace, 10% late", "spark hop 60 s", "recompute per event"} < set(found)
    assert [name for name, _ in flink.asked] == ["flink_over"]


def test_hops(quick, flink):
    found = quick("hops")
    assert names(found) == ["headrace", "spark hop 300 s", "spark hop 60 s", "flink hop 300 s", "flink hop 60 s"]
    assert [options.hop_seconds for _, options in flink.asked] == [300, 60]


def test_windows(quick):
    found = quick("windows")
    by_name = {r["name"]: r["details"] for r in found["results"]}
    assert all(d["largest_worker_mib"] > 20 for d in by_name.values() if "largest_worker_mib" in d)
    assert {"one stream, 5 minutes", "one stream, 1 year"} < set(by_name)
    assert by_name["4 windows, cache 256"]["misses"] > 0
    assert {"headrace hopping 60 min by 1 min", "spark hopping 60 min by 1 min"} < set(by_name)
    assert by_name["event, 3 windows, 100 cards"]["rows_out"] == 3 * by_name["event, one window, 100 cards"]["rows_out"]


def test_small_batches(quick):
    found = quick("small_batches")
    assert names(found) == ["headrace", "spark groupBy"]
    assert [r["rows"] for r in found["results"]] == [500, 500]  # a second of 500 events/s: every file was waited for


def test_one_event(quick_alone):
    found = quick_alone("one_event")
    assert [r["rows"] for r in found["results"]] == [200] * 8  # two delays, a batch of one or singly, with saves and without


@pytest.mark.parametrize("kind", ["files", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_log_hop(quick_alone, request, kind):
    brokers = ["--brokers", request.getfixturevalue("broker").address] if kind == "kafka" else []
    found = quick_alone("log_hop", "--log", kind, *brokers)
    hop, *alone = found["results"]
    assert hop["rows"] == 180  # 0.4 s of 500 events/s, without the first tenth
    assert [r["rows"] for r in alone] == [500, 2_000, 20]
    assert 0 < hop["details"]["p50_from_sent_ms"] <= hop["details"]["worst_ms"]


def test_saves(quick_alone):
    found = quick_alone("saves")
    assert [r["rows"] for r in found["results"]] == [1_000, 1_000]
    assert found["results"][1]["details"]["hot_ms"][0] > 0


def test_patterns_without_spark(quick_alone):
    found = names(quick_alone("patterns", "--parts", "figures,departures,windows"))
    assert [n for n in found if n.startswith("figure")] == [f"figure {n}" for n in range(4, 17)]
    assert [n for n in found if n.startswith("departure")] == [f"departure {n}" for n in (4, 5, 8, 6, 12, 13, 14, 15, 16)]
    assert {"1 minutes, in vain", "600 minutes, in vain"} < set(found)


def test_the_strategies_on_spark(quick):
    assert names(quick("patterns", "--parts", "spark")) == ["aggressive", "conservative", "K-slack", "figure spark"]


def test_patterns_beside_flink(quick, flink):
    """Up to what Flink itself would say. The matches of all questions are held against those by hand, the first is timed."""
    found = quick("patterns", "--parts", "flink", "--resume")
    states = {(r["details"].get("state"), r["name"].split(",")[0]) for r in found["results"]}
    assert {(state, who) for state in ("warm", "cold") for who in ("headrace", "flink")} <= states
    assert len(found["targets"]) == 2 * 2  # warm and cold, in long micro-batches and in short ones
    assert [(options.repeat, bool(options.output)) for _, options in flink.asked] == [(1, True)] * 4 + [(2, False)]
    assert quick("patterns", "--parts", "flink", "--resume")["targets"] == found["targets"]
    assert len(flink.asked) == 5  # what was measured is not measured again


def test_workers_are_looked_for_under_the_name_that_the_session_gives_them(spark):
    assert spark.conf.get("spark.python.daemon.module") == LOCAL["spark.python.daemon.module"]
    with workers.Watch() as watch:
        spark.range(10).mapInArrow(lambda batches: batches, "id BIGINT").count()
    assert watch.memory.largest > 20.0
    assert watch.memory.total > 20.0


def test_memory_of_workers_that_are_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(workers, "DAEMONS", (b"no.such.daemon",))
    with pytest.raises(NotMeasured, match=r"no\.such\.daemon"), workers.Watch():
        pass


def test_a_failure_is_not_hidden_by_what_was_not_measured(monkeypatch):
    monkeypatch.setattr(workers, "DAEMONS", (b"no.such.daemon",))
    with pytest.raises(KeyError, match="first"), workers.Watch():
        raise KeyError("first")


@pytest.mark.parametrize(("rows", "seconds"), [(0, 1.0), (10, 0.0), (10, float("nan")), (10, float("inf"))])
def test_a_rate_of_nothing_is_an_error(rows, seconds):
    with pytest.raises(NotMeasured, match="no measurement"):
        Result("one", rows, seconds)


def test_a_run_that_was_stopped_may_have_no_rows():
    assert Result("one", 0, 9.0, {"unfinished_after": 9.0}).rows == 0


def test_a_detail_that_is_no_number_is_an_error():
    with pytest.raises(NotMeasured, match="memory is nan"):
        Result("one", 1, 1.0, {"memory": float("nan")})


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_a_target_without_a_measurement_is_neither_met_nor_missed(value):
    with pytest.raises(NotMeasured, match="neither met nor missed"):
        Target("faster", value, 1.0, at_least=False)
