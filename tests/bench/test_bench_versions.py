"""Versions are compared by turns and pair by pair, and a comparison that was stopped goes on where it was."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from benchmarks import command, versions, versions_side
from benchmarks.report import NotMeasured
from benchmarks.versions import BASE, NEW, Measured, ratios, targets_of, todo


def run_of(version: str, pair: int, rate: float, cpu: float = 1.0, part: str = "sliding") -> Measured:
    return Measured(part, pair, version, {"in order": rate}, cpu)


PAIRS = [
    run_of(v, i, rate, cpu)
    for i, (base, new, cpu_new) in enumerate([(100.0, 90.0, 2.0), (50.0, 49.0, 1.0), (200.0, 220.0, 0.5)])
    for v, rate, cpu in ((BASE, base, 1.0), (NEW, new, cpu_new))
]


def test_ratios_are_new_by_base_of_the_same_pair():
    assert ratios(PAIRS) == {"sliding, in order": [0.9, 0.98, 1.1], "sliding, processor time": [0.5, 1.0, 2.0]}


def test_a_pair_that_lacks_one_side_does_not_count():
    assert ratios(PAIRS[:-1])["sliding, in order"] == [0.9, 0.98]


def test_small_batches_have_no_processor_time():
    both = [run_of(v, 0, 2.0, part="small_batches") for v in (BASE, NEW)]
    assert ratios(both) == {"small_batches, in order": [1.0]}


def test_the_median_is_held_against_the_target_and_processor_time_is_not():
    (target,) = targets_of(ratios(PAIRS))
    assert (target.value, target.bound, target.met) == (0.98, 0.97, True)
    slower = [
        m if m.version == BASE else Measured(m.part, m.pair, NEW, {"in order": m.values["in order"] * 0.98}, 1.0) for m in PAIRS
    ]
    assert not targets_of(ratios(slower))[0].met


def test_versions_that_measure_different_things_are_not_compared():
    with pytest.raises(NotMeasured, match="in order"):
        ratios([run_of(BASE, 0, 1.0), Measured("sliding", 0, NEW, {"late": 1.0}, 1.0)])


def test_versions_take_turns_and_what_is_done_is_not_done_again():
    order = list(todo(("sliding",), 3, []))
    assert [v for _, _, v in order] == [BASE, NEW, NEW, BASE, BASE, NEW]
    assert list(todo(("sliding",), 3, [run_of(v, p, 1.0) for _, p, v in order[:3]])) == order[3:]


@pytest.fixture
def fake_side(tmp_path, monkeypatch):
    """Two checkouts whose `headrace` says how fast it is."""
    side = tmp_path / "side.py"
    side.write_text(
        "import json, pathlib, headrace\n"
        "def main(words):\n"
        "    print(json.dumps({'values': {words[0]: headrace.RATE}, 'cpu_seconds': 2.0,"
        " 'headrace': str(pathlib.Path(headrace.__file__).resolve().parent)}))\n"
    )
    for name, rate in ((BASE, 10.0), (NEW, 12.0)):
        package = tmp_path / name / "src" / "headrace"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"RATE = {rate}\n")
    monkeypatch.setattr(versions, "SIDE", side)
    monkeypatch.setattr(versions, "ROOT", tmp_path / NEW)
    monkeypatch.setattr(versions, "revision_of", lambda folder: folder.name)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    return tmp_path


def start(folder, *words: str) -> dict:
    out = folder / "versions.json"
    versions.main(versions.arguments().parse_args(["--base", str(folder / BASE), "--json", str(out), "--quick", *words]))
    return json.loads(out.read_text())


def test_each_version_runs_its_own_engine_and_the_result_can_be_resumed(fake_side, monkeypatch):
    found = start(fake_side, "--pairs", "2", "--parts", "sliding,patterns")
    assert len(found["runs"]) == 8
    assert [(t["value"], t["met"]) for t in found["targets"]] == [(1.2, True), (1.2, True)]
    monkeypatch.setattr(sys, "executable", "/does/not/exist")  # whatever is measured now was measured before
    assert start(fake_side, "--pairs", "2", "--parts", "sliding,patterns", "--resume")["runs"] == found["runs"]


def test_what_was_measured_of_other_versions_is_not_resumed(fake_side, monkeypatch):
    start(fake_side, "--pairs", "1", "--parts", "sliding")
    monkeypatch.setattr(versions, "revision_of", lambda folder: "other")
    with pytest.raises(SystemExit, match="run without --resume"):
        start(fake_side, "--pairs", "1", "--parts", "sliding", "--resume")


def test_a_run_that_fails_is_an_error(fake_side):
    (fake_side / BASE / "src" / "headrace" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    with pytest.raises(NotMeasured, match="broken"):
        start(fake_side, "--pairs", "1", "--parts", "sliding")


def test_a_version_that_ran_another_engine_is_an_error(fake_side, monkeypatch):
    monkeypatch.setattr(versions, "ROOT", fake_side / BASE)
    (fake_side / "side.py").write_text(
        "import json\ndef main(words):\n    print(json.dumps({'values': {'a': 1}, 'cpu_seconds': 1, 'headrace': '/elsewhere'}))\n"
    )
    with pytest.raises(NotMeasured, match="/elsewhere"):
        start(fake_side, "--pairs", "1", "--parts", "sliding")


@pytest.mark.parametrize(("a_run_takes", "untimed"), [(1.0, 3), (4.0, 1), (10.0, 1)])
def test_what_is_slow_to_start_has_no_longer_to_warm_up(monkeypatch, a_run_takes, untimed):
    """Two questions in turn until 5 s are over, then two rounds that count."""
    clock = [0.0]
    rates = {"one": [], "other": []}

    def run(name: str) -> SimpleNamespace:
        clock[0] += a_run_takes
        rates[name].append(float(len(rates[name])))
        return SimpleNamespace(events_per_second=rates[name][-1])

    monkeypatch.setattr(versions_side.time, "monotonic", lambda: clock[0])
    asked = {name: lambda name=name: run(name) for name in rates}
    found = versions_side.rates(asked, SimpleNamespace(warm_up=5.0, rounds=2))
    assert found == {"one": untimed + 0.5, "other": untimed + 0.5}
    assert len(rates["one"]) == untimed + 2
