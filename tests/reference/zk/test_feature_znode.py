"""``/feature`` on a real ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk import feature_znode, zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from tests.reference.controller.cluster import nodes, run

ENABLED = {"version": 2, "status": 1, "features": {}}


@asynccontextmanager
async def client(address: str) -> AsyncIterator[tuple[KazooZooKeeperClient, KafkaZkClient]]:
    zookeeper = KazooZooKeeperClient(address, 10_000, None)
    zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
    await zookeeper.start()
    try:
        yield zookeeper, zk_client
    finally:
        await zookeeper.close()


def test_a_controller_leaves_the_znode_as_kafka_does(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            data, _ = await first.zookeeper.get(zk_data.FEATURE)
            assert json.loads(data) == ENABLED

    run(test())


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (feature_znode.encode(feature_znode.DISABLED), feature_znode.encode()),
        (
            b'{"version":2,"status":1,"features":{"f":1}}',
            b'{"version":2,"status":1,"features":{"f":1}}',
        ),
        (b"no JSON", b"no JSON"),
    ],
)
def test_what_is_there_stays_but_is_enabled(
    zookeeper_address: str, data: bytes, left: bytes
) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as (zookeeper, zk_client):
            await zookeeper.create(zk_data.FEATURE, data)
            await zk_client.feature.enable_feature_versioning()
            assert (await zookeeper.get(zk_data.FEATURE))[0] == left

    run(test())
