"""CreateTopics, DeleteTopics and CreatePartitions on a real ZooKeeper: what is written or refused, when it is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.model import (
    LEADER_DURING_DELETE,
    Broker,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.server.config_helper import ConfigHelper
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.zk_admin_manager import (
    PartitionsSpec,
    TopicResult,
    TopicSpec,
    ZkAdminManager,
)
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import topic_id_from_string, topic_id_to_string
from tests.reference.controller.cluster import config

BROKERS = [Broker.at(b, "h", b) for b in (1, 2, 3)]
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
                config_helper=ConfigHelper(DynamicBrokerConfig(config(1))),
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
        (TopicSpec("t", configs={"cleanup.policy": "shred"}), ErrorCode.invalid_config),
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


async def grown(
    manager: ZkAdminManager, spec: PartitionsSpec, *, validate_only: bool = False
) -> TopicResult:
    (result,) = await manager.create_partitions([spec], validate_only=validate_only, timeout_ms=0)
    return result


async def create(manager: ZkAdminManager, *replicas: tuple[int, ...]) -> None:
    spec = TopicSpec("t", assignment=dict(enumerate(replicas)))
    await manager.create_topics([spec], validate_only=False, timeout_ms=0)


async def partitions(zookeeper: KazooZooKeeperClient) -> dict[str, list[int]]:
    data, _ = await zookeeper.get("/brokers/topics/t")
    written: dict[str, list[int]] = json.loads(data)["partitions"]
    return written


def test_partitions_are_added_to_those_that_are_there(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (2, 1))
        # The time-out of 0 passes: nobody has told this broker of leaders.
        late = await grown(manager, PartitionsSpec("t", 3, ((1, 3), (3, 2))))
        assert late.error is ErrorCode.request_timed_out
        assert await partitions(zookeeper) == {"0": [2, 1], "1": [1, 3], "2": [3, 2]}
        await grown(manager, PartitionsSpec("t", 5))
        written = await partitions(zookeeper)
        assert list(written) == ["0", "1", "2", "3", "4"]
        assert all(len(set(replicas)) == 2 for replicas in written.values())

    run(zookeeper_address, test)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (PartitionsSpec("u", 2), ErrorCode.unknown_topic_or_partition),
        (PartitionsSpec("", 2), ErrorCode.unknown_topic_or_partition),
        (PartitionsSpec("..", 2), ErrorCode.unknown_topic_or_partition),
        (PartitionsSpec("t", 1), ErrorCode.invalid_partitions),
        (PartitionsSpec("t", 2), ErrorCode.invalid_partitions),
        (PartitionsSpec("t", 2**31 - 1), ErrorCode.invalid_partitions),
        (PartitionsSpec("t", 3, ()), ErrorCode.invalid_replica_assignment),
        (PartitionsSpec("t", 3, ((1,),)), ErrorCode.invalid_replica_assignment),
        (PartitionsSpec("t", 3, ((1, 1),)), ErrorCode.invalid_replica_assignment),
        (PartitionsSpec("t", 3, ((1, 9),)), ErrorCode.invalid_replica_assignment),
        (PartitionsSpec("t", 3, ((1, 2), (2, 1))), ErrorCode.invalid_replica_assignment),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_partitions_that_are_refused_write_nothing(
    zookeeper_address: str, spec: PartitionsSpec, error: ErrorCode, *, validate_only: bool
) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2), (2, 3))
        refused = await grown(manager, spec, validate_only=validate_only)
        assert refused.error is error
        assert refused.message
        assert list(await partitions(zookeeper)) == ["0", "1"]

    run(zookeeper_address, test)


def test_partitions_that_are_only_validated_are_not_written(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2))
        valid = await grown(manager, PartitionsSpec("t", 2), validate_only=True)
        assert valid.error is ErrorCode.none
        assert list(await partitions(zookeeper)) == ["0"]

    run(zookeeper_address, test)


def test_a_topic_that_is_moved_or_deleted_does_not_grow(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2))
        data, _ = await zookeeper.get("/brokers/topics/t")
        moving = json.loads(data) | {"adding_replicas": {"0": [2]}, "removing_replicas": {"0": [1]}}
        await zookeeper.set_data("/brokers/topics/t", json.dumps(moving).encode())
        refused = await grown(manager, PartitionsSpec("t", 2))
        assert refused.error is ErrorCode.reassignment_in_progress
        await manager.delete_topics(["t"], timeout_ms=0)
        refused = await grown(manager, PartitionsSpec("t", 2))
        assert refused.error is ErrorCode.invalid_topic_exception
        assert list(await partitions(zookeeper)) == ["0"]

    run(zookeeper_address, test)


def test_partitions_that_another_adds_meanwhile_are_kept(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2))
        both = (PartitionsSpec("t", 2, ((3, 1),)), PartitionsSpec("t", 3, ((2, 3), (1, 3))))
        results = await asyncio.gather(*(grown(manager, spec) for spec in both))
        errors = {result.error for result in results}
        # Whichever comes first, the other finds it: two or one partitions too many, or only the smaller is too late.
        assert errors <= {
            ErrorCode.request_timed_out,
            ErrorCode.invalid_replica_assignment,
            ErrorCode.invalid_partitions,
        }
        assert len(errors) == 2
        written = await partitions(zookeeper)
        assert written in (
            {"0": [1, 2], "1": [3, 1]},
            {"0": [1, 2], "1": [2, 3], "2": [1, 3]},
        )

    run(zookeeper_address, test)


def test_a_topic_is_deleted_once_nobody_is_told_of_it(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2))
        (topic,) = await manager._zk_client.topics.get_replica_assignments(["t"])
        known = UpdateMetadataPartitionState(
            TopicPartition("t", 0), topic.topic_id, 1, 1, 0, (1, 2), 0, (1, 2)
        )
        cache.update(1, 1, BROKERS, [known])
        (late,) = await manager.delete_topics(["t"], timeout_ms=50)
        assert late.error is ErrorCode.request_timed_out
        assert await zookeeper.exists("/admin/delete_topics/t") is not None
        # Asked for again, it is no error that the topic is marked already.
        deleting = asyncio.create_task(manager.delete_topics(["t"], timeout_ms=20_000))
        await asyncio.sleep(0)
        cache.update(1, 1, BROKERS, [replace(known, leader=LEADER_DURING_DELETE)])
        (deleted,) = await deleting
        assert (deleted.name, deleted.error) == ("t", ErrorCode.none)

    run(zookeeper_address, test)


def test_a_name_is_not_free_while_its_topic_is_marked(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        # The controller has deleted the topic's znode, its configuration and the mark are next.
        await zookeeper.create("/config/topics/t", b'{"version":1,"config":{}}')
        await zookeeper.create("/admin/delete_topics/t", b"")
        (refused,) = await manager.create_topics(
            [TopicSpec("t")], validate_only=False, timeout_ms=0
        )
        assert refused.error is ErrorCode.topic_already_exists
        assert await zookeeper.exists("/brokers/topics/t") is None

    run(zookeeper_address, test)


def test_what_does_not_exist_cannot_be_deleted(zookeeper_address: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        (refused,) = await manager.delete_topics(["t"], timeout_ms=0)
        assert refused.error is ErrorCode.unknown_topic_or_partition
        assert await zookeeper.get_children("/admin/delete_topics") == []

    run(zookeeper_address, test)


@pytest.mark.parametrize("name", ["", ".", "..", "t/partitions"])
def test_what_is_a_path_is_no_topic_to_be_deleted(zookeeper_address: str, name: str) -> None:
    async def test(
        manager: ZkAdminManager, _cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        await create(manager, (1, 2))
        await zookeeper.create("/brokers/topics/t/partitions", b"")
        await zookeeper.create("/admin/delete_topics/t", b"")
        (refused,) = await manager.delete_topics([name], timeout_ms=0)
        assert refused.error is ErrorCode.unknown_topic_or_partition
        assert await zookeeper.get_children("/admin/delete_topics/t") == []

    run(zookeeper_address, test)


def test_replicas_are_spread_over_racks_and_some_without_one_are_refused(
    zookeeper_address: str,
) -> None:
    async def test(
        manager: ZkAdminManager, cache: MetadataCache, zookeeper: KazooZooKeeperClient
    ) -> None:
        racks = {1: "a", 2: "a", 3: "b"}
        cache.update(1, 1, [replace(b, rack=racks[b.id]) for b in BROKERS], [])
        spec = TopicSpec("t", num_partitions=6, replication_factor=2)
        await manager.create_topics([spec], validate_only=False, timeout_ms=0)
        data, _ = await zookeeper.get("/brokers/topics/t")
        for replicas in json.loads(data)["partitions"].values():
            assert {racks[broker] for broker in replicas} == {"a", "b"}
        cache.update(1, 1, [replace(BROKERS[0], rack="a"), *BROKERS[1:]], [])
        (refused,) = await manager.create_topics(
            [replace(spec, name="u")], validate_only=True, timeout_ms=0
        )
        assert refused.error is ErrorCode.unknown_server_error
        assert refused.message == "Brokers [2, 3] have no rack, as the others have."

    run(zookeeper_address, test)
