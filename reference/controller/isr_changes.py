"""Processes AlterPartition: decides on each partition, writes what may change, tells everybody of what did.

LeaderAndIsr is not sent: the leader learns from the answer, and followers need not know. Each partition's answer is
traced before it is given. Source: kafka.controller.KafkaController.processAlterPartition.
"""

from __future__ import annotations

import logging

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import (
    AlterPartitionAnswer,
    AlterPartitionItem,
    Change,
    Unchanged,
    decide,
    topic_partition_of,
)
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import AlterPartitionReceived
from nemesis.reference.controller.trace_columns import identity
from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk.errors import BadVersionError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.partition_states import CommittedState

_logger = logging.getLogger(__name__)

Outcome = CommittedState | Unchanged | ErrorCode
"""What came of one partition of a request."""


class IsrChanges:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        tracer: Tracer,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._tracer = tracer

    async def process(self, event: AlterPartitionReceived) -> bool:
        """Answer the event; True when it told of epochs newer than ours."""
        context = self._context
        if context.live_broker_epochs.get(event.broker_id) != event.broker_epoch:
            for item in event.partitions:
                self._trace(event, item, ErrorCode.stale_broker_epoch)
            event.answer((ErrorCode.stale_broker_epoch, []))
            return False
        outcomes: list[Outcome] = []
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        indexes: dict[TopicPartition, int] = {}
        for index, item in enumerate(event.partitions):
            decision = decide(context, event.broker_id, item)
            topic_partition = topic_partition_of(context, item)
            if not isinstance(decision, Change):
                outcomes.append(decision)
            elif isinstance(topic_partition, ErrorCode) or topic_partition in changes:
                outcomes.append(ErrorCode.invalid_request)
            else:
                changes[topic_partition] = decision.leader_and_isr
                indexes[topic_partition] = index
                outcomes.append(ErrorCode.unknown_server_error)
        for topic_partition, written in (await self._write_isr_changes(changes)).items():
            outcomes[indexes[topic_partition]] = written
        for item, outcome in zip(event.partitions, outcomes, strict=True):
            self._trace(event, item, outcome)
        event.answer((ErrorCode.none, [_answer(outcome) for outcome in outcomes]))
        return ErrorCode.not_controller in outcomes

    async def _write_isr_changes(
        self, changes: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, CommittedState | ErrorCode]:
        """Compare-and-set the states; everybody learns of those that were written, and of nothing else."""
        context = self._context
        if not changes or context.fence is None:
            return {}
        outcomes: dict[TopicPartition, CommittedState | ErrorCode] = {}
        written: list[TopicPartition] = []
        conflicts: list[TopicPartition] = []
        results = await self._zk_client.states.update_leader_and_isr(changes, context.fence)
        for topic_partition, result in results.items():
            if isinstance(result, CommittedState):
                context.leadership[topic_partition] = result.state
                written.append(topic_partition)
                outcomes[topic_partition] = result
            elif isinstance(result, BadVersionError):
                conflicts.append(topic_partition)
                outcomes[topic_partition] = ErrorCode.invalid_update_version
            else:
                _logger.error("%s keeps its ISR: %s", topic_partition, result)
                outcomes[topic_partition] = ErrorCode.unknown_server_error
        context.leadership |= await self._zk_client.states.get_topic_partition_states(conflicts)
        if written:
            self._request_batch.send_update_metadata(
                context.live_or_shutting_down_broker_ids, written
            )
        return outcomes

    def _trace(
        self, event: AlterPartitionReceived, item: AlterPartitionItem, outcome: Outcome
    ) -> None:
        topic_partition = topic_partition_of(self._context, item)
        if isinstance(topic_partition, ErrorCode):
            return  # nobody can say of which partition it speaks
        error = outcome if isinstance(outcome, ErrorCode) else ErrorCode.none
        self._tracer.event(
            Kind.ALTER_PARTITION_HANDLED,
            **identity(self._context, topic_partition),
            peer=event.broker_id,
            broker_epoch=event.broker_epoch,
            leader_epoch=item.leader_epoch,
            partition_epoch=item.partition_epoch,
            isr=[member for member, _ in item.new_isr],
            isr_epochs=[epoch for _, epoch in item.new_isr],
            error=error.name.upper(),
            zxid=outcome.zxid if isinstance(outcome, CommittedState) else None,
        )


def _answer(outcome: Outcome) -> AlterPartitionAnswer:
    match outcome:
        case CommittedState(state):
            return state.leader_and_isr
        case Unchanged(leader_and_isr):
            return leader_and_isr
        case _:
            return outcome
