"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on a broker with real logs; the clock is the loop's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_results import MemberIdentity
from nemesis.reference.coordinator.group.group_states import GroupState
from tests.reference.coordinator.group_node import GROUP, GroupNode, on_group_node
from tests.reference.server.one_broker import time


def test_the_first_member_leads_and_gets_what_it_assigns(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        joined = await node.join()
        assert (joined.error, joined.generation_id) == (ErrorCode.none, 1)
        assert joined.leader_id == joined.member_id
        assert joined.member_id.startswith("c-")
        assert [member.metadata for member in joined.members] == [b"r"]
        assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
        synced = await node.sync(joined, {joined.member_id: b"all"})
        assert (synced.error, synced.assignment) == (ErrorCode.none, b"all")
        assert node.group.state is GroupState.STABLE
        assert node.heartbeat(joined) is ErrorCode.none
        (member,) = node.stored()[GROUP].members.values()
        assert (member.member_id, member.assignment) == (joined.member_id, b"all")

    on_group_node(tmp_path, scenario)


def test_a_second_member_makes_the_first_one_join_again(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable()
        second = node.join()
        assert node.heartbeat(first) is ErrorCode.rebalance_in_progress
        again = await node.join(first.member_id)
        joined = await second
        assert again.generation_id == joined.generation_id == 2
        assert again.leader_id == joined.leader_id == first.member_id
        assert len(again.members) == 2
        assert joined.members == ()
        waiting = node.sync(joined)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        leader = await node.sync(again, {again.member_id: b"0", joined.member_id: b"1"})
        assert (leader.assignment, (await waiting).assignment) == (b"0", b"1")

    on_group_node(tmp_path, scenario)


def test_a_member_that_the_leader_leaves_out_has_an_empty_assignment(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable()
        second = node.join()
        again = await node.join(first.member_id)
        waiting = node.sync(await second)
        await node.sync(again, {again.member_id: b"all"})
        assert (waiting.result().error, waiting.result().assignment) == (ErrorCode.none, b"")

    on_group_node(tmp_path, scenario)


def test_a_new_member_has_to_join_with_the_id_that_it_is_given(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        refused = await node.join(requires_known_member_id=True)
        assert refused.error is ErrorCode.member_id_required
        assert refused.member_id in node.group.pending_members
        joined = await node.join(refused.member_id, requires_known_member_id=True)
        assert (joined.error, joined.member_id) == (ErrorCode.none, refused.member_id)
        assert not node.group.pending_members

    on_group_node(tmp_path, scenario)


def test_a_rebalance_waits_for_a_member_that_has_been_given_an_id_only(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (first,) = await node.stable()
        pending = await node.join(requires_known_member_id=True, session_timeout_ms=5_000)
        assert pending.error is ErrorCode.member_id_required
        again = node.join(first.member_id)
        await asyncio.sleep(4.9)
        assert not again.done()
        assert (await again).generation_id == 2
        assert time() == pytest.approx(5, abs=0.1), "the pending member's time-out"
        late = await node.join(pending.member_id, requires_known_member_id=True)
        assert late.error is ErrorCode.unknown_member_id

    on_group_node(tmp_path, scenario)


def test_the_first_generation_waits_for_more_members(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        began = time()
        first = node.join(rebalance_timeout_ms=10_000)
        await asyncio.sleep(2)
        second = node.join(rebalance_timeout_ms=10_000)
        joined = await first
        assert time() - began == pytest.approx(6, abs=0.1), "the delay began again"
        assert joined.generation_id == (await second).generation_id == 1
        assert len(joined.members) == 2

    on_group_node(tmp_path, scenario, **{"group.initial.rebalance.delay.ms": 3000})


def test_new_members_delay_the_first_generation_up_to_the_rebalance_timeout(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        began = time()
        joins = []
        for _ in range(4):
            joins.append(node.join(rebalance_timeout_ms=7_000))
            await asyncio.sleep(1.5)
        await joins[0]
        assert time() - began == pytest.approx(7, abs=0.1)
        assert all(join.done() for join in joins)

    on_group_node(tmp_path, scenario, **{"group.initial.rebalance.delay.ms": 3000})


def test_a_dynamic_member_that_does_not_join_again_is_taken_out(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, second = await node.stable(2, rebalance_timeout_ms=4_000)
        began = time()
        waiting = node.join(
            first.member_id, rebalance_timeout_ms=4_000, protocols=(("range", b"x"),)
        )
        joined = await waiting
        assert time() - began == pytest.approx(4, abs=0.1)
        assert list(node.group.members) == [joined.member_id]
        assert joined.leader_id == joined.member_id
        assert node.heartbeat(second) is ErrorCode.unknown_member_id

    on_group_node(tmp_path, scenario)


def test_a_member_without_heartbeats_fails_when_its_session_ends(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, second = await node.stable(2, session_timeout_ms=6_000)
        for _ in range(4):
            await asyncio.sleep(1.9)
            error = node.heartbeat(first)
        assert error is ErrorCode.rebalance_in_progress
        assert second.member_id not in node.group.members
        await asyncio.sleep(7)
        assert node.group.state is GroupState.EMPTY
        assert node.stored()[GROUP].members == {}

    on_group_node(tmp_path, scenario)


def test_a_member_that_does_not_ask_for_its_assignment_is_taken_out(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        timeouts: dict[str, Any] = {"rebalance_timeout_ms": 3_000, "session_timeout_ms": 60_000}
        first, second = await node.stable(2, **timeouts)
        joins = [node.join(first.member_id, **timeouts), node.join(second.member_id, **timeouts)]
        again = [await join for join in joins]
        leader = next(join for join in again if join.leader_id == join.member_id)
        await node.sync(leader, {})
        await asyncio.sleep(2.9)
        assert len(node.group.members) == 2
        await asyncio.sleep(0.2)
        assert list(node.group.members) == [leader.member_id]
        assert node.group.state is GroupState.PREPARING_REBALANCE

    on_group_node(tmp_path, scenario)


def test_a_member_that_leaves_makes_the_others_rebalance(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, second = await node.stable(2)
        unknown = MemberIdentity("nothing", None)
        left = node.coordinator.leave_group(
            GROUP, [MemberIdentity(second.member_id, None), unknown]
        )
        assert [error for _, error in left.members] == [ErrorCode.none, ErrorCode.unknown_member_id]
        assert node.heartbeat(first) is ErrorCode.rebalance_in_progress
        assert (await node.join(first.member_id)).generation_id == first.generation_id + 1

    on_group_node(tmp_path, scenario)


def test_what_is_refused_of_members(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        assert (await node.join()).error is ErrorCode.not_coordinator
        await node.lead()
        assert (await node.join("stranger")).error is ErrorCode.unknown_member_id
        assert (await node.join(group_id="")).error is ErrorCode.invalid_group_id
        too_long = node.join(session_timeout_ms=1_800_001)
        assert (await too_long).error is ErrorCode.invalid_session_timeout
        assert (await node.join(protocols=())).error is ErrorCode.inconsistent_group_protocol
        (first,) = await node.stable()
        other = (await node.join(protocols=(("sticky", b""),))).error
        assert other is ErrorCode.inconsistent_group_protocol
        kind = (await node.join(protocol_type="connect")).error
        assert kind is ErrorCode.inconsistent_group_protocol
        old = await node.sync(first, generation_id=first.generation_id - 1)
        assert old.error is ErrorCode.illegal_generation
        named = await node.sync(first, protocol_type="consumer", protocol_name="sticky")
        assert named.error is ErrorCode.inconsistent_group_protocol
        beat = node.coordinator.heartbeat(GROUP, first.generation_id + 1, first.member_id, None)
        assert beat is ErrorCode.illegal_generation
        assert node.coordinator.heartbeat("other", 1, "m", None) in (
            ErrorCode.unknown_member_id,
            ErrorCode.not_coordinator,
        )

    on_group_node(tmp_path, scenario)


def test_a_client_joins_a_rebalance_that_all_members_have_left(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first = node.join()
        (member_id,) = node.group.members
        node.coordinator.leave_group(GROUP, [MemberIdentity(member_id, None)])
        assert (await first).error is ErrorCode.unknown_member_id
        assert node.group.state is GroupState.PREPARING_REBALANCE
        kind = await node.join(protocol_type="connect")
        assert kind.error is ErrorCode.inconsistent_group_protocol
        assert (await node.join(protocols=())).error is ErrorCode.inconsistent_group_protocol
        second = await node.join(protocols=(("sticky", b""),))
        assert (second.error, second.generation_id) == (ErrorCode.none, 1)
        assert second.protocol_name == "sticky"

    on_group_node(tmp_path, scenario, **{"group.initial.rebalance.delay.ms": 3000})


def test_a_group_takes_no_more_members_than_it_may_have(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, second = await node.stable(2)
        assert (await node.join()).error is ErrorCode.group_max_size_reached
        assert node.heartbeat(first) is node.heartbeat(second) is ErrorCode.none

    on_group_node(tmp_path, scenario, **{"group.max.size": 2})


def test_the_protocol_is_that_which_most_prefer_of_those_that_all_support(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first = await node.join(protocols=(("a", b""), ("b", b""), ("c", b"")))
        others = [node.join(protocols=((name, b""), ("b", b""))) for name in ("a", "c")]
        await node.join(first.member_id, protocols=(("a", b""), ("b", b""), ("c", b"")))
        assert {(await other).protocol_name for other in others} == {"b"}

    on_group_node(tmp_path, scenario)


def test_a_join_that_is_repeated_finds_the_current_generation(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        joined = await node.join()
        assert await node.join(joined.member_id) == joined
        await node.sync(joined)
        second = node.join()
        await node.join(joined.member_id)
        follower = await second
        assert await node.join(follower.member_id) == follower

    on_group_node(tmp_path, scenario)


def test_only_the_latest_of_two_joins_of_a_member_waits(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        first, _ = await node.stable(2)
        former = node.join(first.member_id, protocols=(("range", b"x"),))
        latter = node.join(first.member_id, protocols=(("range", b"x"),))
        assert former.result().error is ErrorCode.rebalance_in_progress
        assert not latter.done()

    on_group_node(tmp_path, scenario)
