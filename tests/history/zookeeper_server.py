"""Real ZooKeeper servers from PySpark's jars, for tests that read what they really write, or how they really behave."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from nemesis.history.java_locale import JAVA_LOCALE
from nemesis.support.java import find_java, properties_text

MEMBERS = 3
PORTS_OF_A_MEMBER = 3
START_TIMEOUT_S = 30
JVM_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Less to do at the start, and beside the tests: three of them share a core."""
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@contextmanager
def zookeeper_server(directory: Path) -> Iterator[str]:
    """Yield ``host:port`` of a running standalone server that keeps its log in ``directory/version-2``."""
    port = free_port()
    with _process(directory, port, {}) as server:
        _wait_until_serving(server, port, directory)
        yield f"127.0.0.1:{port}"


@contextmanager
def zookeeper_ensemble(directory: Path) -> Iterator[list[str]]:
    """Yield ``host:port`` of each member of a running ensemble of three; they keep their logs in ``directory/N``."""
    ports = _free_ports(MEMBERS * PORTS_OF_A_MEMBER)
    clients, quorum, election = (ports[n::PORTS_OF_A_MEMBER] for n in range(PORTS_OF_A_MEMBER))
    settings = {"initLimit": "10", "syncLimit": "4"}
    for n in range(MEMBERS):
        settings[f"server.{n + 1}"] = f"127.0.0.1:{quorum[n]}:{election[n]}"
    with ExitStack() as stack:
        members = []
        for number, port in enumerate(clients, start=1):
            member_directory = directory / str(number)
            member_directory.mkdir(parents=True)
            (member_directory / "myid").write_text(str(number))
            members.append(
                (
                    stack.enter_context(_process(member_directory, port, settings)),
                    port,
                    member_directory,
                )
            )
        for member in members:
            _wait_until_serving(*member)
        yield [f"127.0.0.1:{port}" for port in clients]


def four_letter_word(address: str, word: str) -> str:
    """Return a server's whole answer; raises ``OSError``."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=1) as connection:
        connection.sendall(word.encode())
        with connection.makefile() as answer:
            return answer.read()


@contextmanager
def _process(
    directory: Path, port: int, settings: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "zoo.cfg"
    whole = {
        "dataDir": directory,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "tickTime": 500,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        **settings,
    }
    config.write_text(properties_text(whole), encoding="ascii")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [str(find_java()), *JVM_OPTIONS, "-cp", str(jars), MAIN_CLASS, str(config)]
    with (directory / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **JAVA_LOCALE}
        )
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens at."""
    [port] = _free_ports(1)
    return port


def _free_ports(count: int) -> list[int]:
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


def _wait_until_serving(server: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _is_serving(port):
        assert server.poll() is None, (directory / "server.log").read_text()
        assert time.monotonic() < deadline, f"ZooKeeper did not start in {START_TIMEOUT_S} s"
        time.sleep(0.05)


def _is_serving(port: int) -> bool:
    try:
        return "Mode" in four_letter_word(f"127.0.0.1:{port}", "srvr")
    except OSError:
        return False
