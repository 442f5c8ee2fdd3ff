"""OffsetCommit, OffsetFetch, OffsetDelete and the expiry of offsets, on a broker with real logs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kio.schema.consumer_protocol_subscription.v0.data import ConsumerProtocolSubscription
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_offsets import GroupOffsets, OffsetAndMetadata
from nemesis.reference.coordinator.group.group_results import MemberIdentity
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.encoding import write_entity
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.group_node import GROUP, GroupNode, on_group_node

OTHER = TopicPartition("u", 1)
RETENTION = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 5_000}


def subscription(*topics: str) -> bytes:
    pieces = [b"\0\0"]
    write_entity(ConsumerProtocolSubscription(topics=topics, user_data=None), pieces)
    return b"".join(pieces)


def test_a_member_reads_what_it_has_committed(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        assert node.fetch() == (ErrorCode.none, -1)
        assert await node.commit(7, member) is ErrorCode.none
        assert node.fetch() == (ErrorCode.none, 7)
        assert await node.commit(5, member) is ErrorCode.none
        assert node.fetch() == (ErrorCode.none, 5), "the latest commit counts, not the largest"
        assert node.stored()[GROUP].offsets.get(TP) == node.group.offsets.get(TP)

    on_group_node(tmp_path, scenario)


def test_a_commit_counts_once_it_is_replicated(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(isr=(1, 2, 3))
        commit = node.commit(7)
        await asyncio.sleep(1)
        assert not commit.done()
        assert node.fetch() == (ErrorCode.none, -1)
        assert node.fetch(require_stable=True) == (ErrorCode.unstable_offset_commit, -1)
        assert await commit is ErrorCode.request_timed_out
        assert node.fetch(require_stable=True) == (ErrorCode.none, -1)

    on_group_node(tmp_path, scenario)


def test_what_is_refused_of_commits(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        assert await node.commit(1) is ErrorCode.not_coordinator
        await node.lead()
        first, second = await node.stable(2)
        assert await node.commit(1) is ErrorCode.unknown_member_id, "the group has members"
        node.coordinator.leave_group(GROUP, [MemberIdentity(second.member_id, None)])
        assert await node.commit(1, second) is ErrorCode.unknown_member_id
        assert await node.commit(1, first) is ErrorCode.none, "before it joins again"
        again = await node.join(first.member_id)
        assert await node.commit(1, first) is ErrorCode.illegal_generation
        assert await node.commit(1, again) is ErrorCode.rebalance_in_progress
        await node.sync(again)
        assert await node.commit(1, again, metadata="x" * 4) is ErrorCode.none
        assert await node.commit(1, again, metadata="x" * 5) is ErrorCode.offset_metadata_too_large

    on_group_node(tmp_path, scenario, **{"offset.metadata.max.bytes": 4})


def test_a_client_without_membership_commits_for_a_group_of_its_own(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        assert await node.commit(3) is ErrorCode.none
        assert node.fetch() == (ErrorCode.none, 3)
        assert node.group.state is GroupState.EMPTY
        assert node.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.none}
        assert node.fetch() == (ErrorCode.none, -1)
        assert node.stored() == {}

    on_group_node(tmp_path, scenario)


def test_a_group_with_members_is_not_deleted(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        assert node.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.group_id_not_found}
        (member,) = await node.stable()
        await node.commit(3, member)
        assert node.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.non_empty_group}
        node.coordinator.leave_group(GROUP, [MemberIdentity(member.member_id, None)])
        await asyncio.sleep(0.01)
        assert node.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.none}
        assert node.stored() == {}

    on_group_node(tmp_path, scenario)


def test_offsets_are_deleted_of_topics_that_no_member_consumes(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable(protocols=(("range", subscription(TP.topic)),))
        await node.commit(3, member)
        await node.commit(4, member, topic_partition=OTHER)
        error, errors = node.coordinator.delete_offsets(GROUP, [TP, OTHER])
        assert error is ErrorCode.none
        assert errors == {TP: ErrorCode.group_subscribed_to_topic, OTHER: ErrorCode.none}
        assert (node.fetch(), node.fetch(OTHER)) == ((ErrorCode.none, 3), (ErrorCode.none, -1))
        assert node.stored()[GROUP].offsets.partitions == (TP,)

    on_group_node(tmp_path, scenario)


def test_offsets_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit(3)
        await node.commit(4, topic_partition=OTHER)
        node.node.announce_deletion()
        assert (node.fetch(), node.fetch(OTHER)) == ((ErrorCode.none, -1), (ErrorCode.none, 4))
        assert node.stored()[GROUP].offsets.partitions == (OTHER,)

    on_group_node(tmp_path, scenario)


def test_the_offsets_of_an_empty_group_expire_and_the_group_with_them(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        await node.commit(3, member)
        for _ in range(11):
            await asyncio.sleep(9)
            assert node.heartbeat(member) is ErrorCode.none
        node.coordinator.leave_group(GROUP, [MemberIdentity(member.member_id, None)])
        await asyncio.sleep(55)
        assert node.fetch() == (ErrorCode.none, 3), "empty for less than the retention"
        await asyncio.sleep(15)
        assert node.fetch() == (ErrorCode.none, -1)
        assert node.stored() == {}

    on_group_node(tmp_path, scenario, **RETENTION)


def test_the_offsets_of_a_live_group_expire_where_it_does_not_consume(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable(protocols=(("range", subscription(TP.topic)),))
        await node.commit(3, member)
        await node.commit(4, member, topic_partition=OTHER)
        for _ in range(8):
            await asyncio.sleep(9)
            assert node.heartbeat(member) is ErrorCode.none
        assert (node.fetch(), node.fetch(OTHER)) == ((ErrorCode.none, 3), (ErrorCode.none, -1))

    on_group_node(tmp_path, scenario, **RETENTION)


def test_commits_that_complete_out_of_order_count_by_their_offsets_in_the_log() -> None:
    offsets = GroupOffsets()
    first, second = (OffsetAndMetadata(number, -1, "", 0) for number in (1, 2))
    offsets.prepare({TP: first})
    offsets.prepare({TP: second})
    offsets.complete({TP: second}, 11)
    assert not offsets.is_pending(TP)
    offsets.prepare({TP: first})
    offsets.complete({TP: first}, 10)
    assert offsets.get(TP) == second


def test_a_commit_of_what_was_deleted_meanwhile_does_not_count() -> None:
    offsets = GroupOffsets()
    commit = {TP: OffsetAndMetadata(1, -1, "", 0)}
    offsets.prepare(commit)
    assert offsets.remove([TP]) == ()
    offsets.complete(commit, 10)
    assert offsets.get(TP) is None
