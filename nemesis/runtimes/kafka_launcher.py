"""Start a Kafka broker under the harness's hand: ``python -m nemesis.runtimes.kafka_launcher CONFIG --jars DIR``.

The launcher writes the broker's ``.properties`` beside its JSON configuration and executes java in its own place, so
that the process id is the broker's. What is preloaded already stays, such as the harness's wall clock. On the loopback
network, where all brokers of this machine are, the library that binds the broker's source address comes behind it.

A broker that starts while the session of its predecessor still lives exits, because its registration in ZooKeeper
exists. So the launcher waits until that is gone, as a supervisor would by starting it again. A node of a KRaft quorum
waits by itself; before its first start the launcher formats its log directories.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from nemesis.history.java_locale import JAVA_LOCALE
from nemesis.support.java import find_java, jars_in, properties_text
from nemesis.support.kafka_logging import REPLICA_FILE, begin_incarnation, log_option
from nemesis.support.source_address import environment, source_address_library

MAIN_CLASS: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"
CLUSTER_ID: Final = "bmVtZXNpcy1rcmFmdC0wMQ"
"""Of every KRaft cluster: sixteen bytes in base64, as the storage tool wants them."""
ROLES: Final = "process.roles"
"""The property that a node of a KRaft quorum has, and a broker with ZooKeeper has not."""
FORMATTED: Final = "meta.properties"
FORMAT_TIMEOUT_S: Final = 60.0
POLL_INTERVAL_S: Final = 0.05
SESSION_TIMEOUT_S: Final = 2.0
JVM_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
)


class _BoundHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler whose connections leave from the broker's address: the proxy knows callers by it."""

    def __init__(self, source_host: str) -> None:
        super().__init__()
        self._source_host = source_host

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None, **_tls: object
    ) -> socket.socket:
        return socket.create_connection(
            address, timeout=timeout, source_address=(self._source_host, 0)
        )


def main(arguments: list[str]) -> None:
    """Prepare the broker's files and become its JVM; raises what either raises."""
    parser = argparse.ArgumentParser(prog="nemesis.runtimes.kafka_launcher")
    parser.add_argument("config", type=Path, help="the broker's properties as JSON")
    parser.add_argument("--jars", type=Path, required=True, help="the directory of Kafka's jars")
    parser.add_argument("--classes", type=Path, help="where a broker's classes are stored")
    options = parser.parse_args(arguments)
    properties = msgspec.json.decode(options.config.read_bytes(), type=dict[str, str])
    replica_file = properties.pop(REPLICA_FILE, None)
    host = source_host(properties)
    sharing = class_sharing(options.classes)
    file = None if replica_file is None else Path(replica_file)
    command = java_command(options.config, options.jars, properties, sharing, file)
    if ROLES in properties:
        format_log_dirs(options.config, options.jars, properties, sharing)
    else:
        wait_until_unregistered(properties, host)
    if file is not None:
        begin_incarnation(file, properties)
    os.execve(command[0], command, {**_environment(host), **JAVA_LOCALE})  # noqa: S606 - no shell is wanted


def source_host(properties: Mapping[str, str]) -> str:
    """Return the host of the first listener: 127.4.9.1 of ``PLAINTEXT://127.4.9.1:19092,...``."""
    listener = properties["listeners"].split(",")[0]
    return listener.partition("://")[2].rpartition(":")[0]


def _environment(host: str) -> Mapping[str, str]:
    if not ip_address(
        host
    ).is_loopback:  # a machine or container of its own: it has no other address
        return os.environ
    return environment(source_address_library(), host)


def class_sharing(classes: Path | None) -> list[str]:
    """Return the options with which a JVM uses the stored classes, if they fit its jars and its Java."""
    return [] if classes is None else [f"-XX:SharedArchiveFile={classes}"]


def class_path(jars: Path) -> str:
    """Return the jars as java takes them."""
    return ":".join(map(str, jars_in(jars)))


def java_command(
    config: Path,
    jars: Path,
    properties: Mapping[str, str],
    options: Sequence[str],
    replica_file: Path | None = None,
) -> list[str]:
    """Write the broker's configuration and that of its log; return the command line of the JVM.

    ``options`` are options of the JVM beside those that every broker has. What the broker logs of its replicas goes to
    ``replica_file``.
    """
    settings = config.with_suffix(".properties")
    settings.write_text(properties_text(properties), encoding="ascii")
    logging_option = log_option(config, jars, replica_file)
    all_options = [*JVM_OPTIONS, *options, logging_option, "-cp", class_path(jars)]
    return [str(find_java()), *all_options, MAIN_CLASS, str(settings)]


def format_log_dirs(
    config: Path, jars: Path, properties: Mapping[str, str], options: Sequence[str] = ()
) -> None:
    """Give a KRaft node's log directories their cluster and its id, once; raises ``RuntimeError``.

    The node's ``.properties`` must be written. ``options`` are options of the JVM beside those that every broker has.
    """
    if all((Path(folder) / FORMATTED).exists() for folder in properties["log.dirs"].split(",")):
        return
    command = [
        *(str(find_java()), *JVM_OPTIONS, *options),
        *(log_option(config.with_name("format"), jars), "-cp", class_path(jars), STORAGE_TOOL),
        *("format", "--ignore-formatted", "--cluster-id", CLUSTER_ID),
        *("--config", str(config.with_suffix(".properties"))),
    ]
    ran = subprocess.run(
        command,
        env={**os.environ, **JAVA_LOCALE},
        timeout=FORMAT_TIMEOUT_S,
        check=False,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{STORAGE_TOOL} ended with {ran.returncode}: its output says why")


def wait_until_unregistered(properties: Mapping[str, str], host: str) -> None:
    """Return when no broker of this id is registered in ZooKeeper; waits for ZooKeeper, too."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    client = KazooClient(
        properties["zookeeper.connect"],
        timeout=SESSION_TIMEOUT_S,
        handler=_BoundHandler(host),
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.2),
        read_only=False,
    )
    client.start_async().wait()
    try:
        while _is_registered(client, properties["broker.id"]):
            time.sleep(POLL_INTERVAL_S)
    finally:
        client.stop()
        client.close()


def _is_registered(client: KazooClient, broker_id: str) -> bool:
    """Return whether it is, or may be: without an answer nothing is known."""
    try:
        return client.exists(f"/brokers/ids/{broker_id}") is not None
    except KazooException:
        return True


if __name__ == "__main__":
    main(sys.argv[1:])
