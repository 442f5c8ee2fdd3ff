"""The listener of ``/config/changes`` on a real ZooKeeper: what is processed, in which order, what is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.server.zk_config_manager import CHANGE_EXPIRATION_MS, ZkConfigManager
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from tests.reference.controller.cluster import until
from tests.reference.session_expiry import expire

PREFIX = "/config/changes/config_change_"


class Broker:
    """A listener, and what its handler was told."""

    def __init__(self, zookeeper: KazooZooKeeperClient) -> None:
        self.zookeeper = zookeeper
        self.zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
        self.changed: list[str] = []
        self.now_ms = 0
        self.manager = ZkConfigManager(
            self.zk_client, handlers={"topics": self}, wall_clock=lambda: self.now_ms
        )

    async def process_config_changes(self, name: str) -> None:
        await self.zk_client.configs.get_entity_config("topics", name)
        self.changed.append(name)

    async def notify(self, data: bytes) -> None:
        await self.zookeeper.create(PREFIX, data, sequential=True)

    async def change(self, topic: str) -> None:
        await self.zk_client.configs.alter_entity_config("topics", topic, lambda _present: {})

    async def heard(self, *topics: str) -> None:
        await until(lambda: self.changed == list(topics))


def run(address: str, test: Callable[[Broker], Awaitable[None]]) -> None:
    async def with_broker() -> None:
        zookeeper = KazooZooKeeperClient(address, 10_000, None)
        broker = Broker(zookeeper)
        await zookeeper.start()
        try:
            await broker.zk_client.brokers.make_sure_persistent_paths_exist()
            await test(broker)
        finally:
            await broker.manager.shutdown()
            await zookeeper.close()

    asyncio.run(asyncio.wait_for(with_broker(), 40))


def test_what_was_there_at_the_start_and_what_comes_is_processed_once_in_order(
    zookeeper_address: str,
) -> None:
    async def test(broker: Broker) -> None:
        await broker.change("a")
        await broker.change("b")
        broker.manager.startup()
        await broker.heard("a", "b")
        for topic in ("c", "a", "c"):
            await broker.change(topic)
        await broker.heard("a", "b", "c", "a", "c")

    run(zookeeper_address, test)


@pytest.mark.parametrize(
    "foreign",
    [
        b"no JSON",
        b'{"version":2,"entity_path":"topics"}',
        b'{"version":2,"entity_path":7}',
        b'{"version":2,"entity_path":"users/u"}',
        b'{"version":2,"entity_path":"topics/.."}',
    ],
)
def test_what_it_cannot_read_or_does_not_know_is_logged_and_passed_over(
    zookeeper_address: str, foreign: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(broker: Broker) -> None:
        broker.manager.startup()
        await broker.zookeeper.create("/config/changes/other", b"")
        await broker.notify(foreign)
        await broker.change("a")
        await broker.heard("a")
        assert "config_change_0000000001" in caplog.text

    run(zookeeper_address, test)


def test_it_goes_on_in_the_next_session(zookeeper_address: str) -> None:
    async def test(broker: Broker) -> None:
        broker.manager.startup()
        await broker.change("a")
        await broker.heard("a")
        await asyncio.to_thread(expire, zookeeper_address, broker.zookeeper.session_id)
        await broker.zk_client.session.retry_across_sessions(lambda: broker.change("b"))
        await until(lambda: broker.changed[-1] == "b")

    run(zookeeper_address, test)


def test_old_notifications_are_deleted_by_who_looks_at_them(zookeeper_address: str) -> None:
    async def test(broker: Broker) -> None:
        await broker.change("a")
        created_ms = (await broker.zookeeper.get(f"{PREFIX}0000000000"))[1].ctime_ms
        broker.now_ms = created_ms + CHANGE_EXPIRATION_MS
        broker.manager.startup()
        await broker.heard("a")
        assert len(await broker.zookeeper.get_children("/config/changes")) == 1
        broker.now_ms += 1
        await asyncio.sleep(0.01)
        await broker.change("b")
        names = broker.zookeeper.get_children
        async with asyncio.timeout(10):
            while await names("/config/changes") != ["config_change_0000000001"]:
                await asyncio.sleep(0.005)
        assert broker.changed == ["a", "b"]

    run(zookeeper_address, test)


def test_settings_are_read_when_the_member_knows_the_topic(zookeeper_address: str) -> None:
    async def test(broker: Broker) -> None:
        reading = asyncio.ensure_future(
            broker.zk_client.configs.get_configs_of_existing_topics(["late"])
        )
        await asyncio.sleep(0.03)
        await broker.zookeeper.create("/config/topics/late", b'{"version":1,"config":{"a":"1"}}')
        await broker.zookeeper.create("/brokers/topics/late", b"{}")
        assert await reading == {"late": {"a": "1"}}
        gone = await broker.zk_client.configs.get_configs_of_existing_topics(["gone"])
        assert gone == {"gone": {}}

    run(zookeeper_address, test)


def test_a_broken_znode_of_an_entity_reads_as_no_settings_of_it(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(broker: Broker) -> None:
        await broker.zookeeper.create("/config/topics/t", b'{"config":{"a":1}}')
        configs = await broker.zk_client.configs.get_topic_configs(["t", "u"])
        assert configs == {"t": None, "u": {}}
        assert "/config/topics/t has config {'a': 1}, not an object of strings" in caplog.text

    run(zookeeper_address, test)
