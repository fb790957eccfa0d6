"""A run that is killed, again and again, and started again with its checkpoint gives what an undisturbed run gives.

Python processes of Spark kill themselves at points that are armed one at a time (`kill_points.py`), in a session that stays; some
of the kills are of everything, the session included. What lay on the disk at the moment of a death tells what kind of moment it
was. `HEADRACE_KILLS=100` kills more often than the default, `HEADRACE_SEED` chooses other points and another order.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from case_driver import FIRST_WRITTEN, read_sink, write_file
from kill_points import DAEMONS, FOLDER, IDLE, KINDS, POINTS, arm, death, disk, kind_of, last_batch

from headrace.oracle.rows import Row, canonical_row, from_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import Run, drive
from headrace.testing.disorder import disordered
from headrace.testing.engine import Batch
from headrace.testing.local import local_engine
from quick import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.alone]

KILLS = int(os.environ.get("HEADRACE_KILLS", "20"))
SEED = int(os.environ.get("HEADRACE_SEED", "0"))
FILES = 2 * KILLS + 10  # a kill takes one or none, seldom more
PATIENCE_S = 300  # for whatever is waited for: a machine may be busy
TREES = (("staged", "partly published", "published"), (IDLE,), ("planned",))  # moments at which the whole tree is killed
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
    """The process that runs the script, with its JVM in a process group of its own."""

    def __init__(self, root: Path) -> None:
        program, self.log = Path(__file__).with_name("kill_child.py"), root / "child.log"
        self.process = subprocess.Popen(
            [sys.executable, str(program), str(root / "script.cql"), str(root / "checkpoint"), json.dumps(QUICK)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("ab"), text=True, start_new_session=True,
            env={**os.environ, FOLDER: str(root / "points")},
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put("nothing any more")

    def start(self, run: str) -> None:
        """Have it start a run: `follow`, or `rest` for one that ends with its input."""
        assert self.process.stdin is not None
        self.process.stdin.write(run + "\n")
        self.process.stdin.flush()
        self.hear("active")

    def hear(self, word: str) -> str:
        """What it says next, which must begin so."""
        try:
            said = self._lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            said = f"nothing in {PATIENCE_S} seconds"
        assert said.startswith(word), f"{said!r} instead of {word!r}: {self.log.read_text()[-3000:]}"
        return said

    def has_spoken(self) -> bool:
        """Whether it has said something that was not heard yet."""
        return not self._lines.empty()

    def kill(self) -> None:
        """Python and the JVM, at once. Workers have groups of their own, and end when the JVM is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def daemon(self, module: str) -> int:
        """The process that Spark has workers for a module from, whose group they are in."""
        found = set(_groups(module.encode(), self.process.pid))
        assert len(found) == 1, f"daemons of {module}: {found}"
        return found.pop()


def _groups(word: bytes, session: int) -> Iterator[int]:
    """The process group of each process of a session whose command has this word, stubs that wait for such a process aside."""
    for proc in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            group, of = map(int, (proc / "stat").read_text().rpartition(")")[2].split()[2:4])
            if of == session != group and word in (proc / "cmdline").read_bytes().split(b"\0"):
                yield group


def has_died(pid: int) -> bool:
    """Also if nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(what: Callable[[], Any], why_not: Callable[[], object]) -> None:
    """Look often: what is waited for takes milliseconds, on a busy machine seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, f"in {PATIENCE_S} seconds {why_not()}"
        time.sleep(0.01)


class Kill(NamedTuple):
    """A kill that is asked for: of a process at a point, when it has passed that so often; idle, of the workers of a daemon."""

    kind: str
    point: str
    passes: int
    again: bool  # in the batch that the kill before has hit, when that is tried again
    tree: bool = False  # all of it: Python, the JVM, and with them the workers

    def __str__(self) -> str:
        marks = [self.point, f"passed {self.passes} times", "again" if self.again else "", "tree" if self.tree else ""]
        return ", ".join(mark for mark in marks if mark)


def kills_of(count: int, rng: Random) -> list[Kill]:
    """All kinds of moments in turn, each time in another order, all points of a kind in turn; one of twenty kills the tree."""
    every = {**POINTS, IDLE: tuple((daemon, 0, 0) for daemon in DAEMONS)}
    points = {kind: cycle(rng.sample(every[kind], len(every[kind]))) for kind in KINDS}
    kills: list[Kill] = []
    while len(kills) < count:
        for kind in rng.sample(KINDS, len(KINDS)):
            point, least, most = next(points[kind])
            kills.append(Kill(kind, point, rng.randint(least, most), again=rng.random() < 0.6))
    del kills[count:]
    for twenty, kinds in zip(range(0, count, 20), cycle(TREES), strict=False):
        # Not the very last: one more session would have to be started for the rest.
        chosen = [i for i in range(twenty, min(twenty + 20, count - 1)) if kills[i].kind in kinds]
        if chosen:
            i = rng.choice(chosen)
            kills[i] = kills[i]._replace(tree=True)
    return kills


