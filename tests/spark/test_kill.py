"""A run that is killed, again and again, and started again with its checkpoint gives what an undisturbed run gives.

`HEADRACE_KILLS=20` kills more often than the default, `HEADRACE_SEED` chooses other moments.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from case_driver import FIRST_WRITTEN, read_sink, write_file

from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import Run, drive
from headrace.testing.disorder import disordered
from headrace.testing.engine import Batch
from headrace.testing.local import local_engine
from headrace.testing.rows import Row, canonical_row, from_micros

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("HEADRACE_KILLS", "2"))
SEED = int(os.environ.get("HEADRACE_SEED", "0"))
FILES = 10 * KILLS
PATIENCE_S = 300  # for one run of the child
TRY_S, RESTART_S = 3, 7  # to kill workers for one batch, and for the child to start again after that
TRIES = 4
SCHEMA = Schema.of(at="TIMESTAMP", id="INT", card="STRING", amount="DOUBLE")
SCRIPT = """
CREATE STREAM payments (at TIMESTAMP, id INT, card STRING, amount DOUBLE)
  SOURCE FILE('{root}/in', 'parquet') TIMESTAMP BY at DELAY 5 SECONDS;
SELECT id, card, SUM(amount) AS s, COUNT(*) AS n, MIN(amount) AS lo FROM payments [RANGE 20 SECONDS] GROUP BY card
  EMIT FINAL INTO FILE('{root}/final');
SELECT id, card, SUM(amount) AS s, COUNT(DISTINCT amount) AS d FROM payments [RANGE 20 SECONDS] GROUP BY card
  EMIT CHANGES INTO FILE('{root}/changes');
SELECT id, LAST(id) AS l, SUM(amount) AS s FROM payments [ROWS 3] EMIT FINAL IN ORDER INTO FILE('{root}/in_order');
SELECT id FROM late(payments) INTO FILE('{root}/late');
CREATE STREAM counts AS SELECT id, card, COUNT(*) AS n FROM payments [RANGE 20 SECONDS] GROUP BY card;
SELECT n, COUNT(*) AS m FROM counts [SIZE 10 SECONDS] GROUP BY n EMIT CHANGES INTO FILE('{root}/cascade_changes');
SELECT a.id AS x, b.id AS y FROM payments [RANGE 6 SECONDS] a JOIN payments [RANGE 6 SECONDS] b ON a.card = b.card
  WHERE a.id < b.id EMIT FINAL INTO FILE('{root}/joined');
SELECT card, window_start, COUNT(*) AS n FROM payments [SESSION 3 SECONDS] GROUP BY card EMIT FINAL INTO FILE('{root}/sessions');
EVENT SEQ(payments a, !(payments b), payments c) WHERE a.card = b.card AND b.card = c.card AND b.amount IS NULL
  WITHIN 20 SECONDS RETURN a.id AS x, c.id AS y
  EMIT CHANGES INTO FILE('{root}/pattern_changes');
