from pathlib import Path

from headrace.cli.bench import benchmarks, find_folder

WRITES = "import sys\nif __name__ == '__main__':\n    open('{0}', 'w').write(' '.join(sys.argv[1:]))\n    sys.exit({1})"


def checkout(folder: Path, **codes: int) -> Path:
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    for name, code in codes.items():
        (folder / "benchmarks" / f"{name}.py").write_text(WRITES.format(name, code))
    return folder


def test_the_benchmarks_of_this_checkout():
    names = list(benchmarks(find_folder(Path(__file__).resolve())))
    assert names == [
        "first_result",
        "flink_windows",
        "hops",
        "log_hop",
        "one_event",
        "patterns",
        "saves",
        "sliding",
        "small_batches",
        "versions",
        "windows",
    ]


def test_all_runs_every_one_also_behind_a_failure(headrace, tmp_path, monkeypatch):
    monkeypatch.chdir(checkout(tmp_path, first=4, second=0))
    assert headrace("bench", "all", "--quick").exit_code == 4
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["--quick", "--quick"]


def test_files_are_named_from_where_the_user_is(headrace, tmp_path, monkeypatch):
    folder = checkout(tmp_path / "repo", one=0)
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    assert headrace("bench", "one").exit_code == 0
    assert (folder / "deep" / "one").exists()


def test_all_is_a_name_that_is_suggested(headrace, tmp_path, monkeypatch):
    monkeypatch.chdir(checkout(tmp_path, sliding=0))
    assert "Did you mean 'all'" in headrace("bench", "al").stderr
