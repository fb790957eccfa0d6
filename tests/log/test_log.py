"""The contract of the log, held against every implementation: random histories beside a log in memory, and real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from child import READY, values_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory import MemoryLog

from headrace.errors import HeadraceError, LogError
from headrace.log.log import At

TOPICS = {"payments.card": 2, "replies": 1}
HANDLES = 3
WHERE = ("on", "begin", "end", "before", "behind", "somewhere")
WEIGHTS = {
    "append": 8, "poll": 6, "poll several": 4, "trim": 3, "create": 5, "create other": 1, "delete": 1, "open again": 1, "look": 2,
    "commit": 1, "sync": 1,
}  # fmt: skip
STEPS = 100


class History:
    """The same steps for the log and for the one in memory; after each of them both have said the same."""

    def __init__(self, world, seen: Counter) -> None:
        self.world, self.seen = world, seen
        self.memory, self.random = MemoryLog(), Random(0)
        self.logs = [world.open(small=True) for _ in range(HANDLES)]
        self.on: list[dict[At, int]] = [{} for _ in range(HANDLES)]
        self.polled: set[tuple[int, str]] = set()  # who has asked for records of a topic that is there
        self.stale: set[tuple[int, str]] = set()  # or was then
        for topic, partitions in TOPICS.items():
            self.logs[0].create(topic, partitions)
            self.memory.create(topic, partitions)

    def step(self, kind: str, who: int, where: int, how: int) -> None:
        who %= HANDLES
        log = self.logs[who]
        topic = list(TOPICS)[where % 2]
        at = At(topic, where // 2 % (TOPICS[topic] + (how == 5)))  # now and then one that is not there
        match kind:
            case "append":
                values = [self.random.randbytes(self.random.choice((0, 3, 60))) for _ in range(how)]
                self.same(lambda log: log.append(at, values), log)
            case "poll":
                self.poll(who, {at: self.offset(who, at, WHERE[how])})
            case "poll several":
                ats = [At(topic, number) for topic, count in TOPICS.items() for number in range(count)]
                self.poll(who, {at: self.offset(who, at, "somewhere") for at in ats}, most=(1, 4, 1000)[how % 3])
            case "trim":
                offset = self.offset(who, at, WHERE[how])
                before = self.tried(lambda: self.memory.begin(at))
                self.same(lambda log: log.trim(at, offset), log)
                if isinstance(before, int):
                    begin = log.begin(at)
                    assert before <= begin <= self.memory.begin(at)
                    self.memory.keep(at, begin)
                    self.seen["trimmed"] += begin > before
            case "commit":
                self.same(lambda log: log.commit("units", {at: how}), log)
            case "sync":
                if (who, topic) in self.stale and self.tried(lambda: log.sync([at])) is LogError:
                    return  # what he polled is gone, and he may be told here, too
                self.same(lambda log: log.sync([at]), log)
            case "create":
                self.same(lambda log: log.create(topic, TOPICS[topic]), log)
            case "create other":
                self.same(lambda log: log.create(topic, 3), log)
                if self.memory.topics()[topic] == 3:  # it was not there
                    self.step("delete", who, where, how)
            case "delete":
                self.stale |= {(n, name) for n, name in self.polled if name == topic}
                self.polled -= self.stale
                self.same(lambda log: log.delete(topic), log)
                self.seen["deleted"] += 1
            case "open again":
                log.close()
                self.logs[who] = self.world.open(small=True)
                for those in (self.stale, self.polled):
                    those -= {(who, name) for name in TOPICS}
            case "look":
                self.same(lambda log: log.topics(), log)
                self.same(lambda log: log.committed("units"), log)
                self.same(lambda log: (log.begin(at), log.end(at)), log)

    def same(self, ask, log) -> None:
        got, wanted = self.tried(lambda: ask(log)), self.tried(lambda: ask(self.memory))
        assert got == wanted
        self.seen["errors"] += got is LogError

    def tried(self, ask):
        try:
            return ask()
        except LogError:
            return LogError

    def offset(self, who: int, at: At, where: str) -> int:
        if at.topic not in self.memory.topics() or at.partition >= TOPICS[at.topic]:
            return 0
        begin, end = self.memory.begin(at), self.memory.end(at)
        on = self.on[who].get(at, begin)
        spots = {"begin": begin, "end": end, "before": begin - 1, "behind": end + 1, "on": on}
        return spots.get(where, self.random.randint(begin, end))

    def poll(self, who: int, offsets: dict[At, int], most: int = 1000) -> None:
        wanted = self.tried(lambda: self.memory.poll(offsets, 0.0))
        got = self.tried(lambda: self.logs[who].poll(offsets, 0.0, most))
        asked = {(who, at.topic) for at in offsets}
        stale = asked & self.stale
        self.polled |= {(who, topic) for _, topic in asked if topic in self.memory.topics()}
        self.stale -= stale
        if got is LogError and stale:  # he is told once that what he polled is gone
            self.seen["told"] += wanted is not LogError
            return
        if wanted is LogError:  # but others may have had enough
            assert got is LogError or len(got) == most
            self.seen["refused"] += 1
            return
        assert got is not LogError
        assert len(got) <= most
        assert bool(got) == bool(wanted)
        for at in offsets:
            own = [r for r in got if r.at == at]
            assert own == [r for r in wanted if r.at == at][: len(own)]
            self.on[who][at] = offsets[at] + len(own)
        self.seen["records"] += len(got)


def test_histories_are_those_of_a_log_in_memory(world):
    seen: Counter = Counter()
    histories = int(3 * settings.default.max_examples * world.share)

    @settings(max_examples=min(histories, 600), suppress_health_check=list(HealthCheck))
    @given(seed=st.integers(0, 2**32))
    def hold(seed):
        world.begin_anew()
        random, history = Random(seed), History(world, seen)
        for kind in random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
            history.step(kind, *(random.randrange(6) for _ in range(3)))

    hold()
    least = {"records": 300, "trimmed": 2, "deleted": 20, "told": 1, "refused": 20, "errors": 20}
    assert not {what: seen[what] for what, count in least.items() if seen[what] < count}


def start(world, *arguments: object) -> subprocess.Popen:
    folder = Path(__file__).parent
    source = folder.parents[1] / "src"
    line = [sys.executable, str(folder / "child.py"), arguments[0], world.kind, world.address, *map(str, arguments[1:])]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(line, stdout=subprocess.PIPE, env=environment, bufsize=0)


def test_processes_append_and_poll_at_the_same_time(world):
    log, per_process = world.open(), 150
    log.create("t", 2)
    pollers = [start(world, "poll", "t", 2, 4 * per_process) for _ in range(2)]
    appenders = [start(world, "append", "t", n % 2, f"a{n}", per_process) for n in range(4)]
    said = [p.communicate(timeout=60)[0][len(READY) :] for p in pollers]
    assert [p.wait(60) for p in (*appenders, *pollers)] == [0] * 6
    assert said[0] == said[1] != b""
    for number in range(2):
        names = [f"a{n}" for n in range(4) if n % 2 == number]
        check_whole(everything(log, At("t", number)), {name: per_process for name in names})


def everything(log, at: At) -> list[bytes]:
    values, end = [], log.end(at)
    while len(values) < end:
        values += [r.value for r in log.poll({at: len(values)}, 10.0)]
    return values


def check_whole(values: list[bytes], appended: dict[str, int]) -> None:
    """Every record whose append returned is there, once, in the order of its appender; records of one append stand together."""
    seen: Counter = Counter()
    place = 0
    while place < len(values):
        name, number, last = values[place].decode().split()[:3]
        assert int(number) == seen[name], f"record {number} of {name}, {seen[name]} were expected"
        count = int(last) - int(number) + 1
        assert values[place : place + count] == values_of(name, int(number), count)
        seen[name] += count
        place += count
    assert {name: seen[name] for name, count in appended.items() if seen[name] < count} == {}


def test_appenders_are_killed_at_any_moment(world):
    """In turns of four at once, at two partitions; one polls meanwhile, and whoever comes next goes on."""
    log, random, appended = world.open(), Random(), [Counter(), Counter()]
    log.create("t", 2)
    polled: dict[At, list[bytes]] = {At("t", 0): [], At("t", 1): []}
    over = threading.Event()

    def poll() -> None:
        mine = world.open()
        while True:
            last = over.is_set()
            records = mine.poll({at: len(values) for at, values in polled.items()}, 0.05)
            for record in records:
                polled[record.at].append(record.value)
            if last and not records:
                return

    reader = threading.Thread(target=poll)
    reader.start()
    kills = 0
    for turn in range(6):
        children = {f"k{turn}{n}": start(world, "append", "t", n % 2, f"k{turn}{n}", 1_000_000) for n in range(4)}
        for child in children.values():
            assert child.stdout.read(1) == READY
        for child in children.values():
            time.sleep(random.random() * world.moment)
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        for n, (name, child) in enumerate(children.items()):
            said = child.stdout.read()
            child.stdout.close()
            assert child.wait() == -signal.SIGKILL
            appended[n % 2][name] = int.from_bytes(said[len(said) // 8 * 8 - 8 :][:8], "little") if len(said) >= 8 else 0
    over.set()
    reader.join()
    assert kills >= 24
    assert sum(sum(some.values()) for some in appended) > 500
    for at, values in polled.items():
        assert values == everything(log, at)
        check_whole(values, appended[at.partition])
        assert log.append(at, [b"on"]) == len(values)


def test_who_waits_at_several_partitions_is_given_what_comes_at_any(world):
    log, other = world.open(), world.open()
    log.create("t", 3)
    offsets = {At("t", number): 0 for number in range(3)}
    for number in (2, 0, 1):
        later = threading.Timer(0.05, other.append, (At("t", number), [b"x"]))
        later.start()
        records = log.poll(offsets, 20.0)
        later.join()
        assert [(r.at, r.offset, r.value) for r in records] == [(At("t", number), 0, b"x")]
        offsets[At("t", number)] = 1
    begin = time.monotonic()
    assert log.poll(offsets, 0.1) == []
    assert time.monotonic() - begin >= 0.1


def test_who_waits_at_a_topic_that_is_deleted_is_told(world):
    log, other = world.open(), world.open()
    log.create("t", 1)
    later = threading.Timer(0.05, other.delete, ("t",))
    later.start()
    with pytest.raises(LogError, match=r"'t'.*deleted"):
        log.poll({At("t", 0): 0}, 20.0)
    later.join()
    with pytest.raises(LogError):
        log.append(At("t", 0), [b"x"])
    assert log.topics() == {}


def test_everybody_may_create_what_all_need(world):
    def work() -> None:
        log = world.open()
        for topic in ("a", "b", "c"):
            log.create(topic, 2)
            log.append(At(topic, 1), [b"x"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = world.open()
    assert log.topics() == {"a": 2, "b": 2, "c": 2}
    assert [everything(log, At(topic, 1)) for topic in ("a", "b", "c")] == [[b"x"] * 4] * 3


def test_one_partition_with_much_does_not_keep_the_others_waiting(world):
    log = world.open()
    log.create("t", 2)
    log.append(At("t", 0), [b"much"] * 50)
    log.append(At("t", 1), [b"little"])
    offsets = {At("t", 0): 0, At("t", 1): 0}
    seen = []
    for _ in range(4):
        for record in log.poll(offsets, 5.0, most=10):
            offsets[record.at] += 1
            seen.append(record.value)
        time.sleep(world.moment)  # what is read ahead comes by itself
    assert b"little" in seen


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 201])
def test_names_that_cannot_be_are_refused(world, name):
    log = world.open()
    with pytest.raises(LogError, match="no name of a topic"):
        log.create(name, 1)
    with pytest.raises(LogError, match="no name of a group"):
        log.commit(name, {})


def test_errors_say_what_is_there_and_what_to_do(world):
    log = world.open(small=True)
    log.create("card", 2)
    for _ in range(60):
        log.append(At("card", 1), [b"x" * 50])
    log.trim(At("card", 1), 50)
    begin = log.begin(At("card", 1))
    cases = [
        (lambda: log.create("card", 3), "2 partitions, not 3"),
        (lambda: log.create("none", 0), "0 partitions"),
        (lambda: log.append(At("cart", 0), [b"x"]), "Did you mean 'card'"),
        (lambda: log.append(At("card", 2), [b"x"]), "no partition 2"),
        (lambda: log.poll({At("card", 0): 1}, 0.0), "ends at 0"),
    ]
    if begin > 0:
        cases.append((lambda: log.poll({At("card", 1): 0}, 0.0), f"begins at {begin}"))
    for ask, words in cases:
        with pytest.raises(HeadraceError, match=words) as caught:
            ask()
        assert caught.value.hint
