"""Static members (KIP-345): a member that comes back under its instance id."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_results import MemberIdentity
from nemesis.reference.coordinator.group.group_states import GroupState
from tests.reference.coordinator.group_node import GROUP, GroupNode, on_group_node

INSTANCE = "i-1"


def test_a_static_member_comes_back_without_a_rebalance(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable(group_instance_id=INSTANCE)
        assert first.member_id.startswith(f"{INSTANCE}-")
        back = await node.join(group_instance_id=INSTANCE)
        assert (back.error, back.generation_id) == (ErrorCode.none, first.generation_id)
        assert back.member_id != first.member_id
        assert back.leader_id == back.member_id
        assert back.skip_assignment
        synced = await node.sync(back, group_instance_id=INSTANCE)
        assert synced.assignment == b"0", "its assignment is that of its former process"
        assert node.group.state is GroupState.STABLE
        assert node.heartbeat(first, INSTANCE) is ErrorCode.fenced_instance_id
        assert node.heartbeat(back, INSTANCE) is ErrorCode.none
        assert list(node.stored()[GROUP].members) == [back.member_id]

    on_group_node(tmp_path, scenario)


def test_an_old_client_that_leads_is_answered_as_if_its_former_id_led(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable(group_instance_id=INSTANCE)
        back = await node.join(group_instance_id=INSTANCE, supports_skipping_assignment=False)
        assert (back.leader_id, back.members) == (first.member_id, ())

    on_group_node(tmp_path, scenario)


def test_a_static_member_that_changes_the_protocol_makes_the_group_rebalance(
    tmp_path: Path,
) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable(group_instance_id=INSTANCE, protocols=(("a", b""), ("b", b"")))
        back = await node.join(group_instance_id=INSTANCE, protocols=(("b", b""),))
        assert back.generation_id == first.generation_id + 1
        assert back.protocol_name == "b"

    on_group_node(tmp_path, scenario)


def test_two_processes_of_one_instance_fence_each_other(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        dynamic = await node.join()
        await node.sync(dynamic)
        waiting = node.join(group_instance_id=INSTANCE)
        second = node.join(group_instance_id=INSTANCE)
        assert waiting.result().error is ErrorCode.fenced_instance_id
        assert not second.done()
        await node.join(dynamic.member_id)
        assert (await second).error is ErrorCode.none
        former = await node.join(waiting.result().member_id, group_instance_id=INSTANCE)
        assert former.error is ErrorCode.fenced_instance_id

    on_group_node(tmp_path, scenario)


def test_a_static_member_stays_through_a_rebalance_that_it_misses(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (static,) = await node.stable(
            group_instance_id=INSTANCE, rebalance_timeout_ms=2_000, session_timeout_ms=60_000
        )
        joined = await node.join(rebalance_timeout_ms=2_000)
        assert set(node.group.members) == {static.member_id, joined.member_id}
        assert joined.leader_id == joined.member_id, "the leader has not joined"
        assert {member.group_instance_id for member in joined.members} == {None, INSTANCE}

    on_group_node(tmp_path, scenario)


def test_an_administrator_takes_a_static_member_out_by_its_instance_id(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.stable(group_instance_id=INSTANCE)
        left = node.coordinator.leave_group(GROUP, [MemberIdentity("", INSTANCE)])
        assert [error for _, error in left.members] == [ErrorCode.none]
        await asyncio.sleep(0.01)
        assert node.group.state is GroupState.EMPTY
        again = node.coordinator.leave_group(GROUP, [MemberIdentity("", INSTANCE)])
        assert [error for _, error in again.members] == [ErrorCode.unknown_member_id]

    on_group_node(tmp_path, scenario)


def test_what_is_not_stored_does_not_replace_the_former_member(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(isr=(1,))
        (first,) = await node.stable(group_instance_id=INSTANCE)
        assert node.give_role(1, 1, isr=(1, 2, 3)) is ErrorCode.none
        back = await node.join(group_instance_id=INSTANCE)  # the followers are silent
        assert back.error is ErrorCode.rebalance_in_progress
        assert node.group.static_members == {INSTANCE: first.member_id}
        assert node.heartbeat(first, INSTANCE) is ErrorCode.none

    on_group_node(tmp_path, scenario)


def test_a_static_member_that_comes_back_while_others_are_assigned_is_one_member(
    tmp_path: Path,
) -> None:
    """KAFKA-8500: its member id is another one in every state of the group, and the group does not wait for the old."""

    async def scenario(node: GroupNode) -> None:
        await node.lead()
        dynamic = await node.join()
        await node.sync(dynamic)
        joining = node.join(group_instance_id=INSTANCE)
        dynamic = await node.join(dynamic.member_id)
        first = await joining
        assert node.group.state is GroupState.COMPLETING_REBALANCE
        waiting = node.sync(first, group_instance_id=INSTANCE)
        again = node.join(group_instance_id=INSTANCE)
        assert waiting.result().error is ErrorCode.fenced_instance_id
        dynamic = await node.join(dynamic.member_id)
        second = await again
        assert second.generation_id == dynamic.generation_id == first.generation_id + 1
        assert set(node.group.members) == {dynamic.member_id, second.member_id}
        assert node.group.static_members == {INSTANCE: second.member_id}

    on_group_node(tmp_path, scenario)


def test_the_next_coordinator_knows_a_static_member_under_its_latest_member_id(
    tmp_path: Path,
) -> None:
    """KAFKA-10284: the member id that a static member has in a stable group is stored, with its assignment."""

    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable(group_instance_id=INSTANCE)
        back = await node.join(group_instance_id=INSTANCE)
        assert node.give_role(2, 1) is ErrorCode.none
        assert node.heartbeat(back, INSTANCE) is ErrorCode.not_coordinator
        await node.lead(2)
        assert node.heartbeat(first, INSTANCE) is ErrorCode.fenced_instance_id
        assert node.heartbeat(back, INSTANCE) is ErrorCode.none
        assert node.group.members[back.member_id].assignment == b"0"
        assert node.group.generation_id == back.generation_id

    on_group_node(tmp_path, scenario)
