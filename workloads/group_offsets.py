"""Committed offsets of a group: a request names one partition or several, and each is an operation of the history.

The operations of one request begin before it is sent and end when it is answered, each with the outcome of its
partition. So a process may have several operations under way; their numbers (``op``) keep them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Any

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.group_offset_requests import Committed
from nemesis.workloads.member_requests import NO_COMMIT
from nemesis.workloads.operations import Operation, OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns


class GroupOffsets:
    """Commits and reads offsets as one member; ``columns`` are those of an operation of the member."""

    def __init__(
        self,
        client: KafkaClient,
        coordinator: ConsumerCoordinator,
        *,
        recorder: Recorder,
        operations: OperationLog,
        commit_numbers: count[int],
        columns: Callable[[str], dict[str, Any]],
        timeout_s: float,
    ) -> None:
        self._client = client
        self._coordinator = coordinator
        self._recorder = recorder
        self._operations = operations
        self._commit_numbers = commit_numbers
        self._columns = columns
        self._timeout_s = timeout_s

    async def commit(self, positions: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """Commit positions in one request; return the partitions of which the commit was acknowledged."""
        commits = {tp: self._numbered(tp, position) for tp, position in positions.items()}
        about = {tp: _commit_columns(committed) for tp, committed in commits.items()}
        with ExitStack() as stack:
            operations = self._begin(stack, "commit-offset", about)
            outcomes = await self._commit(commits)
            for tp, operation in operations.items():
                if (failure := outcomes[tp]) is None:
                    operation.ok()
                else:
                    operation.failed(failure)
        return {tp for tp, operation in operations.items() if operation.succeeded}

    async def read(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Read committed offsets in one request; leave out the partitions that fail."""
        known: dict[TopicPartition, Committed] = {}
        with ExitStack() as stack:
            operations = self._begin(stack, "fetch-offset", {tp: {} for tp in tps})
            outcomes = await self._fetch(operations)
            for tp, operation in operations.items():
                outcome = outcomes[tp]
                if isinstance(outcome, KafkaError):
                    operation.failed(outcome)
                else:
                    known[tp] = outcome
                    operation.ok(**_read_columns(outcome))
        return known

    def _begin(
        self, stack: ExitStack, f: str, about: Mapping[TopicPartition, dict[str, Any]]
    ) -> dict[TopicPartition, Operation]:
        """Begin an operation of each partition; ``about`` are its further columns."""
        operations = {}
        for tp, more in about.items():
            columns = partition_columns(self._client, tp) | self._columns(f) | more
            operation = self._operations.operation(self._recorder, columns)
            operations[tp] = stack.enter_context(operation)
        return operations

    async def _commit(
        self, commits: Mapping[TopicPartition, Committed]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Return the outcome of each partition, also when the whole request failed."""
        try:
            return await self._coordinator.commit(commits, self._timeout_s)
        except KafkaError as error:
            return dict.fromkeys(commits, error)

    async def _fetch(
        self, tps: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Committed | KafkaError]:
        """Return the outcome of each partition, also when the whole request failed."""
        try:
            return await self._coordinator.fetch(tps, self._timeout_s)
        except KafkaError as error:
            return dict.fromkeys(tps, error)

    def _numbered(self, tp: TopicPartition, position: int) -> Committed:
        """Return the commit of a position: its text is a number that no other commit of the run has."""
        metadata = self._client.metadata.topics.get(tp[0])
        known = None if metadata is None else metadata.partitions.get(tp[1])
        leader_epoch = -1 if known is None else known.leader_epoch
        return Committed(position, leader_epoch, str(next(self._commit_numbers)))


def _commit_columns(committed: Committed) -> dict[str, Any]:
    return {
        "offset": committed.offset,
        "leader_epoch": committed.leader_epoch,
        "value": int(committed.text),
    }


def _read_columns(committed: Committed) -> dict[str, Any]:
    number = int(committed.text) if committed.text.isdecimal() else NO_COMMIT
    return {
        "offset": committed.offset,
        "leader_epoch": committed.leader_epoch,
        "value": number,
    }
