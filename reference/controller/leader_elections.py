"""Who is elected under a strategy: what the pure functions of ``election`` need, taken from context and configuration.

Whether a leader from outside the ISR is allowed is asked only for partitions that have no live member in it: the
topic's own ``unclean.leader.election.enable`` in ``/config/topics`` before the broker's. ``OFFLINE_ALLOW_UNCLEAN`` does
not ask: an operator has demanded it. Source: kafka.controller.PartitionLeaderElectionStrategy and
ZkPartitionStateMachine.collectUncleanLeaderElectionState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from nemesis.reference.controller import election
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.election import ElectionResult
from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"


class PartitionLeaderElectionStrategy(Enum):
    """The value is what traces call an election under it; one that turns out unclean is called that."""

    OFFLINE = "offline"
    OFFLINE_ALLOW_UNCLEAN = "offline-allow-unclean"
    REASSIGN = "reassign"
    PREFERRED_REPLICA = "preferred"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    NO_OP = "no-op"


class LeaderElections:
    """See the module. Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        unclean_leader_election_enable: Callable[[], bool],
        is_leader_recovery_supported: bool,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._unclean_leader_election_enable = unclean_leader_election_enable
        self._is_leader_recovery_supported = is_leader_recovery_supported

    async def elect(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        strategy: PartitionLeaderElectionStrategy,
    ) -> dict[TopicPartition, ElectionResult]:
        """Return a result for each partition; nothing is written."""
        unclean_topics = await self._unclean_topics(states, strategy)
        return {
            topic_partition: self._elect(
                topic_partition,
                current,
                strategy,
                unclean_allowed=topic_partition.topic in unclean_topics,
            )
            for topic_partition, current in states.items()
        }

    def _elect(
        self,
        topic_partition: TopicPartition,
        current: LeaderAndIsr,
        strategy: PartitionLeaderElectionStrategy,
        *,
        unclean_allowed: bool,
    ) -> ElectionResult:
        context = self._context
        assignment = context.assignment(topic_partition)

        def is_online(replica: int) -> bool:
            return context.is_replica_online(replica, topic_partition)

        def is_online_or_shutting_down(replica: int) -> bool:
            return context.is_replica_online(replica, topic_partition, include_shutting_down=True)

        match strategy:
            case PartitionLeaderElectionStrategy.REASSIGN:
                return election.reassign_partition_leader_election(
                    assignment.target_replicas, current, is_online
                )
            case PartitionLeaderElectionStrategy.PREFERRED_REPLICA:
                return election.preferred_replica_leader_election(
                    assignment.replicas, current, is_online
                )
            case PartitionLeaderElectionStrategy.CONTROLLED_SHUTDOWN:
                return election.controlled_shutdown_leader_election(
                    assignment.replicas,
                    current,
                    is_online_or_shutting_down,
                    context.shutting_down_broker_ids,
                )
            case PartitionLeaderElectionStrategy.NO_OP:
                return election.no_op_leader_election(assignment.replicas, current)
            case _:
                return election.offline_partition_leader_election(
                    assignment.replicas,
                    current,
                    is_online,
                    unclean_allowed=unclean_allowed,
                    is_leader_recovery_supported=self._is_leader_recovery_supported,
                )

    async def _unclean_topics(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        strategy: PartitionLeaderElectionStrategy,
    ) -> frozenset[str]:
        """Of the topics that have a partition without a live ISR member, those that may be led from outside it."""
        topics = dict.fromkeys(
            tp.topic for tp, current in states.items() if not self._has_live_member(tp, current.isr)
        )
        match strategy:
            case PartitionLeaderElectionStrategy.OFFLINE_ALLOW_UNCLEAN:
                return frozenset(topics)
            case PartitionLeaderElectionStrategy.OFFLINE:
                configs = await self._zk_client.configs.get_topic_configs(list(topics))
                return frozenset(topic for topic in topics if self._allows_unclean(configs[topic]))
            case _:
                return frozenset()

    def _has_live_member(self, topic_partition: TopicPartition, isr: Iterable[int]) -> bool:
        return any(self._context.is_replica_online(member, topic_partition) for member in isr)

    def _allows_unclean(self, config: Mapping[str, str] | None) -> bool:
        if config is None:  # It may have forbidden it: no records are given up on a guess.
            return False
        value = config.get(UNCLEAN_LEADER_ELECTION_ENABLE)
        if value is None:
            return self._unclean_leader_election_enable()
        return value.strip().lower() == "true"
