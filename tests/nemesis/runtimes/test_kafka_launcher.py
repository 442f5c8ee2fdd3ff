"""The launcher of a Kafka broker: its files, its command, and the wait for the registration of the predecessor."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from nemesis.runtimes.kafka_launcher import (
    class_archive,
    class_sharing,
    java_command,
    outdated_class_archives,
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


def test_stored_classes_are_used_for_the_jars_that_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").touch()
    assert class_sharing(jars) == []
    archive = class_archive(jars)
    archive.touch()
    assert class_sharing(jars) == [f"-XX:SharedArchiveFile={archive}"]
    (jars / "b.jar").touch()
    assert class_sharing(jars) == []


@pytest.mark.parametrize("changed", ["release", "SHA256SUMS", "jars/a.jar"])
def test_stored_classes_are_renewed_with_the_jars_and_with_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Java is a home directory with a file ``release``, as all are that OpenJDK builds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    java, jars = tmp_path / "java" / "bin" / "java", tmp_path / "jars"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    jars.mkdir()
    files = {
        "release": tmp_path / "java" / "release",
        "SHA256SUMS": jars / "SHA256SUMS",
        "jars/a.jar": jars / "a.jar",
    }
    for file in files.values():
        file.write_text("before")
    before = class_archive(jars)
    before.touch()
    assert class_archive(jars) == before
    files[changed].write_text("afterwards")
    assert class_sharing(jars) == []
    assert outdated_class_archives(class_archive(jars)) == [before]


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
