"""Brokers that register other end points or racks while they live, and registrations that nobody can read."""

from __future__ import annotations

import logging

import pytest

from nemesis.reference.model import Broker
from nemesis.reference.zk import zk_data
from tests.reference.controller.cluster import Node, create_topic, nodes, run, until


def racks_sent(node: Node, broker_id: int) -> dict[int, str | None]:
    """The racks in the last UpdateMetadata to a broker; nothing before the first."""
    requests = node.wire.to(broker_id, "UpdateMetadata")
    return {b.id_: b.rack for b in requests[-1].live_brokers} if requests else {}


async def register(node: Node, broker: Broker) -> None:
    data = zk_data.encode_broker(broker, 0)
    await node.zookeeper.set_data(zk_data.broker_path(broker.id), data)


def test_everybody_learns_of_a_new_rack_each_time(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            for rack in ("a", "b"):
                moved = Broker.at(2, "127.0.0.1", 9002, rack)
                await register(second, moved)
                await until(lambda rack=rack: racks_sent(first, 3).get(2) == rack)  # type: ignore[misc]
                assert racks_sent(first, 1) == racks_sent(first, 2) == {1: None, 2: rack, 3: None}
                assert first.controller.context.live_brokers[2] == moved

    run(test())


def test_the_same_registration_again_says_nothing(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await register(second, Broker.at(2, "127.0.0.1", 9002, "a"))
            await until(lambda: racks_sent(first, 1).get(2) == "a")
            before = len(first.wire.to(1, "UpdateMetadata"))
            await register(second, Broker.at(2, "127.0.0.1", 9002, "a"))
            await register(second, Broker.at(2, "127.0.0.1", 9002, "b"))
            await until(lambda: racks_sent(first, 1)[2] == "b")
            assert len(first.wire.to(1, "UpdateMetadata")) == before + 1

    run(test())


def test_a_new_controller_watches_those_that_it_finds(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await first.stop()
            await until(lambda: second.controller.is_active or third.controller.is_active)
            heir = second if second.controller.is_active else third
            await until(lambda: heir.controller.context.live_broker_ids == [2, 3])
            await register(third, Broker.at(3, "127.0.0.1", 9003, "a"))
            await until(lambda: heir.controller.context.live_brokers[3].rack == "a")

    run(test())


@pytest.mark.parametrize("data", [b"no JSON", b'{"version":5,"endpoints":["SSL://a:1"]}'])
def test_a_registration_that_cannot_be_read_is_logged_and_ignored(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await second.zookeeper.create(zk_data.broker_path(7), data, ephemeral=True)
            await second.zookeeper.set_data(zk_data.broker_path(2), data)
            again = await Node(zookeeper_address, 3).start()
            try:
                await until(lambda: 3 in first.controller.context.live_brokers)
                assert first.controller.is_active
                assert 7 not in first.controller.context.live_brokers
            finally:
                await again.stop()

    run(test())
    assert "broker 7 is ignored: /brokers/ids/7" in caplog.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("²", b""),
        ("2147483648", b'{"endpoints":["PLAINTEXT://h:1"]}'),
        ("77", b'{"endpoints":5}'),
        ("77", b'{"endpoints":["PLAINTEXT://h:1"],"rack":5}'),
    ],
)
def test_a_foreign_broker_is_logged_and_ignored(
    zookeeper_address: str, name: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            epoch = first.controller.context.epoch
            with caplog.at_level(logging.ERROR):
                await first.zookeeper.create(f"/brokers/ids/{name}", data)
                await until(lambda: name in caplog.text)
            await create_topic(first, "t", (2, 1))
            await until(lambda: first.elected("t", 0) == [("new", 2, 0, [2, 1])])
            assert first.controller.context.epoch == epoch
            assert first.controller.context.live_broker_ids == [1, 2]
            await first.zookeeper.delete(f"/brokers/ids/{name}")

    run(test())
