"""What the storage layer promises, on every file system that there is a way to."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from headrace.errors import InUseError, StateError
from headrace.spark.storage.lock import Lock, holder_of, require
from headrace.spark.storage.storage import LOCAL, absolute, join, read_facts, write_facts


@pytest.fixture(params=["local"])
def place(request, tmp_path):
    """A file system, and an empty folder in it."""
    return LOCAL, str(tmp_path / "at")


def test_files(place):
    storage, root = place
    assert storage.names(root) == []
    assert storage.read(join(root, "none")) is None
    assert not storage.exists(root)
    storage.add(join(root, "a", "b.txt"), b"one\n")
    storage.add(join(root, "a", "c.txt"), b"")
    assert storage.names(join(root, "a")) == ["b.txt", "c.txt"]
    assert storage.names(root) == ["a"]
    assert (storage.is_folder(join(root, "a")), storage.is_folder(join(root, "a", "b.txt"))) == (True, False)
    storage.delete(join(root, "a", "none"))
    storage.delete(join(root, "a"))
    assert not storage.exists(join(root, "a"))
    storage.make(join(root, "x", "y"))
    assert storage.is_folder(join(root, "x", "y"))


def test_facts_are_replaced(place):
    storage, root = place
    path = join(root, "facts.json")
    assert read_facts(storage, path) is None
    for number in range(3):
        write_facts(storage, path, {"number": number, "text": "ü\n"})
        assert read_facts(storage, path) == {"number": number, "text": "ü\n"}
    assert storage.names(root) == ["facts.json"]


def test_one_run_at_a_time(place):
    storage, root = place
    first = Lock(root, storage)
    assert holder_of(storage, root)["pid"] == os.getpid()
    with pytest.raises(InUseError, match=f"process {os.getpid()} on .* is running on the checkpoint"):
        Lock(root, storage)
    require(storage, root, first.token)
    first.release()
    assert holder_of(storage, root) is None
    second = Lock(root, storage)
    with pytest.raises(StateError, match="another run has taken over"):
        require(storage, root, first.token)
    second.release()
    second.release()


def test_a_folder_of_other_things_is_left_alone(place):
    storage, root = place
    storage.add(join(root, "letter.txt"), b"dear\n")
    with pytest.raises(StateError, match="not empty and not a checkpoint"):
        Lock(root, storage)
    assert storage.names(root) == ["letter.txt"]


def test_the_lock_of_a_killed_process_is_nobodys(tmp_path):
    root = str(tmp_path / "at")
    code = (
        "import sys, time; from headrace.spark.storage.lock import Lock; from headrace.spark.storage.storage import LOCAL;"
        "lock = Lock(sys.argv[1], LOCAL); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, root], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(InUseError, match=f"process {child.pid} on"):
            Lock(root, LOCAL)
    finally:
        child.kill()
        child.wait()
    assert holder_of(LOCAL, root) is None
    Lock(root, LOCAL).release()


def test_a_local_file_is_written_whole_or_not_at_all(tmp_path):
    """Killed at any time, a writer leaves the old facts or the new ones, and a listing shows nothing half done."""
    path = tmp_path / "facts.json"
    code = (
        "import sys; from headrace.spark.storage.storage import LOCAL, write_facts\n"
        "for i in range(10**6): write_facts(LOCAL, sys.argv[1], {'i': i, 'long': 'x' * 5000})"
    )
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, str(path)])
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        child.kill()
        child.wait()
        facts = read_facts(LOCAL, str(path))
        assert facts is not None
        assert len(facts["long"]) == 5000
    assert [n for n in os.listdir(tmp_path) if not n.startswith(".")] == ["facts.json"]


@pytest.mark.parametrize(
    ("path", "plain"),
    [("file:///a/b", "/a/b"), ("file:/a/b/", "/a/b"), ("/a/../b", "/b"), ("S3A://bucket/x/", "S3A://bucket/x")],
)
def test_paths(path, plain):
    assert absolute(path) == plain
