"""Leaders that have written ISRs themselves: what the controller learns, whom it tells, what comes of their znodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemesis.reference.model import TopicPartition
from nemesis.reference.zk import isr_change_notifications, zk_data
from nemesis.reference.zk.errors import ZnodeFormatError
from tests.reference.controller.cluster import Node, create_topic, nodes, run, until

TP = TopicPartition("t", 0)


async def write_isr(node: Node, *isr: int) -> None:
    """As the leader does it; the controller is not told."""
    state = await node.state("t", 0)
    wanted = replace(state.leader_and_isr, isr=isr)
    write = node.zk_client.replication_utils.update_leader_and_isr
    assert await write(TP, wanted, state.controller_epoch) is not None


async def until_no_notifications(node: Node) -> None:
    while await node.zk_client.isr_change_notifications.get_all():
        pass


def known_isr(node: Node) -> tuple[int, ...] | None:
    known = node.controller.context.leadership.get(TP)
    return None if known is None else known.leader_and_isr.isr


def isrs_sent(node: Node, broker_id: int) -> list[tuple[int, ...]]:
    """The ISRs of the partition that UpdateMetadata has told a broker of."""
    return [
        tuple(partition.isr)
        for request in node.wire.to(broker_id, "UpdateMetadata")
        for topic in request.topic_states
        for partition in topic.partition_states
    ]


def test_the_controller_reads_the_states_and_tells_everybody(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (2, 3))
            await until(lambda: known_isr(first) == (2, 3))
            await write_isr(second, 2)
            await second.zk_client.isr_change_notifications.propagate_isr_changes([TP])
            await until(lambda: known_isr(first) == (2,))
            for broker_id in (1, 2, 3):
                await until(lambda to=broker_id: isrs_sent(first, to)[-1:] == [(2,)])  # type: ignore[misc]
            await until_no_notifications(second)
            # The leader knows, and followers need not.
            assert len(first.wire.to(2, "LeaderAndIsr")) == 1

    run(test())


def test_an_election_does_not_rest_on_an_isr_of_which_nobody_has_told_yet(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3, 1))
            await until(lambda: known_isr(first) == (2, 3, 1))
            await write_isr(second, 2, 1)
            await second.stop()
            await until(lambda: len(first.elected("t", 0)) == 2)
            state = (await third.state("t", 0)).leader_and_isr
            assert (state.leader, state.isr) == (1, (1,))

    run(test())


def test_what_cannot_be_read_or_is_of_no_partition_is_logged_and_deleted(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2, 1))
            await until(lambda: known_isr(first) == (2, 1))
            path = f"{zk_data.ISR_CHANGE_NOTIFICATION}/isr_change_"
            for foreign in (b"no JSON", b'{"version":1}', b'{"version":1,"partitions":[7]}'):
                await second.zookeeper.create(path, foreign, sequential=True)
            await write_isr(second, 2)
            ghost = TopicPartition("ghost", 0)
            await second.zk_client.isr_change_notifications.propagate_isr_changes([ghost, TP])
            await until_no_notifications(second)
            await until(lambda: known_isr(first) == (2,))
            assert ghost not in first.controller.context.leadership
            assert first.controller.is_active

    run(test())
    for word in ("no JSON", "'partitions'", "[7]", "ghost"):
        assert word in caplog.text


def test_a_new_controller_forgets_what_was_said_to_the_old_one_and_reads_all_states(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2, 1))
            await until(lambda: known_isr(first) == (2, 1))
            await first.controller.event_manager.close()  # It hears nothing any more.
            await write_isr(second, 2)
            await second.zk_client.isr_change_notifications.propagate_isr_changes([TP])
            assert len(await second.zk_client.isr_change_notifications.get_all()) == 1
            await first.stop()
            await until(lambda: second.controller.is_active)
            await until_no_notifications(second)
            await until(lambda: known_isr(second) == (2,))

    run(test())


def test_the_znode_holds_what_kafka_writes() -> None:
    data = isr_change_notifications.encode([TopicPartition("a", 1), TopicPartition("b", 0)])
    assert data == (
        b'{"version":1,"partitions":[{"topic":"a","partition":1},{"topic":"b","partition":0}]}'
    )
    partitions = isr_change_notifications.decode("/path", data)
    assert partitions == [TopicPartition("a", 1), TopicPartition("b", 0)]
    with pytest.raises(ZnodeFormatError, match="/path is not a list of partitions"):
        isr_change_notifications.decode("/path", b'{"version":1,"partitions":[{"topic":"a"}]}')
