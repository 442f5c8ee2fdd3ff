"""Elections and resignations: groups are loaded from the log, and given up with the partition."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.model import StopReplicaPartitionState
from nemesis.reference.protocol.records import new_batch
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.group_node import (
    GROUP,
    NUMBER,
    GroupNode,
    offsets_partition,
    on_group_node,
)

INSTANCE = "i-1"


def test_a_group_outlives_its_coordinator(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable(group_instance_id=INSTANCE)
        await node.commit(7, member)
        assert node.give_role(2, 1) is ErrorCode.none
        assert node.heartbeat(member, INSTANCE) is ErrorCode.not_coordinator
        await node.lead(2)
        assert node.group.state is GroupState.STABLE
        assert node.heartbeat(member, INSTANCE) is ErrorCode.none
        assert node.fetch() == (ErrorCode.none, 7)
        assert (await node.sync(member)).assignment == b"0"
        back = await node.join(group_instance_id=INSTANCE)
        assert (back.error, back.generation_id) == (ErrorCode.none, member.generation_id)

    on_group_node(tmp_path, scenario)


def test_a_member_that_was_loaded_and_does_not_live_fails(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.stable(session_timeout_ms=10_000)
        node.give_role(2, 1)
        await node.lead(2)
        await asyncio.sleep(9.9)
        assert len(node.group.members) == 1
        await asyncio.sleep(0.2)
        assert node.group.state is GroupState.EMPTY

    on_group_node(tmp_path, scenario)


def test_while_groups_are_loaded_clients_wait(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        node.give_role(2, 1)
        node.loading_may_go_on.clear()
        node.give_role(1, 2)
        await asyncio.sleep(0.1)
        loading = ErrorCode.coordinator_load_in_progress
        assert (await node.join()).error is loading
        assert await node.commit(1) is loading
        assert node.fetch() == (loading, -1)
        assert node.coordinator.describe_group(GROUP).error is loading
        assert node.coordinator.list_groups((), ()) == (loading, [])
        assert node.heartbeat(member) is ErrorCode.none, "its session begins later"
        assert (await node.sync(member)).error is ErrorCode.rebalance_in_progress
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert f"__consumer_offsets-{NUMBER}" in names
        node.loading_may_go_on.set()
        await asyncio.sleep(0.1)
        assert node.heartbeat(member) is ErrorCode.none
        assert node.fetch() == (ErrorCode.none, -1)

    on_group_node(tmp_path, scenario)


def test_a_late_load_has_no_effect(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        node.loading_may_go_on.clear()
        node.give_role(1, 0)
        await asyncio.sleep(0.1)
        node.give_role(2, 1)
        node.loading_may_go_on.set()
        await asyncio.sleep(0.1)
        assert (await node.join()).error is ErrorCode.not_coordinator
        node.coordinator.on_election(NUMBER, 0)
        await asyncio.sleep(0.1)
        assert (await node.join()).error is ErrorCode.not_coordinator

    on_group_node(tmp_path, scenario)


def test_a_late_resignation_has_no_effect(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(3)
        await node.stable()
        node.coordinator.on_resignation(NUMBER, 2)
        assert node.group.state is GroupState.STABLE

    on_group_node(tmp_path, scenario)


def test_an_append_of_an_older_epoch_has_no_effect(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        former = node.group if (await node.join()) else None
        assert former is not None
        node.give_role(2, 1)
        node.give_role(1, 2)  # and its groups are not loaded yet
        log = node.node.logs.get_log(offsets_partition())
        assert log is not None
        end, errors = log.log_end_offset, list[ErrorCode]()
        node.groups.store_group(former, {}, errors.append)
        assert errors == [ErrorCode.not_coordinator]
        assert log.log_end_offset == end

    on_group_node(tmp_path, scenario)


def test_a_log_is_neither_read_nor_written_in_another_epoch(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(2)
        partition, records = offsets_partition(), new_batch([(b"\0\2\0\1g", None)], 0)
        for epoch in (1, 3):
            errors: list[ErrorCode] = []
            node.replicas.append(
                partition,
                epoch,
                records,
                timeout_ms=1,
                on_appended=lambda result, errors=errors: errors.append(result.error),  # type: ignore[misc]
            )
            assert errors == [ErrorCode.not_leader_or_follower]
            assert not node.replicas.append_unacknowledged(partition, epoch, records)
            assert node.replicas.read(partition, epoch, 0, 1) is None
        assert node.replicas.append_unacknowledged(partition, 2, records)
        read = node.replicas.read(partition, 2, 0, 1)
        assert read is not None
        assert (read.next_offset, read.is_end) == (1, True)

    on_group_node(tmp_path, scenario)


def test_what_waits_is_answered_when_the_partition_is_lost(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, second = await node.stable(2)
        again = node.join(second.member_id, protocols=(("range", b"x"),))
        commit = node.commit(1, first)
        node.give_role(2, 1)
        assert again.result().error is ErrorCode.not_coordinator
        assert (await commit) is ErrorCode.none, "it was committed in the epoch"

    on_group_node(tmp_path, scenario)


def test_a_commit_that_is_not_replicated_is_refused_when_the_partition_is_lost(
    tmp_path: Path,
) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(isr=(1, 2, 3))
        commit = node.commit(1)
        sync = node.sync(await node.join(), {})
        await asyncio.sleep(0.1)
        node.give_role(2, 1, isr=(2, 3))
        assert commit.result() is sync.result().error is ErrorCode.not_coordinator

    on_group_node(tmp_path, scenario)


def test_a_leader_that_is_elected_again_goes_on_with_its_groups(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        waiting = node.join()
        node.give_role(1, 1)
        again = await node.join(member.member_id)
        assert (again.error, (await waiting).error) == (ErrorCode.none, ErrorCode.none)
        assert await node.commit(2, again) is ErrorCode.rebalance_in_progress
        await node.sync(again)
        assert await node.commit(2, again) is ErrorCode.none

    on_group_node(tmp_path, scenario)


def test_a_deleted_partition_is_given_up_and_may_come_back(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(4)
        await node.stable()
        state = StopReplicaPartitionState(offsets_partition(), 5, delete_partition=True)
        node.node.manager.stop_replicas(3, 1, 50, [state])
        assert (await node.join()).error is ErrorCode.not_coordinator
        await node.lead(6)
        assert node.groups.get_group(GROUP) is None

    on_group_node(tmp_path, scenario)


def test_a_failed_log_directory_gives_its_partitions_up(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        error = KafkaStorageError("it is broken", failed_log_dir=str(tmp_path))
        node.node.manager.storage_failures.note(error)
        await asyncio.sleep(0.01)
        assert node.heartbeat(member) is ErrorCode.not_coordinator

    on_group_node(tmp_path, scenario)


def test_a_log_that_cannot_be_read_is_not_coordinated(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        node.give_role(1, 0)
        partition = node.node.manager.hosted.partition(offsets_partition())
        broken = new_batch([(b"\0\2\0\1g", b"\0\3")], 0)
        partition.append_as_leader(broken, 0, AppendOrigin.COORDINATOR)
        await asyncio.sleep(0.1)
        assert (await node.join()).error is ErrorCode.not_coordinator

    on_group_node(tmp_path, scenario)


def test_clients_may_not_write_the_offsets_topic(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        records, partition = new_batch([(b"key", b"value")], 0), offsets_partition()
        results = await node.node.produce(records, topic_partitions=(partition, TP))
        assert results[partition].error is ErrorCode.invalid_topic_exception
        assert results[TP].error is not ErrorCode.invalid_topic_exception

    on_group_node(tmp_path, scenario)


def test_after_shutdown_no_request_is_answered_as_if_it_were_up(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        waiting = node.join()
        node.coordinator.shutdown()
        assert waiting.result().error is ErrorCode.not_coordinator
        assert node.heartbeat(member) is ErrorCode.coordinator_not_available
        node.give_role(1, 1)
        await asyncio.sleep(0.1)
        assert node.heartbeat(member) is ErrorCode.coordinator_not_available

    on_group_node(tmp_path, scenario)
