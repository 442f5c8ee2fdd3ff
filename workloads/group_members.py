"""One member of a group of consumers, from its first JoinGroup until it leaves, crashes or the run ends.

A member takes one step at a time: it finds its coordinator, joins, reads where its partitions were left off, and from
then on keeps its session alive, polls, commits the positions that it has reached, and sometimes reads a committed
offset back. Each request is an operation of the history; each partition that it owns or gives up is an event of its
own.

The polls after each assignment belong to a process of their own (``member-0.1``, ``member-0.2``): a member that gets
a partition again goes on at the committed offset, which may be behind what it had read itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from random import Random  # noqa: TID251 - the type only
from typing import Any, Final, NamedTuple

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.clients import find_leader
from nemesis.workloads.group_offsets import GroupOffsets
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import (
    NO_GENERATION,
    NO_MEMBER,
    ConsumerCoordinator,
)
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.group_offset_requests import NO_OFFSET, Committed
from nemesis.workloads.member_requests import MemberRequests
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.processes import held
from nemesis.workloads.reads import Reads

READ_BACK_SHARE: Final = 0.1
"""Of the steps of a member that owns partitions: it reads the committed offset of one of the group's partitions."""
ALL_AT_ONCE_SHARE: Final = 0.6
"""Of the times that a member commits, or looks where its partitions were left off: it names all in one request."""
REBALANCE, LOST, LEFT = "rebalance", "lost", "left"
"""Why partitions are given up."""


class MemberSettings(NamedTuple):
    """What all members of a workload have in common."""

    timeout_s: float
    heartbeat_interval_s: float
    commit_interval_s: float
    metadata_interval_s: float
    """How old a member's metadata may become."""
    operations: OperationLog
    reads: Reads
    commit_numbers: count[int]
    """Each number is the text of one commit of the run."""
    partitions: Callable[[], list[TopicPartition]]
    """The partitions to which the group subscribes, as far as they are known."""
    leads: Callable[[str, int, str], None]
    """Called when a JoinGroup is answered to the leader of a generation: with group, generation and process."""


