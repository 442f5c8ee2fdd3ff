"""CreateTopics against a real ZooKeeper: what is written, what is refused, and when it counts as done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from kio.schema.errors import ErrorCode

from reference.adapters.zookeeper import KazooZooKeeperClient
from reference.model import BrokerEndPoint, TopicPartition, UpdateMetadataPartitionState
from reference.server.metadata_cache import MetadataCache
from reference.server.zk_admin_manager import TopicSpec, ZkAdminManager
from reference.trace import NullTracer
from reference.zk.kafka_zk_client import KafkaZkClient
from reference.zk.zk_data import topic_id_from_string, topic_id_to_string
from tests.reference.controller.cluster import config

BROKERS = [BrokerEndPoint(b, "h", b) for b in (1, 2, 3)]
Test = Callable[[ZkAdminManager, MetadataCache, KazooZooKeeperClient], Awaitable[None]]


def run(address: str, test: Test) -> None:
    async def with_manager() -> None:
        zookeeper = KazooZooKeeperClient(address, 10_000, None)
        zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
        await zookeeper.start()
        try:
            await zk_client.brokers.make_sure_persistent_paths_exist()
            cache = MetadataCache(1)
            cache.update(1, 1, BROKERS, [])
            manager = ZkAdminManager(
                config(1, **{"num.partitions": 2, "default.replication.factor": 3}),
                zk_client=zk_client,
                metadata_cache=cache,
                rng=Random(1),
            )
            await test(manager, cache, zookeeper)
        finally:
            await zookeeper.close()

    asyncio.run(asyncio.wait_for(with_manager(), 30))


def test_a_topic_is_created_once_its_leaders_are_known(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        creating = asyncio.create_task(
            manager.create_topics([TopicSpec("t")], validate_only=False, timeout_ms=20_000)
        )
        while await zookeeper.exists("/brokers/topics/t") is None:
            assert not creating.done()
        data, _ = await zookeeper.get("/brokers/topics/t")
        written = json.loads(data)
        assert written["version"] == 3
        assert {p: sorted(r) for p, r in written["partitions"].items()} == {"0": [1, 2, 3], "1": [1, 2, 3]}  # fmt: skip
        assert (await zookeeper.get("/config/topics/t"))[0] == b'{"version":1,"config":{}}'
        topic_id = topic_id_from_string(written["topic_id"])
        for partition in (0, 1):
            assert not creating.done()
            state = UpdateMetadataPartitionState(
                TopicPartition("t", partition), topic_id, 1, 1, 0, (1, 2, 3), 0, (1, 2, 3)
            )
            cache.update(1, 1, BROKERS, [state])
        (created,) = await creating
        assert created.error is ErrorCode.none
        assert created.topic_id is not None
        assert topic_id_to_string(created.topic_id) == written["topic_id"]
        assert (created.num_partitions, created.replication_factor) == (2, 3)

    run(zookeeper_address, test)


def test_without_leaders_it_times_out_but_exists(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        (late,) = await manager.create_topics([TopicSpec("t")], validate_only=False, timeout_ms=300)
        assert late.error is ErrorCode.request_timed_out
        assert await zookeeper.exists("/brokers/topics/t") is not None
        (again,) = await manager.create_topics(
            [TopicSpec("t")], validate_only=False, timeout_ms=10_000
        )
        assert again.error is ErrorCode.topic_already_exists

    run(zookeeper_address, test)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (TopicSpec("a/b"), ErrorCode.invalid_topic_exception),
        (TopicSpec("t", num_partitions=0), ErrorCode.invalid_partitions),
        (TopicSpec("t", num_partitions=2**31 - 1), ErrorCode.invalid_partitions),
        (TopicSpec("t", replication_factor=4), ErrorCode.invalid_replication_factor),
        (TopicSpec("t", replication_factor=-2), ErrorCode.invalid_replication_factor),
        (TopicSpec("t", 1, assignment={0: (1,)}), ErrorCode.invalid_request),
        (TopicSpec("t", assignment={1: (1,)}), ErrorCode.invalid_replica_assignment),
        (TopicSpec("t", assignment={0: ()}), ErrorCode.invalid_replica_assignment),
        (TopicSpec("t", assignment={0: (1, 1)}), ErrorCode.invalid_replica_assignment),
        (TopicSpec("t", assignment={0: (9,)}), ErrorCode.invalid_replica_assignment),
        (TopicSpec("t", assignment={0: (1,), 1: (1, 2)}), ErrorCode.invalid_replica_assignment),
        (TopicSpec("t", configs={"cleanup.policy": "compact"}), ErrorCode.invalid_config),
    ],
)
def test_what_is_refused_writes_nothing(
    zookeeper_address: str, spec: TopicSpec, error: ErrorCode
) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        (refused,) = await manager.create_topics([spec], validate_only=False, timeout_ms=10_000)
        assert refused.error is error
        assert refused.message
        assert await zookeeper.get_children("/brokers/topics") == []
        assert await zookeeper.get_children("/config/topics") == []

    run(zookeeper_address, test)


def test_validate_only_writes_nothing(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        (valid,) = await manager.create_topics(
            [TopicSpec("t", assignment={0: (3, 1)})], validate_only=True, timeout_ms=10_000
        )
        assert (valid.error, valid.num_partitions, valid.replication_factor) == (ErrorCode.none, 1, 2)  # fmt: skip
        assert await zookeeper.get_children("/brokers/topics") == []

    run(zookeeper_address, test)
