"""A real ZooKeeper server keeps its data where its configuration says, whatever the path and the locale."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from nemesis.history.zookeeper_log import read_log
from nemesis.interfaces.links import Address
from nemesis.runtimes.local.zookeeper_server import data_directory, zookeeper_process
from nemesis.support.java import properties_text
from nemesis.support.journal import Journal
from tests.history.zookeeper_server import free_port

START_TIMEOUT_S = 30.0


def test_properties_are_ascii_as_java_reads_them() -> None:
    text = properties_text({"dataDir": "/stör \\e/日\U0001f980", "clientPort": 2181})
    assert text == "dataDir=/st\\u00f6r\\u0020\\\\e/\\u65e5\\ud83e\\udd80\nclientPort=2181\n"


@pytest.mark.e2e
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_data_lie_in_the_run_directory_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    run_directory = tmp_path / "für \\x, 50%\t日本\U0001f980"
    run_directory.mkdir()

    async def scene() -> None:
        address = Address("127.0.0.1", free_port())
        server = zookeeper_process(
            "zookeeper-1",
            address,
            tick_time_ms=500,
            run_directory=run_directory,
            journal=Journal.create(run_directory, directory=tmp_path),
            environment={},
        )
        server.start()
        try:
            await asyncio.to_thread(create_znode, str(address))
        finally:
            await server.stop(grace_s=0)

    asyncio.run(scene())
    log = read_log(data_directory(run_directory, "zookeeper-1") / "version-2")
    assert log.transactions
    logs = (run_directory / "logs" / "zookeeper-1.log").read_text()
    assert "INFO" in logs, "the logging configuration was not found"
    assert sorted(path.name for path in tmp_path.iterdir()) == [run_directory.name, "journals"]


def create_znode(address: str) -> None:
    client = KazooClient(hosts=address)
    client.start(START_TIMEOUT_S)
    client.create("/a-znode", b"")
    client.stop()
    client.close()