class GroupMember:
    """See the module."""

    def __init__(
        self,
        group: str,
        client: KafkaClient,
        coordinator: ConsumerCoordinator,
        settings: MemberSettings,
        *,
        process: str,
        recorder: Recorder,
        poll_recorder: Callable[[], Recorder],
        rng: Random,
    ) -> None:
        """``poll_recorder`` makes the recorder of a new process."""
        self.coordinator = coordinator
        self._group = group
        self._client = client
        self._settings = settings
        self._recorder = recorder
        self._new_poll_recorder = poll_recorder
        self._poll_recorder: Recorder | None = None
        self._rng = rng
        self._owned: dict[TopicPartition, int] = {}
        """By partition the generation in which it was assigned."""
        self._positions: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        """By partition the last position that was acknowledged; only of those that are owned."""
        self._member_id = NO_MEMBER
        """As which member the partitions are owned."""
        self._next_heartbeat = self._next_commit = self._next_metadata = 0.0
        self._turn = 0
        self._requests = MemberRequests(
            client,
            coordinator,
            operations=settings.operations,
            recorder=recorder,
            timeout_s=settings.timeout_s,
            leads=lambda generation: settings.leads(group, generation, process),
        )
        self._offsets = GroupOffsets(
            client,
            coordinator,
            recorder=recorder,
            operations=settings.operations,
            commit_numbers=settings.commit_numbers,
            columns=self._requests.columns,
            timeout_s=settings.timeout_s,
        )

    async def step(self) -> None:
        """Do the next thing that is to be done, one request or a few."""
        coordinator = self.coordinator
        if coordinator.node is None:
            with suppress(KafkaError):
                await coordinator.find(self._settings.timeout_s)
        elif not coordinator.is_assigned:
            await self._rebalance()
        elif self._now() >= self._next_heartbeat:
            self._next_heartbeat = self._now() + self._settings.heartbeat_interval_s
            await self._requests.heartbeat()
        elif self._now() >= self._next_metadata:
            await self._refresh_metadata()
        elif missing := [tp for tp in self._owned if tp not in self._positions]:
            await self._start_at_committed(missing)
        elif self._owned:
            await self._consume()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics, which the group learns when the member joins again."""
        self.coordinator.subscribe(topics)

    async def leave(self) -> None:
        """Commit what was processed, and leave the group; a static member just ends and keeps its membership."""
        await self._commit_positions()
        self._give_up(LEFT)
        coordinator = self.coordinator
        if coordinator.instance is not None or coordinator.member_id == NO_MEMBER:
            return
        if coordinator.node is not None:
            with self._requests.operation("leave-group") as operation:
                await coordinator.leave(self._settings.timeout_s)
                operation.ok()

    async def remove_instance(self) -> None:
        """Take this static member out of the group, as an administrator does for a process that has ended."""
        if self.coordinator.node is None:
            return
        columns = self._requests.columns("leave-group") | {"member": None}
        with self._settings.operations.operation(self._recorder, columns) as operation:
            await self.coordinator.remove_instance(self._settings.timeout_s)
            operation.ok()

    def end(self) -> None:
        """Own nothing any longer: another process has taken over."""
        self._give_up(LOST)

    async def commit_late(self) -> None:
        """Commit as a member that has slept and does not know what has happened: the positions that it had."""
        self._committed.clear()
        await self._commit_positions()

    async def read_back(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Read the committed offsets of partitions in one request; leave out the partitions that fail."""
        return await self._offsets.read(tps)

    async def commit(self, tp: TopicPartition, position: int) -> bool:
        """Commit a position; return whether it was acknowledged."""
        return bool(await self._offsets.commit({tp: position}))

    # Rebalances

    async def _rebalance(self) -> None:
        """Join and have the assignment. Everything is given up before, unless the assignor is cooperative."""
        coordinator = self.coordinator
        if coordinator.generation != NO_GENERATION:
            await self._commit_positions()
        is_member = coordinator.generation != NO_GENERATION
        if not (is_member and coordinator.assignor.is_cooperative):
            self._give_up(REBALANCE if is_member else LOST)
        await self._revoke({tp for tp in self._owned if tp[0] not in coordinator.topics})
        if not await self._join_while_consuming():
            return
        assigned = await self._requests.sync()
        if assigned is not None:
            if any(self._client.metadata.leader(*tp) is None for tp in assigned):
                await self._client.refresh_metadata()
            self._take(assigned)
            await self._revoke(set(self._owned) - set(assigned))

    async def _join_while_consuming(self) -> bool:
        """Join; meanwhile read the partitions that are still owned. Return whether the member is in a generation."""
        async with asyncio.TaskGroup() as tasks:
            joining = tasks.create_task(held(self._requests.join()))
            while self._positions and not joining.done():
                await self._poll_next()
                await asyncio.wait([joining], timeout=self._settings.heartbeat_interval_s)
        return joining.result()

    def _take(self, assigned: list[TopicPartition]) -> None:
        """Own what is assigned; what was owned before has been kept, and goes on where it is."""
        coordinator, now = self.coordinator, self._now()
        self._next_heartbeat = now + self._settings.heartbeat_interval_s
        self._next_commit = now + self._settings.commit_interval_s
        self._member_id = coordinator.member_id
        self._poll_recorder = None
        for tp in assigned:
            self._owned[tp] = coordinator.generation
            self._record_ownership(Kind.ASSIGNED, tp)

    async def _revoke(self, revoked: set[TopicPartition]) -> None:
        """Give up what another member is to own, and join again, so that the next generation assigns it."""
        if not revoked:
            return
        self.coordinator.rejoin()
        await self._commit_positions()
        for tp in sorted(revoked):
            self._record_ownership(Kind.REVOKED, tp, reason=REBALANCE)
            del self._owned[tp]
            self._positions.pop(tp, None)
            self._committed.pop(tp, None)

    def _give_up(self, reason: str) -> None:
        for tp in self._owned:
            self._record_ownership(Kind.REVOKED, tp, reason=reason)
        self._owned.clear()
        self._positions.clear()
        self._committed.clear()

    def _record_ownership(self, kind: Kind, tp: TopicPartition, **columns: Any) -> None:
        self._recorder.record(
            kind,
            group=self._group,
            member=self._member_id,
            generation=self._owned[tp],
            instance=self.coordinator.instance,
            **partition_columns(self._client, tp),
            **columns,
        )

    # A member that owns partitions

    async def _refresh_metadata(self) -> None:
        self._next_metadata = self._now() + self._settings.metadata_interval_s
        if await self._client.refresh_metadata() and self.coordinator.has_to_assign_again:
            self.coordinator.rejoin()

    async def _start_at_committed(self, tps: list[TopicPartition]) -> None:
        """Go on where the group has left off; at the start of a partition if nothing is committed.

        One request names all partitions, or the first of them only.
        """
        named = tps if self._rng.random() < ALL_AT_ONCE_SHARE else tps[:1]
        for tp, committed in (await self.read_back(named)).items():
            start = 0 if committed.offset == NO_OFFSET else committed.offset
            self._positions[tp] = self._committed[tp] = start

    async def _consume(self) -> None:
        """Poll one partition, commit from time to time, and sometimes read a committed offset back."""
        reads_back, which = self._rng.random() < READ_BACK_SHARE, self._rng.random()
        await self._poll_next()
        if self._now() >= self._next_commit:
            self._next_commit = self._now() + self._settings.commit_interval_s
            await self._commit_positions()
        known = self._settings.partitions()
        if reads_back and known and self.coordinator.node is not None:
            await self.read_back([known[int(which * len(known))]])

    async def _poll_next(self) -> None:
        """Poll the next of the partitions with a position."""
        self._turn += 1
        owned = list(self._positions)
        await self._poll(owned[self._turn % len(owned)])

    async def _poll(self, tp: TopicPartition) -> None:
        leader = self._client.metadata.leader(*tp)
        if leader is None:
            await find_leader(self._client, tp)
            return
        if self._poll_recorder is None:
            self._poll_recorder = self._new_poll_recorder()
        position = self._positions[tp]
        polled = await self._settings.reads.poll(
            self._client, self._poll_recorder, tp, position, leader
        )
        if polled is None:
            await self._client.refresh_metadata()
        else:
            self._positions[tp] = polled.position_after(position)

    async def _commit_positions(self) -> None:
        """Commit each position that the group does not have yet: all in one request, or until a commit fails."""
        if self.coordinator.generation == NO_GENERATION:
            return
        positions = {
            tp: position
            for tp, position in self._positions.items()
            if self._committed.get(tp) != position
        }
        if self._rng.random() < ALL_AT_ONCE_SHARE:
            await self._commit(positions)
            return
        for tp, position in positions.items():
            if not await self._commit({tp: position}):
                return

    async def _commit(self, positions: dict[TopicPartition, int]) -> bool:
        """Commit positions in one request; return whether all were acknowledged."""
        if not positions or self.coordinator.node is None:
            return False
        acknowledged = await self._offsets.commit(positions)
        self._committed |= {tp: positions[tp] for tp in acknowledged}
        return len(acknowledged) == len(positions)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