"""


def payments() -> list[Batch]:
    rng = Random(7)
    events = [
        (i * SECOND, (from_micros(i * SECOND), i, rng.choice("abcd"), rng.choice((0.1, 0.2, 1e16, -1e16, None))))
        for i in range(FILES * 6)
    ]
    return disordered("payments", events, seed=3, share=0.4, up_to=5 * SECOND, beyond=0.1, batches=FILES)


class Child:
    """The run, in a process group of its own. It says `active` whenever its query is started, `done` at the end."""

    def __init__(self, root: Path, *options: str) -> None:
        program = Path(__file__).with_name("kill_child.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program), str(root / "script.cql"), str(root / "checkpoint"), *options],
            stdout=subprocess.PIPE, stderr=(root / "child.log").open("ab"), text=True, start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put("")

    def says(self, timeout: float) -> str | None:
        """Its next word; empty when it has ended, None when it says nothing in that time."""
        try:
            return self._lines.get(timeout=timeout)
        except queue.Empty:
            return None

    def forget(self) -> None:
        """Whatever it has said so far."""
        with suppress(queue.Empty):
            while True:
                self._lines.get_nowait()

    def kill(self) -> None:
        """Python and the JVM, at once. Workers have a group of their own, and end when the JVM is gone."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """Python workers of Spark below this process: those that a daemon has forked."""
        parents = {int(p.name): _parent(p) for p in Path("/proc").iterdir() if p.name.isdigit()}
        below = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in below and pid not in below}:
            below |= more
        return [pid for pid in below if b"pyspark.daemon" in _command(pid) and b"pyspark.daemon" in _command(parents[pid])]


def _parent(proc: Path) -> int:
    try:
        return int((proc / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return -1


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def files_in(root: Path, what: str) -> int:
    """How many files there are of some kind; when one more comes, something is going on."""
    patterns = {
        "planned": "checkpoint/spark/offsets/[0-9]*", "committed": "checkpoint/spark/commits/[0-9]*", "published": "*/batch-*",
        "staged": "*/_staging/*",
    }  # fmt: skip
    return sum(1 for _ in root.glob(patterns[what]))


def wait_for(root: Path, rng: Random, moments: tuple[str, ...]) -> str:
    """Until a random moment: some time, or just after a batch was planned, staged, published or committed."""
    moment = rng.choice(moments)
    if moment == "time":
        time.sleep(rng.uniform(0, 3))
        return moment
    before, deadline = files_in(root, moment), time.monotonic() + PATIENCE_S
    while files_in(root, moment) <= before and time.monotonic() < deadline:
        before = min(before, files_in(root, moment))
        time.sleep(0.002)
    time.sleep(rng.choice((0, 0, 0.005, 0.02, 0.1)))
    return moment


def lose_workers(root: Path, child: Child, rng: Random) -> str | None:
    """Kill Python workers until the batch that needs one fails, and the child starts the query again; idle ones nobody misses."""
    moment, killed = wait_for(root, rng, ("planned", "staged")), 0
    child.forget()
    deadline, said = time.monotonic() + TRY_S, None
    while time.monotonic() < deadline and said is None:
        for worker in child.workers():
            _kill(worker)
            killed += 1
        said = child.says(0.05)
    return f"{moment}: {killed} workers" if (said or child.says(RESTART_S)) == "active" else None


def test_killed_runs_give_what_an_undisturbed_run_gives(tmp_path):
    root, rng = tmp_path, Random(SEED)
    (root / "script.cql").write_text(SCRIPT.format(root=root), encoding="utf-8")
    batches = payments()
    feed = Feed(root / "in", [[a.values for a in b.rows["payments"]] for b in batches])
    history: list[str] = []
    while len(history) < KILLS:
        feed.write(3)
        child = Child(root, "--follow")
        try:
            assert child.says(PATIENCE_S) == "active", (root / "child.log").read_text()[-3000:]
            due = not any("workers" in kill for kill in history[-8:])
            for _ in range(TRIES if due else 0):
                feed.write(1)
                lost = lose_workers(root, child, rng)
                if lost:
                    history.append(lost)
                    break
            feed.write(3)
            moment = wait_for(root, rng, ("time", "planned", "staged", "staged", "published", "published", "committed"))
        finally:
            child.kill()
        history.append(f"{moment}: all, with {files_in(root, 'committed')} batches committed")
        print(history[-1], flush=True)
    feed.write(len(batches))
    child = Child(root)
    try:
        assert [child.says(PATIENCE_S), child.says(PATIENCE_S)] == ["active", "done"], (root / "child.log").read_text()[-3000:]
    finally:
        child.kill()
    print(*history, sep="\n")
    assert any("workers" in kill for kill in history), f"no worker was missed: {history}"
    check_sinks(root, batches, history)


class Feed:
    """Writes the input file by file."""

    def __init__(self, folder: Path, batches: list[list[Row]]) -> None:
        self.folder, self.batches, self.next = folder, batches, 0
        folder.mkdir()

    def write(self, count: int) -> None:
        """So many more files, as far as there are."""
        for number in range(self.next, min(self.next + count, len(self.batches))):
            write_file(self.folder / f"{number:04d}.parquet", SCHEMA, self.batches[number], FIRST_WRITTEN + number)
        self.next = min(self.next + count, len(self.batches))


def check_sinks(root: Path, batches: list[Batch], history: list[str]) -> None:
    """The sinks hold what the runtime gives in one go."""
    script = parse_script(SCRIPT.format(root=root))
    run = Run(script, tuple(batches), {})
    outputs = drive(local_engine(script, 2, None), run)
    for query in script.queries:
        schema = query.node.schema
        want = [(c.sign, canonical_row(c.row, schema)) for output in outputs for c in output[query.name]]
        got = read_sink(query.name)
        where = f"{query.name} after {history}"
        if query.name.endswith("changes"):
            signed = [(-1 if row[0] == "-" else 1, canonical_row(row[1:], schema)) for row in got]
            assert consolidate(signed) == consolidate(want), where
        elif query.name.endswith("in_order"):
            assert [canonical_row(row, schema) for row in got] == [row for _, row in want], where
        else:
            assert Counter(canonical_row(row, schema) for row in got) == Counter(row for _, row in want), where


def consolidate(changes: list[tuple[int, tuple]]) -> dict[tuple, int]:
    total: Counter[tuple] = Counter()
    for sign, row in changes:
        total[row] += sign
    assert min(total.values()) >= 0
    return dict(+total)
