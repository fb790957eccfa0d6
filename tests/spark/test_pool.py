"""The daemon that lends connections to processes: Spark's side is played here, and a task says which process ran it."""

import json
import os
import signal
import socket
import struct
import time
from itertools import pairwise

import pyarrow as pa
import pytest
from pyspark.serializers import read_int, write_int

from headrace.spark.workers import pool as workers

MAP_ARROW, STATE = 207, 214


def header(query, kind, partition, text="x"):
    """How Spark begins a task, with what the task is to do in the place of its function."""

    def string(value):
        return struct.pack("!i", len(value)) + value.encode()

    context = json.dumps({"localProperties": {"sql.streaming.queryId": query} if query else {}})
    body = struct.pack("!i", partition) + string("3.11") + string(context) + string("/files")
    body += struct.pack("!i", 1) + string("a.zip")
    body += struct.pack("!?i", False, 0) + struct.pack("!i", kind) + string(text)
    return struct.pack("!ii", -8, len(body)) + body


def toy_task(sock, authenticated):
    """Tell the number of the process, then do what the task says."""
    with sock.makefile("rb") as stream, sock.makefile("wb") as out:
        read_int(stream)
        text = stream.read(read_int(stream)).decode("latin1")
        write_int(os.getpid(), out)
        out.flush()
        if text.endswith("sent"):
            workers.broadcasts[1] = "what Spark sends once"
        if text.endswith("taken"):
            workers.broadcasts.clear()
        if text.endswith("start"):
            os.system("sleep 30 &")
            os._exit(9)
        if text.endswith("die"):
            os._exit(9)
        if text.endswith("hang"):
            stream.read(1)  # nothing comes until Spark closes the connection
        return int(text.endswith("fail"))


