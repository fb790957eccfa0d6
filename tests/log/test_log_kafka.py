"""What only Kafka can suffer: brokers that are gone or killed, topics that others make and delete, batches that are cut."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from test_log import check_whole, everything, start

from headrace.errors import LogError, SystemFailure
from headrace.log.broker import Broker, free_port
from headrace.log.kafka import KafkaLog
from headrace.log.kafka_cluster import MOST_BYTES
from headrace.log.log import At

pytestmark = pytest.mark.kafka
AT = At("t", 0)


@pytest.fixture
def log(kafka):
    log = kafka.open()
    log.create("t", 1)
    return log


def test_records_of_an_append_stand_together_whatever_others_append(kafka, log):
    """Six threads, through two logs, single records and many: a batch is put into the partition as a whole."""
    logs, per_thread = [log, kafka.open()], 60

    def work(name: int) -> None:
        for number in range(per_thread):
            count = (1, 40, 7)[number % 3]
            first = logs[name % 2].append(AT, [b"%d %d %d" % (name, number, n) for n in range(count)])
            firsts.append((first, name, number, count))

    firsts: list = []
    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = everything(log, AT)
    assert len(firsts) == 6 * per_thread
    for first, name, number, count in firsts:
        assert values[first : first + count] == [b"%d %d %d" % (name, number, n) for n in range(count)]
    assert len(values) == sum(count for *_, count in firsts)


def test_a_large_append_is_one_and_a_larger_one_is_refused(log):
    values = [os.urandom(100_000) for _ in range(MOST_BYTES // 100_100)]
    assert log.append(AT, [b"before"]) == 0
    assert log.append(AT, values) == 1
    assert everything(log, AT) == [b"before", *values]
    with pytest.raises(LogError, match="too many for one append") as caught:
        log.append(AT, [bytes(MOST_BYTES)])
    assert "several calls" in caught.value.hint
    assert log.end(AT) == len(values) + 1


def test_many_small_records_are_one_append(log):
    values = [b"%d" % number for number in range(50_000)]
    assert log.append(AT, values) == 0
    assert everything(log, AT) == values


def test_a_prefix_is_a_log_of_its_own(broker, kafka, log):
    other = KafkaLog(broker.address, kafka.address.split("/")[1] + "deeper.")
    assert other.topics() == {}
    other.create("t", 2)
    other.append(At("t", 1), [b"theirs"])
    other.commit("units", {At("t", 1): 1})
    assert (log.end(AT), log.committed("units")) == (0, {})
    assert other.committed("units") == {At("t", 1): 1}
    other.delete("t")
    assert log.topics() == {"t": 1}
    other.close()
    with pytest.raises(LogError, match="too long"):
        KafkaLog(broker.address, "x" * 41)


def test_records_are_kept_until_they_are_trimmed(broker, kafka, log):
    """Kafka's own default is to forget them after a week."""
    from confluent_kafka.admin import ConfigResource

    asked = ConfigResource("topic", log.place.theirs("t"))
    admin = AdminClient({"bootstrap.servers": broker.address})
    (answer,) = admin.describe_configs([asked]).values()
    config = {name: entry.value for name, entry in answer.result().items()}
    assert (config["retention.ms"], config["retention.bytes"], config["cleanup.policy"]) == ("-1", "-1", "delete")
    assert config["min.insync.replicas"] == "1"  # there is one broker


def test_who_polls_without_asking_each_time_is_told_soon_that_his_topic_is_another(kafka, log):
    """With what is read ahead, and while records flow; and `sync` tells it at once."""
    log.append(AT, [b"old"] * 10)
    assert len(log.poll({AT: 0}, 5.0, most=1)) == 1
    other = kafka.open()
    other.delete("t")
    other.create("t", 1)
    other.append(AT, [b"new"] * 100)
    with pytest.raises(LogError, match="deleted"):
        log.sync([AT])
    begin = time.monotonic()
    with pytest.raises(LogError, match=r"'t'.*deleted"):
        poll_until(log, begin + 20)
    assert time.monotonic() - begin < 10
    log.sync([AT])
    assert [r.value for r in log.poll({AT: 99}, 5.0)] == [b"new"]


def poll_until(log: KafkaLog, end: float) -> None:
    offset = 1
    while time.monotonic() < end:
        offset += len(log.poll({AT: offset}, 0.05, most=1))


def test_an_append_to_a_topic_that_was_made_anew_goes_there(kafka, log):
    other = kafka.open()
    for partitions in (1, 3, 2):
        other.delete("t")
        with pytest.raises(LogError, match="does not exist"):
            log.append(AT, [b"nowhere"])
        other.create("t", partitions)
        last = At("t", partitions - 1)
        assert log.append(last, [b"a", b"b"]) == 0
        assert everything(kafka.open(), last) == [b"a", b"b"]
        with pytest.raises(LogError, match=f"no partition {partitions}"):
            log.append(At("t", partitions), [b"nowhere"])


