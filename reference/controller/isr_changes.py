"""Processes AlterPartition: decides on each partition, writes what may change, tells everybody of what did.

LeaderAndIsr is not sent: the leader learns from the answer, and followers need not know. Source:
kafka.controller.KafkaController.processAlterPartition.
"""

from __future__ import annotations

import logging

from kio.schema.errors import ErrorCode

from reference.controller.alter_partition import (
    AlterPartitionAnswer,
    Change,
    Unchanged,
    decide,
    topic_partition_of,
)
from reference.controller.controller_broker_request_batch import ControllerBrokerRequestBatch
from reference.controller.controller_context import ControllerContext
from reference.controller.controller_events import AlterPartitionReceived
from reference.model import LeaderAndIsr, TopicPartition
from reference.zk.errors import BadVersionError
from reference.zk.kafka_zk_client import KafkaZkClient
from reference.zk.partition_states import CommittedState

_logger = logging.getLogger(__name__)


class IsrChanges:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch

    async def process(self, event: AlterPartitionReceived) -> bool:
        """Answer the event; True when it told of epochs newer than ours."""
        context = self._context
        if context.live_broker_epochs.get(event.broker_id) != event.broker_epoch:
            event.answer((ErrorCode.stale_broker_epoch, []))
            return False
        answers: list[AlterPartitionAnswer] = []
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        places: dict[TopicPartition, int] = {}
        for place, item in enumerate(event.partitions):
            decision = decide(context, event.broker_id, item)
            topic_partition = topic_partition_of(context, item)
            if not isinstance(decision, Change) or isinstance(topic_partition, ErrorCode):
                answers.append(_answer(decision))
            elif topic_partition in changes:
                answers.append(ErrorCode.invalid_request)
            else:
                changes[topic_partition] = decision.leader_and_isr
                places[topic_partition] = place
                answers.append(ErrorCode.unknown_server_error)
        for topic_partition, answer in (await self._write_isr_changes(changes)).items():
            answers[places[topic_partition]] = answer
        event.answer((ErrorCode.none, answers))
        return ErrorCode.not_controller in answers

    async def _write_isr_changes(
        self, changes: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, AlterPartitionAnswer]:
        """Compare-and-set the states; everybody learns of those that were written, and of nothing else."""
        context = self._context
        if not changes or context.fence is None:
            return {}
        answers: dict[TopicPartition, AlterPartitionAnswer] = {}
        written: list[TopicPartition] = []
        conflicts: list[TopicPartition] = []
        results = await self._zk_client.states.update_leader_and_isr(changes, context.fence)
        for topic_partition, result in results.items():
            if isinstance(result, CommittedState):
                context.leadership[topic_partition] = result.state
                written.append(topic_partition)
                answers[topic_partition] = result.state.leader_and_isr
            elif isinstance(result, BadVersionError):
                conflicts.append(topic_partition)
                answers[topic_partition] = ErrorCode.invalid_update_version
            else:
                _logger.error("%s keeps its ISR: %s", topic_partition, result)
                answers[topic_partition] = ErrorCode.unknown_server_error
        context.leadership |= await self._zk_client.states.get_topic_partition_states(conflicts)
        if written:
            self._request_batch.send_update_metadata(
                context.live_or_shutting_down_broker_ids, written
            )
        return answers


def _answer(decision: Change | Unchanged | ErrorCode) -> AlterPartitionAnswer:
    return decision if isinstance(decision, ErrorCode) else decision.leader_and_isr
