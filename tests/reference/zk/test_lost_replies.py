"""Writes that ZooKeeper applied and whose replies were lost: each recognises itself, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from nemesis.reference.model import Broker, LeaderAndIsr
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import (
    BadVersionError,
    ControllerMovedError,
    NodeExistsError,
)
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.partition_states import CommittedState
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from tests.reference.session_expiry import expire
from tests.reference.zk.losing_client import STATE, TP, losing, office, run


def test_an_election_that_was_won_unheard_is_won(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            assert await zk_client.election.get_controller_epoch() is None
            await zookeeper.create(zk_data.CONTROLLER_EPOCH, b"0")
            zookeeper.lose_at = zk_data.CONTROLLER_EPOCH
            won = await zk_client.election.register_controller_and_increment_controller_epoch(1, 0)
            _, stat = await zookeeper.get(zk_data.CONTROLLER_EPOCH)
            assert won.fence == ControllerFence(1, 1)
            assert won.zxid == stat.mzxid

    run(test())


def test_an_election_lost_to_an_earlier_session_of_the_same_broker_is_lost(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (_, old), losing(zookeeper_address) as (_, new):
            await old.election.register_controller_and_increment_controller_epoch(1, 0)
            with pytest.raises(ControllerMovedError):
                await new.election.register_controller_and_increment_controller_epoch(1, 0)

    run(test())


def test_a_created_state_is_adopted(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            zookeeper.lose_at = zk_data.state_path(TP)
            results = await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            _, stat = await zookeeper.get(zk_data.state_path(TP))
            committed = results[TP]
            assert isinstance(committed, CommittedState)
            assert committed.zxid == stat.mzxid
            assert committed.state.leader_and_isr == STATE

    run(test())


def test_somebody_elses_state_is_not_adopted(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (_, zk_client):
            fence = await office(zk_client)
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            other = LeaderAndIsr(leader=2, leader_epoch=0, isr=(2,))
            results = await zk_client.states.create_topic_partition_states({TP: other}, fence)
            assert isinstance(results[TP], NodeExistsError)

    run(test())


def test_an_update_that_was_applied_unheard_is_committed_once(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            zookeeper.lose_at = zk_data.state_path(TP)
            results = await zk_client.states.update_leader_and_isr({TP: STATE}, fence)
            committed = results[TP]
            assert isinstance(committed, CommittedState)
            assert committed.state.leader_and_isr.partition_epoch == 1
            # Without a lost reply the same conflict is a conflict, even with the same content.
            results = await zk_client.states.update_leader_and_isr({TP: STATE}, fence)
            assert isinstance(results[TP], BadVersionError)

    run(test())


def test_an_isr_that_its_leader_wrote_unheard_is_committed_once(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            write = zk_client.replication_utils.update_leader_and_isr
            zookeeper.lose_at = zk_data.state_path(TP)
            committed = await write(TP, replace(STATE, isr=(1,)), 1)
            assert committed == replace(STATE, isr=(1,), partition_epoch=1)
            [state] = (await zk_client.states.get_topic_partition_states([TP])).values()
            assert (state.leader_and_isr, state.controller_epoch) == (committed, 1)
            # What it knew when it wrote that is of the past now, whatever it wants.
            assert await write(TP, STATE, 1) is None

    run(test())


def test_a_leader_whose_state_was_replaced_or_deleted_writes_nothing(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            write = zk_client.replication_utils.update_leader_and_isr
            assert await write(TP, STATE, 1) is None
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            elected = replace(STATE, leader=2, leader_epoch=1)
            await zk_client.states.update_leader_and_isr({TP: elected}, fence)
            before = await zookeeper.get(zk_data.state_path(TP))
            assert await write(TP, replace(STATE, isr=(1,)), 1) is None
            assert await zookeeper.get(zk_data.state_path(TP)) == before

    run(test())


def test_a_leader_writes_in_its_next_session_what_it_could_not_in_the_last(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            session = zookeeper.session_id
            await asyncio.to_thread(expire, zookeeper_address, session)
            shrunk = replace(STATE, isr=(1,))
            committed = await zk_client.replication_utils.update_leader_and_isr(TP, shrunk, 1)
            assert committed == replace(shrunk, partition_epoch=1)
            assert zookeeper.session_id != session

    run(test())


def test_a_write_under_an_old_epoch_changes_nothing(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            fence = await office(zk_client)
            await zk_client.states.create_topic_partition_states({TP: STATE}, fence)
            await zookeeper.set_data(zk_data.CONTROLLER_EPOCH, b"2")
            before = await zookeeper.get(zk_data.state_path(TP))
            with pytest.raises(ControllerMovedError):
                await zk_client.states.update_leader_and_isr({TP: STATE}, fence)
            with pytest.raises(ControllerMovedError):
                await zk_client.election.delete_controller(fence)
            assert await zookeeper.get(zk_data.state_path(TP)) == before
            assert await zookeeper.exists(zk_data.CONTROLLER) is not None

    run(test())


def test_a_registration_that_was_applied_unheard_is_ones_own(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            zookeeper.lose_at = zk_data.broker_path(1)
            stat = await zk_client.brokers.register_broker(Broker.at(1, "h", 1), 0)
            assert stat.ephemeral_owner == zookeeper.session_id
            assert await zookeeper.exists(zk_data.broker_path(1)) == stat

    run(test())


def test_a_topic_that_was_created_unheard_is_ones_own(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            topic = TopicAssignment("t", UUID(int=1), {0: ReplicaAssignment((1,))})
            zookeeper.lose_at = zk_data.topic_path("t")
            await zk_client.topics.create_topic(topic, {})
            assert await zk_client.topics.get_replica_assignments(["t"]) == [topic]
            other = TopicAssignment("t", UUID(int=2), topic.partitions)
            with pytest.raises(NodeExistsError):
                await zk_client.topics.create_topic(other, {})

    run(test())


@pytest.mark.parametrize("is_lost", [True, False], ids=["own reply lost", "another's same words"])
def test_growth_is_ones_own_only_if_it_was_sent_again(
    zookeeper_address: str, *, is_lost: bool
) -> None:
    """Two requests may choose the same replicas; only one of them has added the partition."""
    grown = {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 1))}
    sizes: list[int] = []

    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            path = zk_data.topic_path("t")
            first = TopicAssignment("t", None, {0: grown[0]})
            await zookeeper.create(path, zk_data.encode_topic(first))

            def choose(present: TopicAssignment) -> dict[int, ReplicaAssignment]:
                sizes.append(len(present.partitions))
                return {} if len(present.partitions) > 1 else {1: grown[1]}

            if is_lost:
                zookeeper.lose_at = path
                await zk_client.topics.add_partitions("t", choose)
                assert sizes == [1]
            else:
                await asyncio.gather(
                    *(zk_client.topics.add_partitions("t", choose) for _ in range(2))
                )
                assert sizes == [1, 1, 2]
            zookeeper.lose_at = ""
            data, _ = await zookeeper.get(path)
            assert zk_data.decode_topic("t", data).partitions == grown

    run(test())
