"""`python -m headrace.log.broker`: a Kafka broker on this machine, for trials, tests and benchmarks.

Maven fetches it once, into the user's cache. It is one process that is its own controller, and listens on loopback alone. It ends
with the process that started it.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.errors import HeadraceError, SetupError, SystemFailure

VERSION = "4.3.1"
SLF4J = "1.7.36"  # which that Kafka logs by: without one that writes it says nothing
PORT = 9092
FETCH_S = 600.0
START_S = 120.0
END_S = 20.0
LOOK_S = 0.05
POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>headrace</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>{SLF4J}</version></dependency>
  </dependencies>
</project>
"""
# One broker has one copy of everything, and nobody waits for members of groups, or for a session to end that a kill has left.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=4
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=8388608
log.segment.delete.delay.ms=1000
"""
# A trial is short: what takes long to compile is not worth it, and one thread is enough to collect garbage.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class NotFetchedError(SystemFailure):
    """There is no Kafka on this machine, and none could be fetched."""


class Broker:
    """A broker that is started, killed and started again, in one folder and on one port."""

    def __init__(self, folder: Path, port: int = 0, heap: str = "512m", options: tuple[str, ...] = ()) -> None:
        """`port` 0 is any that is free."""
        self.folder, self._heap, self._options = folder, heap, options
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Returns when it can be worked with."""
        if listens(self.address):
            hint = f"name another port than {self.port}, or end what listens there"
            raise SystemFailure("the port is taken", where=self.address, hint=hint)
        jars = fetched()
        self._prepare()
        said = self.folder / "broker.log"
        with said.open("ab") as out:
            line = [*java(jars, self._heap, self._options), "kafka.Kafka", str(self._properties)]
            self._process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=_bound)
        until = time.monotonic() + START_S
        while not answers(self.address):
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise SystemFailure("the broker did not start", where=self.address, hint=f"{said} says why")
            time.sleep(LOOK_S)

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """By its own shutdown."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _prepare(self) -> None:
        data = self.folder / "data"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(properties(self.port, data))
        if not data.exists():
            shutil.copytree(formatted(), data)


def properties(port: int, data: Path) -> str:
    return PROPERTIES.format(port=port, controller=free_port(), data=data)


def fetched() -> Path:
    """The folder with the broker's jars."""
    kept = cache_folder()
    with _alone(kept):
        if not (kept / "jars").exists():
            _fetch(kept / "jars")
    return kept / "jars"


def formatted() -> Path:
    """Storage as it is when a broker begins: made once, copied for each."""
    kept = cache_folder()
    jars = fetched()
    with _alone(kept):
        if not (kept / "formatted").exists():
            _format(jars, kept / "formatted")
    return kept / "formatted"


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace" / f"kafka-{VERSION}"


def java(jars: Path, heap: str, options: tuple[str, ...]) -> list[str]:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None:
        raise SetupError("there is no Java, which a broker runs on", hint="`make setup` finds or installs one")
    return [program, f"-Xmx{heap}", *options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*"]


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as some:
        return some.connect_ex((host, int(port))) == 0


def answers(address: str) -> bool:
    """Whether a broker is there that takes part in its cluster."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    if not listens(address):
        return False
    try:
        client = AdminClient({"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 100})
        return bool(client.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


def _fetch(jars: Path) -> None:
    if shutil.which("mvn") is None:
        hint = "install it (Debian, Ubuntu: apt install maven), or name brokers that run already"
        raise NotFetchedError("Maven is needed to fetch Kafka, and there is no `mvn`", hint=hint)
    with tempfile.TemporaryDirectory(dir=jars.parent) as aside:
        (Path(aside) / "pom.xml").write_text(POM)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={aside}/jars"]
        _run(["mvn", "-q", "-B", "-f", f"{aside}/pom.xml", *goal], f"Maven could not fetch Kafka {VERSION}")
        os.replace(f"{aside}/jars", jars)


def _format(jars: Path, data: Path) -> None:
    with tempfile.TemporaryDirectory(dir=data.parent) as aside:
        (Path(aside) / "server.properties").write_text(properties(PORT, Path(aside) / "data"))
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")  # as Kafka writes them
        tool = ["kafka.tools.StorageTool", "format", "-t", name, "-c", f"{aside}/server.properties"]
        _run([*java(jars, "256m", QUICK), *tool], "Kafka could not format its storage")
        os.replace(f"{aside}/data", data)


def _run(line: list[str], failed: str) -> None:
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=FETCH_S, check=False)
        said, wrong = (done.stdout + done.stderr).strip(), done.returncode != 0
    except subprocess.TimeoutExpired:
        said, wrong = f"not within {FETCH_S:.0f} s", True
    if wrong:
        last = "\n".join(said.splitlines()[-5:])
        raise NotFetchedError(f"{failed}:\n{last}", hint="is there a network? Brokers that run already need none of this")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time fills the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _bound() -> None:
    """Ctrl-C is for who started it, who ends it; and it ends with him, where the system can do that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main(options: argparse.Namespace) -> int:
    broker = Broker(Path(options.folder).absolute(), options.port, options.heap)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"kafka: starting Kafka {VERSION} in {broker.folder}", flush=True)
    try:
        broker.start()
        print(f"kafka: ready at {broker.address} (Ctrl-C ends it)", flush=True)
        broker.wait()
        print(f"kafka: the broker ended by itself; {broker.folder}/broker.log says why", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nkafka: ending", flush=True)
        broker.stop()
        return 0
    except HeadraceError as error:
        print(f"kafka: {error}", file=sys.stderr)
    return 1


def arguments() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="make kafka", description="A Kafka broker on this machine, until Ctrl-C.")
    options.add_argument("--port", type=int, default=PORT, help="where it listens, on loopback (default: %(default)s)")
    options.add_argument("--folder", default="out/kafka", help="where its topics lie (default: %(default)s)")
    options.add_argument("--heap", default="512m", help="memory of its JVM (default: %(default)s)")
    return options


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args()))
