"""Many states at once on a real ZooKeeper: several to a multi, and yet each has an outcome of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import (
    BadVersionError,
    ControllerMovedError,
    NodeExistsError,
    NoNodeError,
)
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.partition_states import CommittedState
from tests.reference.zk.losing_client import losing, office, run

COUNT = 200
PARTITIONS = [TopicPartition("t", number) for number in range(COUNT)]
STATE = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1, 2))


async def created(zk_client: KafkaZkClient) -> ControllerFence:
    fence = await office(zk_client)
    states = dict.fromkeys(PARTITIONS, STATE)
    results = await zk_client.states.create_topic_partition_states(states, fence)
    assert list(results) == PARTITIONS
    assert all(isinstance(result, CommittedState) for result in results.values())
    return fence


def test_a_refused_one_leaves_the_others_of_its_multi(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await created(zk_client)
            stale, missing = PARTITIONS[3], PARTITIONS[120]
            await zookeeper.delete(zk_data.state_path(missing))
            led = replace(STATE, leader_epoch=1)
            wanted = dict.fromkeys(PARTITIONS, led) | {stale: replace(led, partition_epoch=7)}
            results = await zk_client.states.update_leader_and_isr(wanted, fence)
            assert isinstance(results.pop(stale), BadVersionError)
            assert isinstance(results.pop(missing), NoNodeError)
            states = await zk_client.states.get_topic_partition_states(PARTITIONS)
            assert states.pop(stale).leader_and_isr == STATE
            assert {tp: result.state for tp, result in results.items()} == states  # type: ignore[union-attr]
            assert {state.leader_and_isr for state in states.values()} == {
                replace(led, partition_epoch=1)
            }

    run(test())


def test_a_multi_that_was_applied_unheard_is_committed_once(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await created(zk_client)
            zookeeper.lose_at = zk_data.state_path(PARTITIONS[-1])
            states = dict.fromkeys(PARTITIONS, STATE)
            results = await zk_client.states.update_leader_and_isr(states, fence)
            for topic_partition, result in results.items():
                _, stat = await zookeeper.get(zk_data.state_path(topic_partition))
                assert isinstance(result, CommittedState)
                assert (result.zxid, stat.version) == (stat.mzxid, 1)

    run(test())


def test_what_exists_is_not_created_again(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (_, zk_client):
            fence = await created(zk_client)
            more = [*PARTITIONS, TopicPartition("t", COUNT)]
            results = await zk_client.states.create_topic_partition_states(
                dict.fromkeys(more, STATE), fence
            )
            assert isinstance(results.pop(more[-1]), CommittedState)
            assert all(isinstance(result, NodeExistsError) for result in results.values())

    run(test())


def test_no_request_is_longer_than_zookeeper_takes(zookeeper_address: str) -> None:
    """With a thousand of such names to a request, ZooKeeper would close the connection, each time anew."""

    async def test() -> None:
        async with losing(zookeeper_address) as (_, zk_client):
            await office(zk_client)
            unknown = [TopicPartition("t" * 249, number) for number in range(120_000)]
            assert await zk_client.states.get_topic_partition_states(unknown) == {}

    run(test())


def test_none_is_done_under_an_old_epoch(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await created(zk_client)
            await zookeeper.set_data(zk_data.CONTROLLER_EPOCH, b"2")
            with pytest.raises(ControllerMovedError):
                await zk_client.states.update_leader_and_isr(
                    dict.fromkeys(PARTITIONS, STATE), fence
                )
            for topic_partition in PARTITIONS:
                _, stat = await zookeeper.get(zk_data.state_path(topic_partition))
                assert stat.version == 0

    run(test())
