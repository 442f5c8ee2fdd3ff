"""A real standalone ZooKeeper from PySpark's jars, for tests that read what it really writes."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from nemesis.runtimes.local.java import find_java


@contextmanager
def zookeeper_server(directory: Path) -> Iterator[str]:
    """Yield ``host:port`` of a running server that keeps its log in ``directory/version-2``."""
    java = str(find_java())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "zoo.cfg"
    config.write_text(
        f"dataDir={directory}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "tickTime=500\nadmin.enableServer=false\n"
    )
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    with (directory / "server.log").open("wb") as log:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        server = subprocess.Popen(
            [java, "-Xmx256m", "-cp", str(jars), main, str(config)], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 30
        while not _answers(port):
            assert server.poll() is None, (directory / "server.log").read_text()
            assert time.monotonic() < deadline, "ZooKeeper did not start in 30 s"
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"srvr")
            return b"Mode" in connection.recv(4096)
    except OSError:
        return False
