"""Brokers without ``broker.id``: the id that they get, keep, and may not be given another one for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.kafka_config import ConfigError, KafkaConfig
from nemesis.reference.server.broker_id_generation import with_broker_id
from nemesis.reference.server.broker_metadata_checkpoint import (
    BrokerMetadata,
    BrokerMetadataCheckpoint,
)
from nemesis.reference.zk import zk_data
from tests.reference.cluster.hosting import config
from tests.reference.controller.cluster import SESSION_TIMEOUT_MS
from tests.reference.free_port import HOST, free_port


def identified(directory: Path, address: str, **properties: object) -> KafkaConfig:
    return asyncio.run(
        with_broker_id(
            config(directory, broker_id=-1, **properties),
            disk=RealDisk(),
            zookeeper=KazooZooKeeperClient(address, SESSION_TIMEOUT_MS, None),
        )
    )


def test_every_broker_gets_an_id_above_the_reserved_ones(
    tmp_path: Path, zookeeper_address: str
) -> None:
    ids = [identified(tmp_path, zookeeper_address).broker_id for _ in range(2)]
    assert ids == [1001, 1002]
    assert identified(tmp_path, zookeeper_address, reserved_broker_max_id=7).broker_id == 10


def test_a_stored_id_is_kept_and_nobody_is_asked(tmp_path: Path) -> None:
    BrokerMetadataCheckpoint(RealDisk(), ()).write(str(tmp_path), BrokerMetadata("c", 1004))
    assert identified(tmp_path, "127.0.0.1:1").broker_id == 1004


def test_a_configured_id_is_kept(tmp_path: Path) -> None:
    given = config(tmp_path, broker_id=5)
    zookeeper = KazooZooKeeperClient("127.0.0.1:1", SESSION_TIMEOUT_MS, None)
    assert asyncio.run(with_broker_id(given, disk=RealDisk(), zookeeper=zookeeper)) is given


@pytest.mark.parametrize(
    ("broker_id", "properties", "words"),
    [
        (1001, {}, "broker.id is 1001: it may not be greater than reserved.broker.max.id"),
        (-1, {"broker.id.generation.enable": False}, "broker.id is missing, and broker.id.gen"),
        (-2, {}, "broker.id"),
    ],
)
def test_ids_that_cannot_be_are_refused(
    tmp_path: Path, broker_id: int, properties: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        config(tmp_path, broker_id=broker_id, **properties)


def start(directory: Path, address: str, **properties: object) -> subprocess.Popen[str]:
    directory.mkdir(exist_ok=True)
    port = free_port()
    whole = {
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "zookeeper.connect": address,
        "zookeeper.session.timeout.ms": 2_000,
        "log.dirs": [str(directory / "logs")],
        **properties,
    }
    file = directory / "config.json"
    file.write_text(json.dumps(whole))
    command = [sys.executable, "-m", "nemesis.reference", str(file)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def stop(broker: subprocess.Popen[str]) -> None:
    broker.terminate()
    broker.communicate(timeout=30)


async def registered(client: KazooClient, broker_id: int) -> None:
    while client.exists(zk_data.broker_path(broker_id)) is None:
        await asyncio.sleep(0.05)


def test_a_broker_process_keeps_its_id_and_refuses_another_one(
    tmp_path: Path, zookeeper_address: str
) -> None:
    client = KazooClient(zookeeper_address)
    client.start()
    try:
        for _ in range(2):
            broker = start(tmp_path, zookeeper_address)
            try:
                asyncio.run(asyncio.wait_for(registered(client, 1001), 30))
            finally:
                stop(broker)
        refused = start(tmp_path, zookeeper_address, **{"broker.id": 7})
        _, said = refused.communicate(timeout=30)
        assert refused.returncode == 1
        last = said.splitlines()[-1]
        assert last.startswith("InconsistentBrokerIdError: broker.id is 7, and ")
        assert client.exists(zk_data.broker_path(7)) is None
    finally:
        client.stop()
        client.close()
