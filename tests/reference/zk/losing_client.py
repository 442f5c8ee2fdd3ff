"""A ZooKeeper client that loses replies of writes that were applied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.errors import (
    ConnectionLossError,
)
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment

TP = TopicPartition("t", 0)


STATE = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1, 2))


class LosingZooKeeperClient(KazooZooKeeperClient):
    """Loses the reply, not the effect, of the next write that ends with the path ``lose_at``."""

    lose_at = ""

    async def _call(self, description: str, submit: Callable[[Any], Any]) -> Any:
        result = await super()._call(description, submit)
        operation, path = description.split(" ")
        if operation in ("multi", "create", "set_data") and path == self.lose_at:
            self.lose_at = ""
            raise ConnectionLossError(description)
        return result


@asynccontextmanager
async def losing(address: str) -> AsyncIterator[tuple[LosingZooKeeperClient, KafkaZkClient]]:
    zookeeper = LosingZooKeeperClient(address, 10_000, None)
    zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
    await zookeeper.start()
    try:
        await zk_client.brokers.make_sure_persistent_paths_exist()
        yield zookeeper, zk_client
        assert not zookeeper.lose_at, "no reply was lost"
    finally:
        await zookeeper.close()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


async def office(zk_client: KafkaZkClient) -> ControllerFence:
    won = await zk_client.election.register_controller_and_increment_controller_epoch(1, 0)
    topic = TopicAssignment("t", UUID(int=1), {0: ReplicaAssignment((1, 2))})
    await zk_client.topics.create_topic(topic, {})
    return won.fence