def test_offsets_that_are_missing_are_said(broker, kafka, log):
    """Somebody writes to the topic in transactions: their marks have offsets, and are no records."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": kafka.address})
    producer.init_transactions()
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(log.place.theirs("t"), b"x", partition=0)
        producer.commit_transaction()
    with pytest.raises(LogError, match="behind offset 0 comes 2"):
        everything(log, AT)


def test_what_other_tools_see_is_what_is_meant(broker, kafka, log):
    """Topics, records and how far groups are, for those who look with Kafka's own tools."""
    log.append(AT, [b"one", b"two"])
    log.commit("units", {AT: 1})
    tool = Consumer({"bootstrap.servers": broker.address, "group.id": log.place.theirs("units"), "auto.offset.reset": "error"})
    (noted,) = tool.committed([TopicPartition(log.place.theirs("t"), 0)], timeout=10)
    assert noted.offset == 1
    tool.assign([TopicPartition(log.place.theirs("t"), 0, noted.offset)])
    assert tool.poll(10.0).value() == b"two"
    tool.close()


def test_a_topic_of_somebody_else_is_read_and_appended_to(broker, kafka, log):
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([NewTopic(log.place.theirs("theirs"), 2, 1)]).values():
        future.result(20)
    at = At("theirs", 1)
    assert log.append(at, [b"x"]) == 0
    assert [r.value for r in log.poll({at: 0}, 5.0)] == [b"x"]
    with pytest.raises(LogError, match="too large") as caught:
        log.append(at, [bytes(2_000_000)])
    assert "max.message.bytes" in caught.value.hint
    assert log.append(at, [b"y"]) == 1


def test_a_broker_that_is_not_there_is_said():
    log = KafkaLog(f"127.0.0.1:{free_port()}", patience_s=0.5)
    for ask in (
        lambda: log.create("t", 1), log.topics, lambda: log.append(AT, [b"x"]), lambda: log.end(AT), lambda: log.sync([AT]),
        lambda: log.poll({AT: 0}, 0.0), lambda: log.committed("units"),
    ):  # fmt: skip
        begin = time.monotonic()
        with pytest.raises(SystemFailure, match="does not answer") as caught:
            ask()
        assert time.monotonic() - begin < 10
        assert "make kafka" in caught.value.hint
    log.close()


def test_settings_that_are_none_are_refused(broker):
    with pytest.raises(SystemFailure, match=r"no\.such"):
        KafkaLog(broker.address, settings={"no.such": "thing"})


def test_nothing_that_was_acknowledged_is_lost_when_the_broker_is_killed(broker, kafka, log):
    """Processes append, one polls; the broker is killed and started again. They wait for it, and go on."""
    log.create("u", 2)
    children = {f"a{n}": start(kafka, "append", "u", n % 2, f"a{n}", 1_000_000) for n in range(3)}
    polled: dict[At, list[bytes]] = {At("u", 0): [], At("u", 1): []}
    over = threading.Event()

    def poll() -> None:
        mine = kafka.open()
        while True:
            last = over.is_set()
            records = mine.poll({at: len(values) for at, values in polled.items()}, 0.1)
            for record in records:
                polled[record.at].append(record.value)
            if last and not records:
                return

    reader = threading.Thread(target=poll)
    reader.start()
    for child in children.values():
        assert child.stdout.read(1 + 8) != b""
    before = [log.end(at) for at in polled]
    broker.kill()
    time.sleep(0.2)
    broker.start()
    until = time.monotonic() + 60
    while min(log.end(at) - end for at, end in zip(polled, before, strict=True)) < 50:
        assert time.monotonic() < until
        time.sleep(0.05)
    appended = [Counter(), Counter()]
    for n, (name, child) in enumerate(children.items()):
        os.kill(child.pid, signal.SIGKILL)
        said = child.stdout.read()
        child.stdout.close()
        child.wait()
        appended[n % 2][name] = int.from_bytes(said[len(said) // 8 * 8 - 8 :][:8], "little")
    over.set()
    reader.join()
    for at, values in polled.items():
        assert values == everything(log, at)
        check_whole(values, appended[at.partition])


def test_a_port_that_is_taken_is_said(broker, tmp_path):
    with pytest.raises(SystemFailure, match="taken") as caught:
        Broker(tmp_path, broker.port).start()
    assert "another port" in caught.value.hint


def test_a_broker_that_does_not_start_says_where_it_says_why(broker, tmp_path):
    other = Broker(tmp_path, heap="1k")
    with pytest.raises(SystemFailure, match="did not start") as caught:
        other.start()
    assert "broker.log" in caught.value.hint
    assert "heap" in (tmp_path / "broker.log").read_text()