class Killed:
    """A script that is killed and started again; its input, and what was seen of its deaths."""

    def __init__(self, root: Path, batches: list[Batch]) -> None:
        self.root, self.points = root, root / "points"
        self.points.mkdir()
        self.feed = Feed(root / "in", [[a.values for a in b.rows["payments"]] for b in batches])
        self.child: Child | None = None
        self.spare: Child | None = None  # whose session comes up while the other one still works
        self.running = False
        self.met: Counter[str] = Counter()
        self.history: list[str] = []

    def process(self) -> Child:
        if self.child is None:
            self.child, self.spare = self.spare or Child(self.root), None
        return self.child

    def run(self) -> Child:
        """The process, with a run that follows its input."""
        child = self.process()
        if not self.running:
            child.start("follow")
            self.running = True
        return child

    def run_until(self, what: Callable[[], Any]) -> None:
        """A run that fails before that has failed of itself."""
        if not what():
            child = self.run()
            wait_until(lambda: what() or child.has_spoken(), lambda: f"no end of {disk(self.root)} after {self.history}")
            assert what(), f"{child.hear('')} after {self.history}"

    def quiet(self) -> bool:
        """Whether there is nothing to do: every file is a batch."""
        return last_batch(self.root, "commits") == self.feed.next - 1

    def kill(self, kill: Kill) -> None:
        """One kill, with the proof of it: who died, of what kind the moment was, that the run failed."""
        begun = time.monotonic()
        kind, who = self.kill_idle(kill) if kill.kind == IDLE else self.kill_at_point(kill)
        child = self.process()
        if kill.tree:
            assert child.process.wait(PATIENCE_S) == -signal.SIGKILL
            self.child, why = None, "killed"
        else:
            why = child.hear("failed").partition(";")[0]
        self.running = False
        self.met[kind] += 1
        self.history.append(f"{kind}: {kill}: {who}: {why}")
        print(f"{time.monotonic() - begun:5.1f} s {self.history[-1]}", flush=True)

    def kill_idle(self, kill: Kill) -> tuple[str, str]:
        """Between two batches. The next one misses who is dead."""
        if self.quiet():
            self.feed.write(1)  # a session has no workers before its first batch
        self.run_until(self.quiet)
        child, now = self.process(), disk(self.root)
        if kill.tree:
            child.kill()
            return kind_of(now, now), "all"
        daemon = child.daemon(kill.point)
        os.killpg(daemon, signal.SIGKILL)
        wait_until(lambda: has_died(daemon), lambda: f"{daemon} did not die")
        self.feed.write(1)
        return kind_of(now, now), "all of its group"

    def kill_at_point(self, kill: Kill) -> tuple[str, str]:
        """In the batch that the last kill has left, or in a new one."""
        if not kill.again:
            self.run_until(self.quiet)
        before = disk(self.root)
        arm(self.points, kill.point, kill.passes, group=self.process().process.pid if kill.tree else None)
        while (died := death(self.points)) is None:
            if self.quiet():
                self.feed.write(1)
            self.run_until(lambda: death(self.points) or self.quiet())  # in some batches a point is not passed so often
        wait_until(lambda: has_died(died.pid), lambda: f"{died} did not die")
        return kind_of(died.disk, before), died.program.rpartition(" -m ")[2]

    def prepare(self, rest: list[Kill]) -> None:
        """Have a session come up for the one that will be killed."""
        if self.spare is None and self.child is not None and any(kill.tree for kill in rest):
            self.spare = Child(self.root)

    def finish(self) -> None:
        """The rest of the input, at once."""
        self.feed.write(len(self.feed.batches) - self.feed.next)
        child = self.process()
        child.start("rest")
        child.hear("done")

    def end(self) -> None:
        for child in (self.child, self.spare):
            if child is not None:
                child.kill()


def test_killed_runs_give_what_an_undisturbed_run_gives(tmp_path):
    (tmp_path / "script.cql").write_text(SCRIPT.format(root=tmp_path), encoding="utf-8")
    batches, kills = payments(), kills_of(KILLS, Random(SEED))
    killed = Killed(tmp_path, batches)
    try:
        killed.feed.write(2)
        for number, kill in enumerate(kills):
            killed.kill(kill)
            killed.prepare(kills[number + 1 :])
        assert killed.feed.next < len(batches), "the input has ended before the last kill"
        killed.finish()
    finally:
        killed.end()
    print(dict(killed.met))
    assert min(killed.met[kind] for kind in KINDS) >= min(2, KILLS // len(KINDS)), killed.history
    check_sinks(tmp_path, batches, killed.history)


class Feed:
    """Writes the input file by file."""

    def __init__(self, folder: Path, batches: list[list[Row]]) -> None:
        self.folder, self.batches, self.next = folder, batches, 0
        folder.mkdir()

    def write(self, count: int) -> None:
        """So many more files."""
        for number in range(self.next, self.next + count):
            write_file(self.folder / f"{number:04d}.parquet", SCHEMA, self.batches[number], FIRST_WRITTEN + number)
        self.next += count


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
