"""Failures of the system are told as such: each in its own words, with what to do, and never as a fault of the data."""

from __future__ import annotations

import os

import pytest

from headrace.errors import HeadraceError, SetupError, SourceError, SparkFailure, StateError, SystemFailure
from headrace.spark.failures import Places, explain_failure
from headrace.spark.jvm.chatter import why_no_java
from headrace.spark.workers.shipped import PACKAGES, complain

PLACES = Places("/state/live", ("/results/out",))

# What Spark, Java, Arrow and Python say, shortened to the lines that matter.
SAID = {
    "disk, by Python": ("OSError: [Errno 28] No space left on device: '/results/out/x'", SystemFailure, "/results/out/x"),
    "disk, by Java": ("java.io.IOException: No space left on device\n\tat java.base/java.io", SystemFailure, "the disk is full"),
    "disk, by Arrow": (
        "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device",
        SystemFailure,
        "the disk is full",
    ),
    "disk, by RocksDB": (
        "org.rocksdb.RocksDBException: While appending to file: /tmp/spark-1/000009.log: No space left on device",
        SystemFailure,
        "/tmp/spark-1/000009.log",
    ),
    "sink denied": (
        "PermissionError: [Errno 13] Failed to create directory '/results/out/_staging': Cannot create directory "
        "'/results/out/_staging'. Detail: [errno 13] Permission denied",
        SystemFailure,
        "a result /results/out/_staging",
    ),
    "checkpoint denied": (
        "PermissionError: [Errno 13] Permission denied: '/state/live'",
        SystemFailure,
        "the checkpoint /state/live",
    ),
    "source denied": ("java.io.FileNotFoundException: /in/p.parquet (Permission denied)", HeadraceError, "/in/p.parquet"),
    "read only": ("OSError: [Errno 30] Read-only file system: '/results/out'", SystemFailure, "/results/out"),
    "a file in the way": (
        "NotADirectoryError: [Errno 20] Not a directory: '/results/out/a'",
        SystemFailure,
        "where there is a file",
    ),
    "port": (
        "java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed after 16 retries",
        SystemFailure,
        "a port",
    ),
    "heap": ("java.lang.OutOfMemoryError: Java heap space", SystemFailure, "out of memory"),
    "worker killed": (
        "SparkException: Python worker exited unexpectedly (crashed)",
        SystemFailure,
        "Killed process",
    ),
    "JVM killed": ("[Errno 111] Connection refused", SystemFailure, "Spark's JVM is gone"),
    "JVM killed in a call": ("Error while sending or receiving", SystemFailure, "Spark's JVM is gone"),
    "daemon killed": (
        "Lost task 0.0: java.io.IOException: Stream closed\n\tat java.base/java.lang.ProcessBuilder$NullOutputStream"
        "\n\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:177)",
        SystemFailure,
        "a Python worker of Spark died",
    ),
    "no headrace": ("ModuleNotFoundError: No module named 'headrace'", SetupError, "docs/cluster.md"),
    "no numba": ("  File x, line 1\nModuleNotFoundError: No module named 'numba.core'", SetupError, "cannot import numba"),
    "no daemon": (
        "Error from python worker:\n  /usr/bin/python3: Error while finding module specification for "
        "'headrace.spark.workers.daemon' (ModuleNotFoundError: No module named 'headrace')",
        SetupError,
        "cannot import headrace",
    ),
    "another headrace": (
        "AttributeError: Can't get attribute 'Packing' on <module 'headrace.spark.exchange.pack' from '/x'>",
        SetupError,
        "another version of Headrace",
    ),
    "another python": (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot run",
        SetupError,
        "Python 3.9, and this program 3.11",
    ),
    "no python": ('java.io.IOException: Cannot run program "python3": error=2, No such file', SetupError, "'python3'"),
    "vanished": (
        "org.apache.spark.SparkFileNotFoundException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:///in/a.csv. File does not exist.\nCaused by: java.io.FileNotFoundException: File file:/in/a.csv does not exist",
        SourceError,
        "/in/a.csv",
    ),
    "not parquet": (
        "java.lang.RuntimeException: file:/in/p.parquet is not a Parquet file. Expected magic number at tail",
        SourceError,
        "/in/p.parquet",
    ),
    "damaged parquet": (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/p.parquet.  SQLSTATE: KD001\n"
        "java.lang.RuntimeException: footer is too large: 3238553176to be read",
        SourceError,
        "/in/p.parquet is no parquet file",
    ),
    "two runs": (
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 4.",
        StateError,
        "another run uses the checkpoint /state/live",
    ),
    "state gone": (
        "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_MISSING_SNAPSHOT_FILE] An error occurred during loading state",
        StateError,
        "the checkpoint /state/live is damaged",
    ),
    "state file gone": (
        "FileNotFoundException: File file:/state/live/spark/1.zip does not exist",
        StateError,
        "damaged",
    ),
    "checkpoint garbled": (
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/state/live/spark/offsets/0 at 0 exp: 1 got: 2",
        StateError,
        "the checkpoint /state/live is damaged",
    ),
    "by a worker": (
        "Traceback\nheadrace.errors.StateError: page 3 of a bucket is gone\n  hint: the checkpoint is damaged\n\tat org.apache",
        StateError,
        "the checkpoint is damaged",
    ),
    "anything else": (
        "SparkException: Job aborted\nCaused by: java.lang.X.FooException: odd",
        SparkFailure,
        "odd",
    ),
}


