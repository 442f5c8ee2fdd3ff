"""Elections that are asked for: by the znode, by a client, by the balance of preferred leaders."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import AlterPartitionItem
from nemesis.reference.controller.controller_events import (
    AutoPreferredReplicaLeaderElection,
    ElectionType,
    ReplicaLeaderElection,
)
from nemesis.reference.model import ApiError, LeaderRecoveryState, TopicPartition
from nemesis.reference.zk import preferred_replica_election, zk_data
from tests.reference.controller.cluster import TOPIC_ID, Node, create_topic, nodes, run, until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def elect(
    node: Node, *partitions: TopicPartition, how: ElectionType = ElectionType.PREFERRED
) -> dict[TopicPartition, int | ErrorCode]:
    results = await node.controller.ask(ReplicaLeaderElection(partitions, how))
    return {tp: r.code if isinstance(r, ApiError) else r for tp, r in results.items()}


async def set_isr(controller: Node, leader: Node, *isr: int) -> None:
    """Have the leader of t-0 ask for another ISR."""
    state = (await controller.state("t", 0)).leader_and_isr
    item = AlterPartitionItem(
        None,
        TOPIC_ID,
        0,
        state.leader_epoch,
        tuple((member, -1) for member in isr),
        LeaderRecoveryState.RECOVERED,
        state.partition_epoch,
    )
    error, (answer,) = await controller.controller.alter_partitions(
        leader.controller.broker_id, leader.controller.broker_epoch, [item]
    )
    assert error is ErrorCode.none
    assert not isinstance(answer, ErrorCode)


async def led_by_another(first: Node, second: Node, address: str) -> Node:
    """Topic t on (2, 1), whose broker 2 was away and is back in the ISR; returns the new node 2. Broker 1 leads."""
    await create_topic(first, "t", (2, 1))
    await until(lambda: len(first.elected("t", 0)) == 1)
    await second.stop()
    await until(lambda: first.controller.context.live_broker_ids == [1])
    await until(lambda: first.controller.context.leader(T0) == 1)
    again = await Node(address, 2).start()
    await until(lambda: first.controller.context.live_broker_ids == [1, 2])
    await set_isr(first, first, 1, 2)
    return again


def test_the_preferred_replica_leads_again_when_asked(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            again = await led_by_another(first, second, zookeeper_address)
            try:
                before = (await first.state("t", 0)).leader_and_isr
                assert await elect(first, T0) == {T0: 2}
                after = (await first.state("t", 0)).leader_and_isr
                assert (after.leader, after.isr) == (2, before.isr)
                assert after.leader_epoch == before.leader_epoch + 1
                assert first.elected("t", 0)[-1][:2] == ("preferred", 2)
                assert await elect(first, T0) == {T0: ErrorCode.election_not_needed}
                assert (await first.state("t", 0)).leader_and_isr == after
            finally:
                await again.stop()

    run(test())


def test_each_partition_gets_its_own_answer(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (2, 1), (1, 3))
            await until(lambda: len(first.elected("t", 1)) == 1)
            await second.stop()
            await until(lambda: first.controller.context.leader(T0) == 1)
            unknown = TopicPartition("absent", 0)
            assert await elect(first, T0, T1, unknown) == {
                T0: ErrorCode.preferred_leader_not_available,
                T1: ErrorCode.election_not_needed,
                unknown: ErrorCode.unknown_topic_or_partition,
            }

    run(test())


def test_a_topic_that_is_being_deleted_is_not_elected_for(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (2, 1))
            await until(lambda: len(first.elected("t", 0)) == 1)
            first.controller.context.topics_to_be_deleted["t"] = None
            assert await elect(first, T0) == {T0: ErrorCode.invalid_topic_exception}

    run(test())


def test_who_is_not_the_controller_elects_nobody(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (_, second):
            assert await elect(second, T0, T1) == dict.fromkeys((T0, T1), ErrorCode.not_controller)

    run(test())


def test_an_operator_may_demand_an_unclean_election(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 1), (3, 2))
            await until(lambda: len(first.elected("t", 1)) == 1)
            await set_isr(first, second, 2)
            await second.stop()
            await until(lambda: first.controller.context.leader(T0) == -1)
            how = ElectionType.UNCLEAN
            assert await elect(first, T0, T1, how=how) == {T0: 1, T1: ErrorCode.election_not_needed}
            state = (await first.state("t", 0)).leader_and_isr
            assert (state.leader, state.isr) == (1, (1,))
            assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING
            await third.stop()
            await until(lambda: first.controller.context.leader(T1) == -1)
            assert await elect(first, T1, how=how) == {T1: ErrorCode.eligible_leaders_not_available}

    run(test())


def test_the_znode_asks_for_preferred_leaders_and_is_deleted(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            again = await led_by_another(first, second, zookeeper_address)
            try:
                data = preferred_replica_election.encode([T0, TopicPartition("absent", 9)])
                for _ in range(2):  # The watch is set again after the first time.
                    await again.zookeeper.create(zk_data.PREFERRED_REPLICA_ELECTION, data)
                    while await again.zookeeper.exists(zk_data.PREFERRED_REPLICA_ELECTION):
                        await first.controller.event_manager.put(
                            AutoPreferredReplicaLeaderElection()
                        ).await_over()
                    assert (await first.state("t", 0)).leader_and_isr.leader == 2
            finally:
                await again.stop()

    run(test())


def test_a_znode_that_cannot_be_read_is_logged_and_deleted(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            for data in (b"no JSON", b"[]", b'{"version":1}', b'{"partitions":[{"topic":"t"}]}'):
                await second.zookeeper.create(zk_data.PREFERRED_REPLICA_ELECTION, data)
                while await second.zookeeper.exists(zk_data.PREFERRED_REPLICA_ELECTION):
                    await first.controller.event_manager.put(
                        AutoPreferredReplicaLeaderElection()
                    ).await_over()
            assert first.controller.is_active

    run(test())
    assert "no preferred replica election" in caplog.text
    assert "no JSON" in caplog.text


def test_a_new_controller_goes_on_with_the_znode(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3))
            await until(lambda: len(first.elected("t", 0)) == 1)
            await second.stop()
            await until(lambda: first.controller.context.leader(T0) == 3)
            again = await Node(zookeeper_address, 2).start()
            try:
                await until(lambda: first.controller.context.live_broker_ids == [1, 2, 3])
                await set_isr(first, third, 3, 2)
                await first.controller.event_manager.close()  # It will not see what is asked for.
                data = preferred_replica_election.encode([T0])
                await again.zookeeper.create(zk_data.PREFERRED_REPLICA_ELECTION, data)
                assert (await third.state("t", 0)).leader_and_isr.leader == 3
                await first.stop()
                await until(lambda: again.controller.is_active or third.controller.is_active)
                heir = again if again.controller.is_active else third
                await until(lambda: heir.elected("t", 0)[-1:] != [])
                await until(lambda: heir.controller.context.leader(T0) == 2)
                assert heir.elected("t", 0)[-1][0] == "preferred"
                while await heir.zookeeper.exists(zk_data.PREFERRED_REPLICA_ELECTION):
                    await heir.controller.event_manager.put(
                        AutoPreferredReplicaLeaderElection()
                    ).await_over()
            finally:
                await again.stop()

    run(test())


def test_the_balance_elects_where_too_many_are_led_by_others(zookeeper_address: str) -> None:
    async def balanced(percentage: int) -> int:
        topic = f"t{percentage}"
        properties = {"leader.imbalance.per.broker.percentage": percentage}
        async with nodes(zookeeper_address, 1, 2, **properties) as (first, second):
            await create_topic(first, topic, (2, 1), (2,), (1, 2))
            await until(lambda: len(first.elected(topic, 2)) == 1)
            await second.stop()
            moved = TopicPartition(topic, 0)
            await until(lambda: first.controller.context.leader(moved) == 1)
            again = await Node(zookeeper_address, 2).start()
            try:
                await until(lambda: first.controller.context.live_broker_ids == [1, 2])
                await until(lambda: first.controller.context.leader(TopicPartition(topic, 1)) == 2)
                context = first.controller.context
                state = context.leadership[moved].leader_and_isr
                item = AlterPartitionItem(
                    None,
                    TOPIC_ID,
                    0,
                    state.leader_epoch,
                    ((1, -1), (2, -1)),
                    LeaderRecoveryState.RECOVERED,
                    state.partition_epoch,
                )
                await first.controller.alter_partitions(1, first.controller.broker_epoch, [item])
                look = first.controller.event_manager.put(AutoPreferredReplicaLeaderElection())
                await look.await_over()
                return context.leader(moved)
            finally:
                await again.stop()

    async def test() -> None:
        # One of the two partitions that prefer broker 2 is led by another: 50 %.
        assert await balanced(50) == 1

    run(test())

    async def too_many() -> None:
        assert await balanced(49) == 2

    run(too_many())
