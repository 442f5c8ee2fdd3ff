"""Store the classes of a Kafka broker: ``python -m nemesis.runtimes.kafka_class_archiver --jars DIR --drafts DIR``.

The classes are stored once for these jars and this Java; those of before either changed are removed.

To load and verify its classes is more than half of a broker's start. Dynamic class-data sharing (JEP 350) stores them
as the JVM has them in memory. For that a broker is started with a ZooKeeper server of its own, or as a KRaft quorum of
one node, on free ports of the loopback interface, and ended again. The JVM does without an archive that does not fit
its jars or its Java.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nemesis.history.java_locale import JAVA_LOCALE
from nemesis.runtimes.kafka_launcher import ROLES, format_log_dirs, java_command
from nemesis.support.java import find_java, properties_text, zookeeper_classpath
from nemesis.targets.kafka.stored_classes import class_archive, outdated_class_archives

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 120.0
END_TIMEOUT_S: Final = 120.0
POLL_INTERVAL_S: Final = 0.1
STARTED: Final = b"started (kafka.server.KafkaServer)"
QUORUM_STARTED: Final = b"Kafka Server started (kafka.server.KafkaRaftServer)"
ZOOKEEPER: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def main(arguments: list[str]) -> None:
    """Make the archive if it is not there; raises RuntimeError when the broker does not start or stores nothing."""
    parser = argparse.ArgumentParser(prog="nemesis.runtimes.kafka_class_archiver")
    parser.add_argument("--jars", type=Path, required=True, help="the directory of Kafka's jars")
    parser.add_argument(
        "--quorum", action="store_true", help="start a KRaft quorum of one node, without ZooKeeper"
    )
    parser.add_argument(
        "--drafts",
        type=Path,
        required=True,
        help="a directory in the cache that the caller removes",
    )
    options = parser.parse_args(arguments)
    archive = class_archive(options.jars)
    if not archive.exists():
        _store(options.jars, archive, options.drafts, with_quorum=options.quorum)


def _store(jars: Path, archive: Path, folder: Path, *, with_quorum: bool) -> None:
    draft = folder / archive.name
    other, broker = _free_ports(2)
    if with_quorum:
        properties = _quorum_properties(folder, broker=broker, controller=other)
        _run_broker(folder, jars, draft, properties, QUORUM_STARTED)
    else:
        with _running(_zookeeper_command(folder, other), folder / "zookeeper.log"):
            _until(lambda: _answers(other), "ZooKeeper")
            properties = _properties(folder, broker) | {
                "broker.id": "1",
                "zookeeper.connect": f"{HOST}:{other}",
            }
            _run_broker(folder, jars, draft, properties, STARTED)
    draft.replace(archive)
    for outdated in outdated_class_archives(archive):
        outdated.unlink(missing_ok=True)


def _properties(folder: Path, broker: int) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://{HOST}:{broker}",
        "log.dirs": str(folder / "logs"),
        "log.cleaner.dedupe.buffer.size": str(4 * 2**20),
        "controlled.shutdown.enable": "false",
    }


def _quorum_properties(folder: Path, *, broker: int, controller: int) -> dict[str, str]:
    own = _properties(folder, broker)
    return {
        **own,
        "listeners": f"{own['listeners']},CONTROLLER://{HOST}:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
    }


def _run_broker(
    folder: Path, jars: Path, draft: Path, properties: dict[str, str], started: bytes
) -> None:
    """Start a broker, end it, and wait until its JVM has stored its classes in ``draft``."""
    options = [f"-XX:ArchiveClassesAtExit={draft}"]
    config = folder / "broker.json"
    command = java_command(config, jars, properties, options)
    if ROLES in properties:
        format_log_dirs(config, jars, properties)
    log = folder / "broker.log"
    with _running(command, log) as process:
        _until(lambda: started in log.read_bytes(), "the broker", process)
        process.send_signal(signal.SIGTERM)
        process.wait(END_TIMEOUT_S)
    if not draft.exists():
        raise RuntimeError("the JVM ended without storing its classes")


def _zookeeper_command(folder: Path, port: int) -> list[str]:
    config = folder / "zookeeper.cfg"
    settings = {
        "dataDir": folder / "zookeeper",
        "clientPort": port,
        "clientPortAddress": HOST,
        "admin.enableServer": "false",
    }
    config.write_text(properties_text(settings), encoding="ascii")
    class_path = ":".join(map(str, zookeeper_classpath()))
    return [str(find_java()), "-Xmx128m", "-cp", class_path, ZOOKEEPER, str(config)]


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that does not outlive the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **JAVA_LOCALE}
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _until(
    condition: Callable[[], bool], name: str, process: subprocess.Popen[bytes] | None = None
) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise RuntimeError(f"{name} did not start")
        time.sleep(POLL_INTERVAL_S)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    servers = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


if __name__ == "__main__":
    main(sys.argv[1:])
