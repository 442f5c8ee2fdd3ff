"""A real ZooKeeper for tests of the reference: one server for the session, an empty tree for each test."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from kazoo.client import KazooClient

from nemesis.support.java import find_java
from tests.history.zookeeper_server import JVM_OPTIONS
from tests.reference.free_port import free_port

START_TIMEOUT_S = 30


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A standalone ZooKeeper from PySpark's jars; yields ``host:port``."""
    java = str(find_java())
    directory = tmp_path_factory.mktemp("zookeeper")
    port = free_port()
    config = directory / "zoo.cfg"
    config.write_text(
        f"tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout=60000\ndataDir={directory}\n"
        f"clientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        "maxClientCnxns=0\n4lw.commands.whitelist=*\n"
    )
    jars = Path(pyspark.__file__).parent / "jars"
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                java,
                *JVM_OPTIONS,
                "-cp",
                f"{jars}/*",
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(config),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, (directory / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, "ZooKeeper does not listen"
                time.sleep(0.02)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def zookeeper_address(zookeeper_server: str) -> str:
    """The server with nothing but ``/zookeeper`` in it."""
    client = KazooClient(zookeeper_server)
    client.start()
    try:
        for name in client.get_children("/"):
            if name != "zookeeper":
                client.delete(f"/{name}", recursive=True)
    finally:
        client.stop()
        client.close()
    return zookeeper_server
