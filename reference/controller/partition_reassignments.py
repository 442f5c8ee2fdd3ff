"""Who asks for replicas to be moved, and whether they may be: the API, ``/admin/reassign_partitions``, a failover.

The latest request counts, whichever way it came: it replaces a reassignment that is going on, and a null target cancels
it by making the original replicas the target. How a partition gets there is in ``reassignment_phases``.

That a partition's state was written, by AlterPartition or by its leader, is seen by a watch on its znode: then the
reassignment may be complete. Source: kafka.controller.KafkaController (processApiPartitionReassignment,
processZkPartitionReassignment, processPartitionReassignmentIsrChange, processListPartitionReassignments).

Beyond Kafka: targets in the znode are checked like those of the API (but for being alive: they may come up), and a
request that would leave no replica of the ISR is refused, since it would lose what was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import (
    ApiPartitionReassignment,
    ListPartitionReassignments,
    ZkPartitionReassignment,
)
from nemesis.reference.controller.errors import StateChangeError
from nemesis.reference.controller.reassignment_phases import ReassignmentPhases
from nemesis.reference.model import ApiError, TopicPartition
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import NoNodeError, ZnodeFormatError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import ReplicaAssignment

_logger = logging.getLogger(__name__)

_BEGUN = ApiError(ErrorCode.none)
_NONE_IN_PROGRESS = ApiError(ErrorCode.no_reassignment_in_progress)
_NO_PARTITION = ApiError(ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
_DELETED = ApiError(
    ErrorCode.unknown_topic_or_partition, "The partition is currently being deleted."
)


class PartitionReassignments:
    """See the module. Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        phases: ReassignmentPhases,
        put: Callable[[ZkPartitionReassignment], None],
    ) -> None:
        """``put`` queues an event."""
        self._context = context
        self._zk_client = zk_client
        self._phases = phases
        self._put = put

    # A term begins and ends

    def watch(self) -> None:
        """Hear of ``/admin/reassign_partitions``; the watch itself is set when it is read."""
        self._zk_client.session.register_znode_change_handler(
            zk_data.REASSIGN_PARTITIONS, lambda: self._put(ZkPartitionReassignment())
        )

    def unwatch(self) -> None:
        """To be called before the context forgets which partitions are watched."""
        self._zk_client.session.unregister_znode_change_handler(zk_data.REASSIGN_PARTITIONS)
        for topic_partition in self._context.partitions_being_reassigned:
            self._phases.unwatch(topic_partition)

    async def initialize(self) -> None:
        """Begin what was asked for meanwhile, and go on with what an earlier controller left."""
        begun = await self.process_zk_reassignment()
        await self._resume(
            tp for tp in self._context.partitions_being_reassigned if tp not in begun
        )

    async def resume_for_brokers(self, broker_ids: Collection[int]) -> None:
        """Brokers came up: go on with what they are targets of."""
        context = self._context
        await self._resume(
            tp
            for tp in context.partitions_being_reassigned
            if not set(context.assignment(tp).target_replicas).isdisjoint(broker_ids)
        )

    async def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in list(partitions):
            await self._reassign(topic_partition, self._context.assignment(topic_partition))

    # Events

    async def process_api_reassignment(self, event: ApiPartitionReassignment) -> None:
        """Answer the event when all that it asks for has begun, or with the reason why not."""
        answers: dict[TopicPartition, ApiError] = {}
        wanted: dict[TopicPartition, ReplicaAssignment] = {}
        live = self._context.live_broker_ids
        for topic_partition, target in event.targets.items():
            current = self._context.assignment(topic_partition)
            assignment = _towards(current, target)
            if assignment is None:
                answers[topic_partition] = _NONE_IN_PROGRESS
            elif target is not None and (problem := target_problem(current, target, live)):
                answers[topic_partition] = _invalid(problem)
            else:
                wanted[topic_partition] = assignment
        await self._zk_client.reassignment.remove_partitions(
            lambda tp, _: tp in wanted, self._context.required_fence()
        )
        answers |= await self._trigger(wanted)
        refused = {str(tp): answer for tp, answer in answers.items() if answer is not _BEGUN}
        if refused:
            _logger.warning("not reassigned: %s", refused)
        event.answer((ErrorCode.none, answers))

    def process_list(self, event: ListPartitionReassignments) -> None:
        """Answer with the reassignments in progress, of all partitions or of those asked for."""
        asked: Iterable[TopicPartition] | None = event.partitions
        if asked is None:
            asked = self._context.partitions_being_reassigned
        assignments = {tp: self._context.assignment(tp) for tp in asked}
        in_progress = {tp: a for tp, a in assignments.items() if a.is_being_reassigned}
        event.answer((ErrorCode.none, in_progress))

    async def process_zk_reassignment(self) -> frozenset[TopicPartition]:
        """Begin what ``/admin/reassign_partitions`` asks for, take out what cannot be; returns what has begun now."""
        targets = await self._zk_client.reassignment.get_partition_reassignment()
        if targets is None:
            return frozenset()
        answers: dict[TopicPartition, ApiError] = {}
        wanted: dict[TopicPartition, ReplicaAssignment] = {}
        for topic_partition, target in targets.items():
            current = self._context.assignment(topic_partition)
            problem = target_problem(current, target, live_broker_ids=None)
            if problem is not None:
                answers[topic_partition] = _invalid(problem)
            elif not self._is_under_way(topic_partition, current.reassign_to(target)):
                wanted[topic_partition] = current.reassign_to(target)
        answers |= await self._trigger(wanted)
        failed = {tp: answer for tp, answer in answers.items() if answer is not _BEGUN}
        if failed or not targets:
            reasons = {str(tp): answer for tp, answer in failed.items()}
            _logger.warning("taken out of %s: %s", zk_data.REASSIGN_PARTITIONS, reasons)
            await self._zk_client.reassignment.remove_partitions(
                lambda tp, _: tp in failed, self._context.required_fence()
            )
        return frozenset(answers.keys() - failed.keys())

    async def process_isr_change(self, topic_partition: TopicPartition) -> None:
        """The partition's state was written: its reassignment may be complete."""
        if topic_partition not in self._context.partitions_being_reassigned:
            return
        assignment = self._context.assignment(topic_partition)
        if await self._phases.is_complete(topic_partition, assignment):
            await self._reassign(topic_partition, assignment)

    def _is_under_way(self, topic_partition: TopicPartition, wanted: ReplicaAssignment) -> bool:
        return (
            topic_partition in self._context.partitions_being_reassigned
            and self._context.assignment(topic_partition) == wanted
        )

    async def _trigger(
        self, wanted: Mapping[TopicPartition, ReplicaAssignment]
    ) -> dict[TopicPartition, ApiError]:
        answers: dict[TopicPartition, ApiError] = {}
        for topic_partition, assignment in wanted.items():
            if not self._context.assignment(topic_partition).replicas:
                answers[topic_partition] = _NO_PARTITION
            elif self._context.is_topic_queued_up_for_deletion(topic_partition.topic):
                answers[topic_partition] = _DELETED
            elif self._would_be_unclean(topic_partition, assignment):
                answers[topic_partition] = _invalid(
                    f"None of the replicas {list(assignment.replicas)} is in the ISR: it would be an unclean election."
                )
            else:
                answers[topic_partition] = await self._reassign(topic_partition, assignment)
        return answers

    def _would_be_unclean(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> bool:
        """Whether the whole ISR would be stopped, as when what an earlier reassignment added is alone in it."""
        known = self._context.leadership.get(topic_partition)
        return known is not None and set(known.leader_and_isr.isr).isdisjoint(assignment.replicas)

    async def _reassign(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> ApiError:
        """Take the partition as far as it goes now. What is wrong with its znodes is logged and returned."""
        try:
            await self._phases.on_partition_reassignment(topic_partition, assignment)
        except (StateChangeError, NoNodeError, ZnodeFormatError) as error:
            _logger.error("%s is not reassigned to %s: %s", topic_partition, assignment, error)
            return ApiError(ErrorCode.unknown_server_error, str(error))
        return _BEGUN


def _towards(
    current: ReplicaAssignment, target: tuple[int, ...] | None
) -> ReplicaAssignment | None:
    """The assignment on the way to the target; without a target on the way back, if it is on a way at all."""
    if target is not None:
        return current.reassign_to(target)
    return current.reassign_to(current.origin_replicas) if current.is_being_reassigned else None


def target_problem(
    current: ReplicaAssignment, target: Sequence[int], live_broker_ids: Collection[int] | None
) -> str | None:
    """Return one sentence when the target is refused, else None; with no list of brokers any may be added."""
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) != len(target):
        return f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    if min(target) < 0:
        return f"Invalid broker id in replica list: {list(target)}"
    if live_broker_ids is None:
        return None
    adding = current.reassign_to(target).adding_replicas
    if set(adding) <= set(live_broker_ids):
        return None
    return (
        f"Replica assignment has brokers that are not alive. Replica list: {list(adding)}, live broker list: "
        f"{list(live_broker_ids)}"
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_replica_assignment, message)