class Spark:
    """The other end: opens connections, sends tasks, asks for kills."""

    def __init__(self, path, commands):
        self.path, self.commands, self.sockets = path, os.fdopen(commands, "wb", 0), []

    def connect(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(20)
        sock.connect(self.path)
        with sock.makefile("rb") as stream:
            pid = read_int(stream)
        self.sockets.append(sock)
        return sock, pid

    def run(self, sock, *task):
        """Send a task; gives the number of the process that has it, None if there is none."""
        sock.sendall(header(*task))
        with sock.makefile("rb") as stream:
            try:
                ran = read_int(stream)
            except (EOFError, ConnectionResetError):
                return None
        if len(task) == 3:
            self.settle()
        return ran

    @staticmethod
    def settle():
        time.sleep(0.05)  # a batch later, a process has long said that it is done

    def kill(self, pid):
        write_int(pid, self.commands)
        self.settle()


def started(folder):
    """A daemon in a process of its own, and Spark's side of it."""
    path = str(folder / "d.sock")
    with socket.socket(socket.AF_UNIX) as listen:
        listen.bind(path)
        listen.listen()
        read, write = os.pipe()
        daemon = os.fork()
        if daemon == 0:
            os.close(write)
            workers.Pool(listen, authenticated=True, reuse=True).serve(os.fdopen(read, "rb", 0))
            os._exit(7)
    os.close(read)
    return daemon, Spark(path, write)


@pytest.fixture
def spark_side(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "run_task", toy_task)
    daemon, side = started(tmp_path)
    yield side
    side.commands.close()
    assert os.waitstatus_to_exitcode(os.waitpid(daemon, 0)[1]) == 7, "Spark closing standard input ends the daemon"
    for sock in side.sockets:
        sock.close()


def alive(pid):
    """Whether a process is there and no zombie; the daemon of this test does not wait for its children."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_partition_stays_with_its_process_whatever_connection_its_tasks_come_on(spark_side):
    connections = [spark_side.connect()[0] for _ in range(3)]
    owners = {}
    for batch in range(6):
        for partition in range(3):
            ran = spark_side.run(connections[(partition * (batch + 1) + batch) % 3], "q", STATE, partition)
            assert owners.setdefault(partition, ran) == ran
    assert len(set(owners.values())) == 3


def test_kinds_of_tasks_and_queries_are_told_apart_and_spread(spark_side):
    connections = [spark_side.connect()[0] for _ in range(2)]
    ran = {}
    for turn in range(3):
        for at, task in enumerate([("q", STATE, 0), ("q", MAP_ARROW, 0), ("r", STATE, 0), ("r", STATE, 1)]):
            assert ran.setdefault(task, pid := spark_side.run(connections[(at + turn) % 2], *task)) == pid
    assert sorted(list(ran.values()).count(pid) for pid in set(ran.values())) == [2, 2]


def test_a_busy_owner_is_not_waited_for(spark_side):
    (first, _), (second, _) = spark_side.connect(), spark_side.connect()
    owner = spark_side.run(first, "q", STATE, 0)
    assert spark_side.run(first, "q", STATE, 0, "hang") == owner
    other = spark_side.run(second, "q", STATE, 0)
    assert other not in (None, owner)


def test_killing_a_connection_kills_who_works_on_it_and_nobody_else(spark_side):
    (first, told_first), (second, told_second) = spark_side.connect(), spark_side.connect()
    assert spark_side.run(first, "q", STATE, 0) == told_first
    assert spark_side.run(first, "q", STATE, 1) == told_second
    assert spark_side.run(second, "q", STATE, 0, "hang") == told_first  # the connections are crossed now
    spark_side.kill(told_second)
    assert second.recv(1) == b""
    assert eventually(lambda: not alive(told_first))
    assert alive(told_second)
    assert spark_side.run(first, "q", STATE, 1) == told_second
    first.close()  # its number is dead, so Spark gives it up when it looks next
    assert eventually(lambda: not alive(told_second)), "a process that no connection needs is gone"


def test_a_process_that_dies_closes_the_connection_it_works_on(spark_side):
    (first, told), (second, _) = spark_side.connect(), spark_side.connect()
    assert spark_side.run(second, "q", STATE, 0, "die") == told
    assert second.recv(1) == b""
    ran = spark_side.run(first, "q", STATE, 0)
    assert ran is not None
    assert ran != told


def test_more_connections_than_processes_are_no_trouble(spark_side):
    (first, _), (second, _) = spark_side.connect(), spark_side.connect()
    spark_side.run(second, "q", STATE, 0, "die")
    assert spark_side.run(first, "q", STATE, 0, "hang") is not None
    third, _ = spark_side.connect()
    assert spark_side.run(third, "q", STATE, 1) is not None


def test_a_task_that_fails_ends_its_process_once_spark_has_read_why(spark_side):
    sock, told = spark_side.connect()
    assert spark_side.run(sock, "q", STATE, 0, "fail") == told
    assert alive(told)
    sock.close()
    assert eventually(lambda: not alive(told))


def test_an_idle_connection_that_spark_closes_ends_its_process(spark_side):
    (sock, told), (_, other) = spark_side.connect(), spark_side.connect()
    sock.close()
    assert eventually(lambda: not alive(told))
    assert alive(other)


def test_killing_an_idle_connection_ends_its_process(spark_side):
    _, told = spark_side.connect()
    spark_side.kill(told)
    assert eventually(lambda: not alive(told))


def test_processes_end_with_a_daemon_that_is_killed(tmp_path):
    daemon, side = started(tmp_path)
    _, told = side.connect()
    os.kill(daemon, signal.SIGKILL)
    os.waitpid(daemon, 0)
    assert eventually(lambda: not alive(told))
    side.commands.close()


def test_a_process_that_has_broadcasts_and_the_connection_they_came_on_stay_together(spark_side):
    (first, _), (second, _) = spark_side.connect(), spark_side.connect()
    owner = spark_side.run(first, "q", STATE, 0)
    assert spark_side.run(second, "q", STATE, 0, "sent") == owner
    spark_side.settle()
    assert spark_side.run(first, "q", STATE, 0) != owner
    assert spark_side.run(second, "q", STATE, 7, "taken") == owner
    spark_side.settle()
    assert {spark_side.run(first, "r", STATE, n) for n in range(4)} > {owner}


def test_what_has_broadcasts_ends_with_its_connection(spark_side):
    sock, _ = spark_side.connect()
    ran = spark_side.run(sock, "q", STATE, 0, "sent")
    spark_side.settle()
    sock.close()
    assert eventually(lambda: not alive(ran))


def test_a_connection_ends_with_the_process_that_has_its_broadcasts(spark_side):
    sock, _ = spark_side.connect()
    os.kill(spark_side.run(sock, "q", STATE, 0, "sent"), signal.SIGKILL)
    assert sock.recv(1) == b""


def test_a_program_that_a_task_has_started_does_not_keep_the_connection_of_a_dead_one(spark_side):
    sock, _ = spark_side.connect()
    spark_side.run(sock, "q", STATE, 0, "start")
    began = time.monotonic()
    assert sock.recv(1) == b""
    assert time.monotonic() - began < 15


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A daemon of which every step is taken by hand."""
    monkeypatch.setattr(workers, "run_task", toy_task)
    monkeypatch.setattr(signal, "SIGKILL", 0)  # whom it would kill is asked, and lives: nothing here may depend on it
    with socket.socket(socket.AF_UNIX) as listen:
        listen.bind(str(tmp_path / "d.sock"))
        listen.listen()
        made = workers.Pool(listen, authenticated=True, reuse=True)
        yield made
        for process in list(made.processes.values()):
            made._dismiss(process)
            os.waitpid(process.pid, 0)


def accepted(pool):
    """Both ends of a new connection."""
    theirs = socket.socket(socket.AF_UNIX)
    theirs.settimeout(20)
    theirs.connect(pool.listen.getsockname())
    pool.accept()
    theirs.recv(4)
    return theirs, next(reversed(pool.connections.values()))


def test_what_has_been_killed_gets_no_task_though_it_was_done(pool):
    (first, ours), (second, other) = accepted(pool), accepted(pool)
    with first, second:
        first.sendall(header("q", STATE, 0))
        pool.begin(ours)
        killed = next(p for p in pool.processes.values() if p.serves is ours)
        assert struct.unpack("!i", first.recv(4))[0] == killed.pid
        Spark.settle()  # that it is done can be read, but has not been
        pool.kill(ours.pid)
        pool.end(killed)
        second.sendall(header("q", STATE, 0))
        pool.begin(other)
        assert killed.serves is None
        assert struct.unpack("!i", second.recv(4))[0] != killed.pid


def test_with_traces_of_crashes_every_process_stays_with_its_connection(pool):
    pool.fixed = True
    (first, ours), (second, other) = accepted(pool), accepted(pool)
    with first, second:
        for sock, connection in ((first, ours), (second, other), (second, other), (first, ours)):
            sock.sendall(header("q", STATE, 0))
            pool.begin(connection)
            assert struct.unpack("!i", sock.recv(4))[0] == connection.pid
            Spark.settle()
            pool.end(connection.bound)


@pytest.mark.parametrize("cut", [0, 3, 8, 11, 30, 60])
def test_a_beginning_that_says_too_little_names_no_task(cut):
    whole = header("q", STATE, 5)
    assert workers.task_of(whole) == ("q", STATE, 5)
    assert workers.task_of(whole[:cut]) is None


@pytest.mark.spark
def test_on_spark_a_partition_stays_with_its_process(spark, tmp_path):
    """Where one process took both partitions, one of them moves when they first meet, whenever that is; none moves otherwise."""
    for number in range(6):
        spark.range(200).write.parquet(str(tmp_path / "in" / f"f={number}"))
    seen = set()

    def who(batches):
        from pyspark import TaskContext

        rows = sum(batch.num_rows for batch in batches)
        context = TaskContext.get()
        place = [[context.partitionId()], [os.getpid()], [int(context.getLocalProperty("streaming.sql.batchId"))], [rows]]
        yield pa.RecordBatch.from_arrays([pa.array(v, pa.int64()) for v in place], ["partition", "pid", "batch", "rows"])

    stream = spark.readStream.schema("id BIGINT, f INT").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    told = stream.repartition(2).mapInArrow(who, "partition BIGINT, pid BIGINT, batch BIGINT, rows BIGINT")
    writer = told.writeStream.foreachBatch(lambda frame, _: seen.update(frame.collect())).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert len({row.batch for row in seen}) == 12  # two files of each
    in_turn = sorted(seen, key=lambda row: row.batch)
    homes = [[row.pid for row in in_turn if row.partition == partition] for partition in (0, 1)]
    assert sum(one != other for pids in homes for one, other in pairwise(pids)) <= 1


@pytest.mark.spark
def test_on_spark_broadcasts_are_there_whoever_runs_a_task(spark):
    sent = spark.sparkContext.broadcast({"x": 41})

    def with_it(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([sent.value["x"] + batch.num_rows])], ["n"])

    def without(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], ["n"])

    for turn in range(8):
        frame = spark.range(0, 12, 1, 1 + turn % 4)
        parts = 1 + turn % 4
        assert sum(row.n for row in frame.mapInArrow(with_it, "n BIGINT").collect()) == 41 * parts + 12
        assert sum(row.n for row in frame.mapInArrow(without, "n BIGINT").collect()) == 12


@pytest.mark.spark
def test_on_spark_workers_draw_numbers_of_their_own(spark):
    def draw(batches):
        import numpy as np

        time.sleep(0.3)  # both at once, so that there are two
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([np.random.random()]), pa.array([os.getpid()])], ["x", "pid"])

    rows = spark.range(0, 2, 1, 2).mapInArrow(draw, "x DOUBLE, pid BIGINT").collect()
    assert len({row.pid for row in rows}) == 2
    assert len({row.x for row in rows}) == 2


def test_a_task_of_no_stream_has_a_name_too():
    assert workers.task_of(header("", MAP_ARROW, 1)) == ("", MAP_ARROW, 1)
