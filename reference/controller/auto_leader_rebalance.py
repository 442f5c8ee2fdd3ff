"""Lets preferred replicas lead again where too many of them do not: the scheduled task of the active controller.

Leaders leave a broker with every failure and do not come back by themselves. Five seconds after a failover, and then
every ``leader.imbalance.check.interval.seconds``, each broker is looked at: when more than
``leader.imbalance.per.broker.percentage`` of the partitions that prefer it are led by others, they are elected for, as
far as it is alive and in their ISR. Nothing is moved while a partition is being reassigned.

``auto-leader-rebalance-task`` only queues an event; the next one is scheduled when that has been processed. It is a job
of the controller's own KafkaScheduler, which ends with the term. Source: kafka.controller.KafkaController
(scheduleAutoLeaderRebalanceTask, checkAndTriggerAutoLeaderRebalance).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import AutoPreferredReplicaLeaderElection, Event
from nemesis.reference.controller.replica_leader_elections import ReplicaLeaderElections
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

AUTO_LEADER_REBALANCE_TASK: Final = "auto-leader-rebalance-task"
INITIAL_DELAY_S = 5


class AutoLeaderRebalance:
    """Runs in the event task, except for the job, which is one at most."""

    def __init__(
        self,
        config: KafkaConfig,
        context: ControllerContext,
        *,
        elections: ReplicaLeaderElections,
        scheduler: KafkaScheduler,
        tracer: Tracer,
        put: Callable[[Event], None],
    ) -> None:
        """``scheduler`` is shut down with this task."""
        self._is_enabled = config.auto_leader_rebalance_enable
        self._interval_s = config.leader_imbalance_check_interval_seconds
        self._allowed_ratio = config.leader_imbalance_per_broker_percentage / 100
        self._context = context
        self._elections = elections
        self._tracer = tracer
        self._put = put
        self._scheduler = scheduler
        self._is_scheduled = False

    def startup(self) -> None:
        """Schedule the first look of a term."""
        if self._is_enabled:
            self._schedule(INITIAL_DELAY_S)

    async def shutdown(self) -> None:
        self._is_scheduled = False
        await self._scheduler.shutdown()

    async def process(self) -> None:
        """Look, elect, and schedule the next look."""
        self._tracer.event(Kind.JOB_STARTED, step=AUTO_LEADER_REBALANCE_TASK)
        try:
            for broker_id, partitions in self._imbalanced().items():
                _logger.info("%d partitions shall be led by broker %d", len(partitions), broker_id)
                await self._elections.elect_preferred(partitions)
        finally:
            if self._context.fence is not None:
                self._schedule(self._interval_s)

    def _schedule(self, delay_s: float) -> None:
        if (
            not self._is_scheduled
        ):  # an event of an earlier term must not begin a second sequence of looks
            self._is_scheduled = True
            self._scheduler.schedule_once(AUTO_LEADER_REBALANCE_TASK, self._look, delay_s=delay_s)

    def _look(self) -> None:
        self._is_scheduled = False
        self._put(AutoPreferredReplicaLeaderElection())

    def _imbalanced(self) -> dict[int, list[TopicPartition]]:
        """By preferred replica, the partitions that it may take over, where its share of others' is too large."""
        context = self._context
        preferring: dict[int, list[TopicPartition]] = {}
        for topic_partition, assignment in context.assignments.items():
            if not context.is_topic_queued_up_for_deletion(topic_partition.topic):
                preferring.setdefault(assignment.replicas[0], []).append(topic_partition)
        imbalanced: dict[int, list[TopicPartition]] = {}
        for broker_id, partitions in sorted(preferring.items()):
            led_by_others = [
                tp
                for tp in partitions
                if tp in context.leadership and context.leader(tp) != broker_id
            ]
            if len(led_by_others) / len(partitions) > self._allowed_ratio:
                imbalanced[broker_id] = [
                    tp for tp in led_by_others if self._may_lead(broker_id, tp)
                ]
        return {broker_id: partitions for broker_id, partitions in imbalanced.items() if partitions}

    def _may_lead(self, broker_id: int, topic_partition: TopicPartition) -> bool:
        context = self._context
        return (
            not context.partitions_being_reassigned
            and context.is_replica_online(broker_id, topic_partition)
            and broker_id in context.leadership[topic_partition].leader_and_isr.isr
        )
