"""The requests that keep a member in its group, each an operation of the history.

The caller decides when to join, and when to send a heartbeat. A request that fails leaves its error in the history, and
its meaning in the ``ConsumerCoordinator``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import NO_GENERATION, ConsumerCoordinator
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.group_offset_requests import Committed
from nemesis.workloads.operations import Operation, OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns

NO_COMMIT: Final = -1
"""The number of the commit where nothing is committed."""


class MemberRequests:
    """The requests of one member. ``timeout_s`` is that of each request."""

    def __init__(
        self,
        client: KafkaClient,
        coordinator: ConsumerCoordinator,
        *,
        operations: OperationLog,
        recorder: Recorder,
        timeout_s: float,
        leads: Callable[[int], None],
    ) -> None:
        """``leads`` is called with the generation when a JoinGroup is answered to the leader of the group."""
        self._client = client
        self._coordinator = coordinator
        self._operations = operations
        self._recorder = recorder
        self._timeout_s = timeout_s
        self._leads = leads

    async def join(self) -> bool:
        """Join the next generation; return whether the member is in it."""
        coordinator = self._coordinator
        columns = self.columns("join-group") | {"subscribed": list(coordinator.topics)}
        with self._operations.operation(self._recorder, columns) as joining:
            led = await coordinator.join(self._timeout_s)
            if led:
                self._leads(coordinator.generation)
            joining.ok(
                member=coordinator.member_id,
                generation=coordinator.generation,
                count=led,
                assignor=coordinator.assignor.name,
            )
        return joining.succeeded

    async def sync(self) -> list[TopicPartition] | None:
        """Return the partitions that the member has in its generation; None after an error."""
        assigned: list[TopicPartition] | None = None
        with self.operation("sync-group") as syncing:
            assigned = await self._coordinator.sync(self._timeout_s)
            syncing.ok()
        return assigned

    async def heartbeat(self) -> bool:
        """Keep the session alive; return whether the coordinator knows the member, and no rebalance has begun."""
        with self.operation("heartbeat") as operation:
            await self._coordinator.heartbeat(self._timeout_s)
            operation.ok()
        return operation.succeeded

    async def stable_offset(self, tp: TopicPartition) -> Committed | None:
        """Return the committed offset of a partition; None after an error, also while a transaction has it pending."""
        columns = partition_columns(self._client, tp)
        columns |= {"f": "fetch-stable-offset", "group": self._coordinator.group}
        committed: Committed | None = None
        with self._operations.operation(self._recorder, columns) as operation:
            fetched = await self._coordinator.fetch([tp], self._timeout_s, is_stable=True)
            outcome = fetched[tp]
            if isinstance(outcome, KafkaError):
                operation.failed(outcome)
            else:
                committed = outcome
                number = int(outcome.text) if outcome.text.isdecimal() else NO_COMMIT
                operation.ok(offset=outcome.offset, value=number)
        return committed

    def operation(self, f: str) -> Operation:
        """Return the context of an operation without further columns."""
        return self._operations.operation(self._recorder, self.columns(f))

    def columns(self, f: str) -> dict[str, Any]:
        """Return the columns that every operation of the member has."""
        coordinator = self._coordinator
        return {
            "f": f,
            "group": coordinator.group,
            "node": coordinator.node,
            "member": coordinator.member_id or None,
            "generation": None
            if coordinator.generation == NO_GENERATION
            else coordinator.generation,
            "instance": coordinator.instance,
        }
