"""Leader elections that somebody asks for: the znode, the ElectLeaders API, the balance of preferred leaders.

*Preferred* lets the first replica of the assignment lead again. *Unclean* elects for a partition without a leader, from
outside the ISR if need be, and does so only because an operator demanded it. Each partition gets its own answer; what
needs no election is not elected for, since every election costs its leader an epoch. The znode is deleted when its
elections have been tried, however they ended; a new controller goes on with what it finds there.

Source: kafka.controller.KafkaController (processReplicaLeaderElection, onReplicaElection,
fetchPendingPreferredReplicaElections); KIP-183, KIP-460.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import ControllerContext, PartitionState
from nemesis.reference.controller.controller_events import (
    ElectionResults,
    ElectionType,
    Event,
    ReplicaLeaderElection,
    ZkPreferredReplicaElection,
)
from nemesis.reference.controller.errors import StateChangeError
from nemesis.reference.controller.leader_elections import PartitionLeaderElectionStrategy
from nemesis.reference.controller.partition_state_machine import Outcome, PartitionStateMachine
from nemesis.reference.controller.trace_columns import identity
from nemesis.reference.model import ApiError, TopicPartition
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

_STRATEGIES = {
    ElectionType.PREFERRED: PartitionLeaderElectionStrategy.PREFERRED_REPLICA,
    ElectionType.UNCLEAN: PartitionLeaderElectionStrategy.OFFLINE_ALLOW_UNCLEAN,
}
_NOT_ELIGIBLE_ERRORS = {
    ElectionType.PREFERRED: ErrorCode.preferred_leader_not_available,
    ElectionType.UNCLEAN: ErrorCode.eligible_leaders_not_available,
}


class ReplicaLeaderElections:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        partition_state_machine: PartitionStateMachine,
        tracer: Tracer,
        put: Callable[[Event], None],
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._partition_state_machine = partition_state_machine
        self._tracer = tracer
        self._put = put

    def register_handlers(self) -> None:
        self._zk_client.session.register_znode_change_handler(
            zk_data.PREFERRED_REPLICA_ELECTION, lambda: self._put(ZkPreferredReplicaElection())
        )

    def unregister_handlers(self) -> None:
        self._zk_client.session.unregister_znode_change_handler(zk_data.PREFERRED_REPLICA_ELECTION)

    async def process(self, event: ReplicaLeaderElection) -> None:
        """Elect as the request asks, and answer it."""
        is_unclean = event.election_type is ElectionType.UNCLEAN
        if is_unclean:
            self._trace_asked(event, "unclean")
        results = await self._elect(event.partitions, event.election_type)
        if is_unclean:
            self._trace_asked(event, "answered")
        event.answer(results)

    async def process_znode(self) -> None:
        """Elect as the znode asks, if it is there, and delete it: that fires the watch, which is then set anew."""
        fence = self._context.fence
        election = self._zk_client.preferred_replica_election
        partitions = await election.get_preferred_replica_election()
        if partitions is None or fence is None:
            return
        results = await self._elect(partitions, ElectionType.PREFERRED)
        for topic_partition, result in results.items():
            if isinstance(result, ApiError) and result.code is not ErrorCode.election_not_needed:
                _logger.warning("%s: no preferred leader: %s", topic_partition, result)
        await election.delete_preferred_replica_election(fence)

    async def elect_preferred(self, partitions: Sequence[TopicPartition]) -> None:
        """Elect for partitions that are known to need it, and log where it fails."""
        outcomes = await self._on_replica_election(partitions, ElectionType.PREFERRED)
        for topic_partition, outcome in outcomes.items():
            if isinstance(outcome, Exception):
                _logger.warning("%s keeps its leader: %s", topic_partition, outcome)

    async def _elect(
        self, partitions: Iterable[TopicPartition], election_type: ElectionType
    ) -> ElectionResults:
        """Return each partition's new leader, or why it has none."""
        results: ElectionResults = {}
        electable: list[TopicPartition] = []
        for topic_partition in dict.fromkeys(partitions):
            refusal = self._refusal(topic_partition, election_type)
            if refusal is None:
                electable.append(topic_partition)
            else:
                results[topic_partition] = refusal
        outcomes = await self._on_replica_election(electable, election_type)
        for topic_partition, outcome in outcomes.items():
            results[topic_partition] = _result(outcome, election_type)
        return results

    async def _on_replica_election(
        self, partitions: Sequence[TopicPartition], election_type: ElectionType
    ) -> dict[TopicPartition, Outcome]:
        return await self._partition_state_machine.handle_state_changes(
            partitions, PartitionState.ONLINE, _STRATEGIES[election_type]
        )

    def _trace_asked(self, event: ReplicaLeaderElection, step: str) -> None:
        """That an operator demands it is what makes an unclean election right."""
        for topic_partition in event.partitions:
            self._tracer.event(
                Kind.ELECTION_ASKED,
                **identity(self._context, topic_partition),
                controller_epoch=self._context.epoch,
                step=step,
            )

    def _refusal(
        self, topic_partition: TopicPartition, election_type: ElectionType
    ) -> ApiError | None:
        context = self._context
        if topic_partition not in context.assignments:
            return ApiError(
                ErrorCode.unknown_topic_or_partition, f"The partition {topic_partition} is unknown."
            )
        if context.is_topic_queued_up_for_deletion(topic_partition.topic):
            return ApiError(ErrorCode.invalid_topic_exception, "The topic is being deleted.")
        if not self._needs_election(topic_partition, election_type):
            return ApiError(ErrorCode.election_not_needed, "The leader is the right one already.")
        return None

    def _needs_election(self, topic_partition: TopicPartition, election_type: ElectionType) -> bool:
        context = self._context
        leader = context.leader(topic_partition)
        if election_type is ElectionType.PREFERRED:
            return leader != context.preferred_replica(topic_partition)
        return leader not in context.live_broker_ids


def _result(outcome: Outcome, election_type: ElectionType) -> int | ApiError:
    if isinstance(outcome, StateChangeError):
        return ApiError(_NOT_ELIGIBLE_ERRORS[election_type], str(outcome))
    if isinstance(outcome, Exception):
        return ApiError(ErrorCode.unknown_server_error, str(outcome))
    return outcome.leader_and_isr.leader
