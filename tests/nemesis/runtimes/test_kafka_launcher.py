"""The launcher of a Kafka broker: its files, its command, and the wait for the registration of the predecessor."""

from __future__ import annotations

import threading
from pathlib import Path

from kazoo.client import KazooClient

from nemesis.runtimes.kafka_launcher import (
    class_sharing,
    java_command,
    source_host,
    wait_until_unregistered,
)
from tests.history.zookeeper_server import zookeeper_server

BLOCKED_S = 0.5
TIMEOUT_S = 20.0
LISTENERS = {"listeners": "PLAINTEXT://127.4.9.2:19092,CONTROL://127.4.9.2:19093"}


def test_connections_leave_from_the_first_listener() -> None:
    assert source_host(LISTENERS) == "127.4.9.2"


def test_properties_are_written_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "b.jar").touch()
    (tmp_path / "a.jar").touch()
    command = java_command(tmp_path / "broker-2.json", tmp_path, LISTENERS, ["-Xint"])
    assert "-Xint" in command
    assert command[-2:] == ["kafka.Kafka", str(tmp_path / "broker-2.properties")]
    assert command[command.index("-cp") + 1] == f"{tmp_path / 'a.jar'}:{tmp_path / 'b.jar'}"
    assert (tmp_path / "broker-2.properties").read_text() == f"listeners={LISTENERS['listeners']}\n"


def test_stored_classes_are_used_when_there_are_any(tmp_path: Path) -> None:
    assert class_sharing(None) == []
    assert class_sharing(tmp_path / "a.jsa") == [f"-XX:SharedArchiveFile={tmp_path / 'a.jsa'}"]


def test_a_link_to_nothing_is_no_jar(tmp_path: Path) -> None:
    (tmp_path / "a.jar").touch()
    (tmp_path / "b.jar").symlink_to("nowhere")
    command = java_command(tmp_path / "broker-2.json", tmp_path, LISTENERS, [])
    assert command[command.index("-cp") + 1] == str(tmp_path / "a.jar")


def test_a_broker_waits_until_the_registration_of_its_predecessor_is_gone(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path) as address:
        properties = {"zookeeper.connect": address, "broker.id": "2"}
        predecessor = KazooClient(address)
        predecessor.start()
        predecessor.create("/brokers/ids/2", ephemeral=True, makepath=True)
        launched = threading.Thread(target=wait_until_unregistered, args=(properties, "127.3.2.2"))
        launched.start()
        launched.join(BLOCKED_S)
        assert launched.is_alive()
        predecessor.stop()
        launched.join(TIMEOUT_S)
        assert not launched.is_alive()
        predecessor.close()
