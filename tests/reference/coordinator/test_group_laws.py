"""What holds of a group for anything that its members do: random members, requests, pauses and elections."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_results import (
    JoinGroupResult,
    MemberIdentity,
    SyncGroupResult,
)
from nemesis.reference.coordinator.group.group_states import VALID_PREVIOUS_STATES, GroupState
from tests.reference.coordinator.group_node import GROUP, GroupNode, on_group_node

STEPS = 60
SESSION_MS = 4_000
PROTOCOLS = ((("range", b"r"),), (("range", b"r2"),), (("sticky", b"s"), ("range", b"r")))


class RandomMembers:
    """Members that join, sync, live, commit, leave, forget themselves and wait, in no sensible sequence."""

    def __init__(self, node: GroupNode, rng: Random) -> None:
        self.node = node
        self.rng = rng
        self.epoch = 0
        self.joins: list[asyncio.Future[JoinGroupResult]] = []
        self.syncs: list[tuple[JoinGroupResult, asyncio.Future[SyncGroupResult]]] = []
        self.generations: dict[tuple[int, int], list[JoinGroupResult]] = defaultdict(list)
        """By leader epoch and generation: one that was not stored is lost with its coordinator; its number returns."""

    async def run(self) -> None:
        steps = [self.join, self.join_again, self.sync, self.sync, self.heartbeat, self.heartbeat]
        steps += [self.leave, self.commit, self.wait, self.change_leader]
        for _ in range(STEPS):
            self.rng.choice(steps)()
            await asyncio.sleep(self.rng.choice((0.001, 0.001, 0.3, 2.0)))
            self.collect()
            self.check()

    def members(self) -> list[JoinGroupResult]:
        return [item for items in self.generations.values() for item in items]

    def join(self) -> None:
        if self.rng.random() < 0.3:
            number = self.rng.randrange(2)
            self._join("", group_instance_id=f"i-{number}")
        else:
            self._join("")

    def _join(self, member_id: str, **changes: str | None) -> None:
        self.joins.append(
            self.node.join(
                member_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=3_000,
                protocols=self.rng.choice(PROTOCOLS),
                **changes,
            )
        )

    def join_again(self) -> None:
        if members := self.members():
            self._join(self.rng.choice(members[-4:]).member_id)

    def sync(self) -> None:
        if members := self.members():
            joined = self.rng.choice(members[-4:])
            text = f"{joined.generation_id}"
            assignments = {m.member_id: f"{text} {m.member_id}".encode() for m in joined.members}
            self.syncs.append((joined, self.node.sync(joined, assignments)))

    def heartbeat(self) -> None:
        for joined in self.members()[-3:]:
            self.node.heartbeat(joined)

    def commit(self) -> None:
        if members := self.members():
            self.node.commit(1, self.rng.choice(members[-4:]))

    def leave(self) -> None:
        if members := self.members():
            leaving = MemberIdentity(self.rng.choice(members).member_id, None)
            self.node.coordinator.leave_group(GROUP, [leaving])

    def wait(self) -> None:
        """Nothing happens for the moment."""

    def change_leader(self) -> None:
        self.epoch += 1
        leader = self.rng.choice((1, 1, 2))
        self.node.give_role(leader, self.epoch)
        if leader == 2:
            self.epoch += 1
            self.node.give_role(1, self.epoch)

    def collect(self) -> None:
        for join in [join for join in self.joins if join.done()]:
            self.joins.remove(join)
            if (result := join.result()).error is ErrorCode.none:
                self.generations[self.epoch, result.generation_id].append(result)

    def check(self) -> None:
        group = self.node.groups.get_group(GROUP)
        if group is not None:
            check_group(group)
        for joined, sync in self.syncs:
            if sync.done() and sync.result().error is ErrorCode.none:
                text = sync.result().assignment.decode()
                assert text in ("", f"{joined.generation_id} {joined.member_id}")
        for items in self.generations.values():
            assert len({item.protocol_name for item in items}) == 1


def check_group(group: GroupMetadata) -> None:
    members = group.members
    assert {m.group_instance_id: i for i, m in members.items() if m.is_static} == (
        group.static_members
    )
    assert set(group.pending_sync_members) <= set(members)
    assert not set(group.pending_members) & set(members)
    assert (group.leader_id in members) if members else (group.leader_id is None)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert members
        assert not any(member.is_awaiting_join for member in members.values())
        assert all(dict(m.protocols).get(group.protocol_name or "") for m in members.values())
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert not any(member.awaiting_sync for member in members.values())
    if group.state is GroupState.EMPTY:
        assert not members


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_group_stays_consistent(seed: int) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        random_members = RandomMembers(node, Random(seed))
        await random_members.run()
        await asyncio.sleep(SESSION_MS / 1000 + 310)  # a new member's first session is the longest
        assert all(join.done() for join in random_members.joins), "every JoinGroup is answered"
        assert all(sync.done() for _, sync in random_members.syncs), "every SyncGroup is answered"
        group = node.groups.get_group(GROUP)
        assert group is None or group.state is GroupState.EMPTY, "no member has lived on"

    with TemporaryDirectory() as directory:
        on_group_node(Path(directory), scenario)


def test_every_state_but_dead_is_left_for_two_others() -> None:
    following = {
        state: {other for other, before in VALID_PREVIOUS_STATES.items() if state in before}
        for state in GroupState
    }
    assert following[GroupState.DEAD] == {GroupState.DEAD}
    assert following[GroupState.EMPTY] == {GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    assert following[GroupState.PREPARING_REBALANCE] == {
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
        GroupState.DEAD,
    }
    assert following[GroupState.COMPLETING_REBALANCE] == {
        GroupState.STABLE,
        GroupState.PREPARING_REBALANCE,
        GroupState.DEAD,
    }
