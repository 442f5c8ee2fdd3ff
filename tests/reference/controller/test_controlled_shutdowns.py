"""A broker asks to leave: who leads afterwards, who is told what, and when it is refused."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import AlterPartitionItem
from nemesis.reference.controller.controller_events import ControlledShutdown
from nemesis.reference.model import LeaderRecoveryState, TopicPartition
from tests.reference.controller.cluster import TOPIC_ID, Node, create_topic, nodes, run, until


async def shut_down(controller: Node, leaving: Node) -> tuple[ErrorCode, list[TopicPartition]]:
    return await controller.controller.ask(
        ControlledShutdown(leaving.controller.broker_id, leaving.controller.broker_epoch)
    )


def test_its_partitions_are_led_by_others_before_it_goes(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (2, 3, 1), (3, 2), (2,))
            await until(lambda: len(first.elected("t", 2)) == 1)
            assert await shut_down(first, second) == (ErrorCode.none, [])
            led, followed, alone = [(await first.state("t", p)).leader_and_isr for p in range(3)]
            assert (led.leader, led.isr, led.leader_epoch) == (3, (3, 1), 1)
            assert (followed.leader, followed.isr, followed.leader_epoch) == (3, (3,), 1)
            assert (alone.leader, alone.isr, alone.leader_epoch) == (2, (2,), 0)
            assert [how for how, *_ in first.elected("t", 0)] == ["new", "controlled-shutdown"]
            assert [how for how, *_ in first.elected("t", 1)] == ["new", "remove-from-isr"]
            await until(lambda: len(first.wire.to(2, "StopReplica")) == 2)
            stopped = first.wire.to(2, "StopReplica")[0]
            states = [(t.topic_name, p) for t in stopped.topic_states for p in t.partition_states]
            assert [(n, s.partition_index, s.delete_partition) for n, s in states] == [
                ("t", 1, False)
            ]
            assert first.controller.context.live_or_shutting_down_broker_ids == [1, 2, 3]
            assert first.controller.context.live_broker_ids == [1, 3]

    run(test())


def test_what_nobody_else_can_lead_is_the_answer(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3))
            await until(lambda: len(first.elected("t", 0)) == 1)
            assert await shut_down(first, third) == (ErrorCode.none, [])
            before = await first.state("t", 0)
            assert before.leader_and_isr.isr == (2,)
            assert await shut_down(first, second) == (ErrorCode.none, [TopicPartition("t", 0)])
            assert await first.state("t", 0) == before

    run(test())


def test_a_broker_that_leaves_does_not_join_an_isr(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3))
            await until(lambda: len(first.elected("t", 0)) == 1)
            await shut_down(first, third)
            state = (await first.state("t", 0)).leader_and_isr
            item = AlterPartitionItem(
                None,
                TOPIC_ID,
                0,
                state.leader_epoch,
                ((2, -1), (3, -1)),
                LeaderRecoveryState.RECOVERED,
                state.partition_epoch,
            )
            _, answers = await first.controller.alter_partitions(
                2, second.controller.broker_epoch, [item]
            )
            assert answers == [ErrorCode.ineligible_replica]

    run(test())


def test_an_earlier_life_an_unknown_broker_and_another_controller_are_refused(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            ask = first.controller.ask
            old = second.controller.broker_epoch - 1
            assert await ask(ControlledShutdown(2, old)) == (ErrorCode.stale_broker_epoch, [])
            assert await ask(ControlledShutdown(9, -1)) == (ErrorCode.broker_not_available, [])
            assert first.controller.context.shutting_down_broker_ids == set()
            refused = await shut_down(second, first)
            assert refused == (ErrorCode.stale_controller_epoch, [])
            assert await ask(ControlledShutdown(2, -1)) == (ErrorCode.none, [])

    run(test())


def test_one_that_comes_back_is_alive_again(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await shut_down(first, second)
            await second.stop()
            await until(lambda: first.controller.context.live_or_shutting_down_broker_ids == [1])
            again = await Node(zookeeper_address, 2).start()
            try:
                await until(lambda: first.controller.context.live_broker_ids == [1, 2])
            finally:
                await again.stop()

    run(test())


def test_a_new_controller_knows_of_no_shutdown(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3))
            await until(lambda: len(first.elected("t", 0)) == 1)
            await shut_down(first, second)
            await first.stop()
            await until(lambda: second.controller.is_active or third.controller.is_active)
            heir = second if second.controller.is_active else third
            await until(lambda: heir.controller.context.live_broker_ids == [2, 3])
            assert await shut_down(heir, second) == (ErrorCode.none, [])
            assert (await heir.state("t", 0)).leader_and_isr.leader == 3

    run(test())
