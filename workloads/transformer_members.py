"""The membership of a transformer in its group: which partitions it may transform, and as whom it commits offsets.

A transformer assigns nothing by hand. It joins the group as a consumer does, and commits its offsets in transactions
with its member id, its generation and its instance id (KIP-447). A coordinator refuses them from a member that has
lost its membership, also if the epoch of its producer is valid.

A committed offset counts only if the same coordinator then answers a heartbeat. A coordinator that was paused answers
OffsetFetch from its memory until it learns that another broker has taken over. It does not know the memberships that
began there, so what it answers to a heartbeat is an error. That leaves the commits of the member itself, which it
remembers.

A transformer sends no heartbeat during a transaction: a transaction that lasts longer than the session makes it a
zombie, which learns of that only when it commits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.member_requests import MemberRequests
from nemesis.workloads.partitions import TopicPartition


class TransformerMember:
    """See the module."""

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        requests: MemberRequests,
        *,
        timeout_s: float,
        heartbeat_interval_s: float,
    ) -> None:
        """``timeout_s`` is that of each request."""
        self.coordinator = coordinator
        self.partitions: list[TopicPartition] = []
        """Those of the newest assignment."""
        self._requests = requests
        self._timeout_s = timeout_s
        self._heartbeat_interval_s = heartbeat_interval_s
        self._next_heartbeat = 0.0
        self._own: dict[TopicPartition, int] = {}
        """By partition the last position that this member has committed."""

    async def prepare(self) -> bool:
        """Do what the membership needs; return whether the partitions are those of before, and still assigned."""
        coordinator = self.coordinator
        if coordinator.node is None:
            with suppress(KafkaError):
                await coordinator.find(self._timeout_s)
        if not coordinator.is_assigned:
            if coordinator.node is not None:
                await self._join()
            return False
        if coordinator.node is not None and self._now() >= self._next_heartbeat:
            self._next_heartbeat = self._now() + self._heartbeat_interval_s
            await self._requests.heartbeat()
        return coordinator.is_assigned

    async def position(self, tp: TopicPartition) -> int | None:
        """Return the committed position in a partition; None while it is not known, or a transaction has it pending."""
        if self.coordinator.node is None:
            return None
        committed = await self._requests.stable_offset(tp)
        if committed is None or not await self._requests.heartbeat():
            return None
        return max(committed.offset, self._own.get(tp, 0))

    def committed(self, tp: TopicPartition, position: int) -> None:
        """Remember that a transaction of this member was committed with this position."""
        self._own[tp] = position

    async def _join(self) -> None:
        self.partitions = []
        if not await self._requests.join():
            return
        assigned = await self._requests.sync()
        if assigned is not None:
            self.partitions = assigned
            self._next_heartbeat = self._now() + self._heartbeat_interval_s

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