@pytest.mark.parametrize("kind", SAID)
def test_a_failure_has_its_own_words(kind):
    said, fault, words = SAID[kind]
    found = explain_failure(RuntimeError(said), PLACES)
    assert isinstance(found, fault), (type(found), str(found))
    assert words in str(found)
    assert found.hint
    title = found.title
    assert title not in (HeadraceError.title, "the data is not what the query declares")


def test_where_a_disk_is_full_is_looked_for(tmp_path, monkeypatch):
    usage = os.statvfs(tmp_path)
    monkeypatch.setattr("headrace.spark.failures.FULL", usage.f_bavail * usage.f_frsize + 2**40)
    found = explain_failure(RuntimeError("java.io.IOException: No space left on device"), Places(str(tmp_path / "state")))
    assert str(tmp_path) in found.message


def test_the_cause_may_be_deep_in_a_chain():
    outer = RuntimeError("Query terminated with exception: Job aborted")
    outer.__cause__ = RuntimeError("Job aborted due to stage failure")
    outer.__cause__.__cause__ = OSError(28, "No space left on device", "/results/out/a")
    assert "/results/out/a" in str(explain_failure(outer, PLACES))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("JAVA_HOME is not set", "there is no Java"),
        ("Error: A JNI error\njava.lang.UnsupportedClassVersionError: org/apache (class file version 61.0)", "is too old"),
        ("Error occurred during initialization of boot layer\nModule jdk.incubator.vector not found", "lacks the module"),
        ("There is insufficient memory for the Java Runtime Environment to continue.", "too little memory"),
        ("something else", "something else"),
    ],
)
def test_a_jvm_that_does_not_start_says_why(said, words):
    error = why_no_java(said)
    assert isinstance(error, SetupError | SystemFailure)
    assert words in error.message
    assert error.hint


def test_what_workers_lack_is_one_line():
    with pytest.raises(SetupError, match="cannot import headrace, numba") as raised:
        complain({"pyarrow": "1", "pandas": "1", "numpy": "1"}, "0.1.0")
    assert "docs/cluster.md" in (raised.value.hint or "")
    with pytest.raises(SetupError, match=r"have Headrace 0\.0\.9, and this program has 0\.1\.0"):
        complain(dict.fromkeys(PACKAGES, "0.0.9"), "0.1.0")
    complain(dict.fromkeys(PACKAGES, "0.1.0"), "0.1.0")
