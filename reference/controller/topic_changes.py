"""Topics that appear, grow, are to be deleted or vanish: what the controller does then.

Somebody (a broker that answers CreateTopics, CreatePartitions or DeleteTopics, or an old tool) writes ZooKeeper; the
watches make events; here they are compared with what the controller knows. Of a topic's znode only new partitions
count: a changed assignment of known ones is no reassignment, and while the topic is being deleted even new ones are
taken back. A topic without an id, as tools older than Kafka 2.8 write it, is given one (KIP-516), or its own back.
Source: kafka.controller.KafkaController (processTopicChange, processPartitionModifications,
processTopicDeletion, processTopicDeletionStopReplicaResponseReceived).

Limits: a topic whose znodes somebody deletes without being asked (not by ``/admin/delete_topics``) is forgotten here,
as in Kafka; brokers keep its logs and serve it from their caches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.controller_events import (
    Event,
    PartitionModifications,
    TopicDeletion,
    TopicDeletionStopReplicaResponseReceived,
)
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.controller.topic_deletion_manager import TopicDeletionManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import NoNodeError, ZnodeFormatError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import TopicAssignment

_logger = logging.getLogger(__name__)


class TopicChanges:
    """Compares ZooKeeper with what the controller knows, and moves the state machines. Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion_manager: TopicDeletionManager,
        new_topic_id: Callable[[], UUID],
        put: Callable[[Event], None],
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._topic_deletion_manager = topic_deletion_manager
        self._new_topic_id = new_topic_id
        self._put = put

    async def initialize(self) -> None:
        """At failover: read all topics with their assignments, and watch each of them."""
        context = self._context
        context.all_topics = await self._zk_client.topics.get_all_topics()
        self._register_partition_modifications_handlers(context.all_topics)
        for assignment in await self._assignments_of(context.all_topics):
            context.add_topic(assignment)

    def unregister_partition_modifications_handlers(self) -> None:
        """At resignation, before the context is emptied."""
        for topic in self._context.all_topics:
            self._zk_client.session.unregister_znode_change_handler(zk_data.topic_path(topic))

    async def process_topic_change(self) -> None:
        context = self._context
        topics = await self._zk_client.topics.get_all_topics()
        known = set(context.all_topics)
        new = [topic for topic in topics if topic not in known]
        self._register_partition_modifications_handlers(new)
        assignments = await self._assignments_of(new)
        for topic in sorted(known.difference(topics)):
            _logger.info("topic %s is gone from ZooKeeper", topic)
            self._zk_client.session.unregister_znode_change_handler(zk_data.topic_path(topic))
            context.remove_topic(topic)
        context.all_topics = topics
        partitions = [tp for assignment in assignments for tp in context.add_topic(assignment)]
        if partitions:
            await self._on_new_partition_creation(partitions)

    async def process_partition_modifications(self, topic: str) -> None:
        """The topic's znode was written: see whether it has more partitions now."""
        context = self._context
        if topic not in context.all_topics:
            return
        for written in await self._assignments_of([topic]):
            added = {
                partition: replicas
                for partition, replicas in written.partitions.items()
                if not context.assignment(TopicPartition(topic, partition)).replicas
            }
            if not added:
                continue
            topic_id = context.topic_ids.get(topic, written.topic_id)
            if written.topic_id != topic_id:
                _logger.error("%s is ignored: its topic id is no longer %s", written, topic_id)
                continue
            if context.is_topic_queued_up_for_deletion(topic):
                _logger.warning("%s gets no partitions %s: it is deleted", topic, sorted(added))
                await self._restore_replica_assignment(topic)
                continue
            _logger.info("%s gets partitions %s", topic, sorted(added))
            partitions = context.add_topic(TopicAssignment(topic, topic_id, added))
            await self._on_new_partition_creation(partitions)

    async def process_topic_deletion(self) -> None:
        """``/admin/delete_topics`` has other children: queue them; those of no topic are removed.

        A topic may have been created and marked since we last looked. Then the event that tells of its creation is in
        the queue, and this one goes behind it.
        """
        context = self._context
        marked = await self._zk_client.deletions.get_topic_deletions()
        unknown = [topic for topic in marked if topic not in context.all_topics]
        existing = set(await self._zk_client.topics.get_all_topics()) if unknown else set()
        absent = [topic for topic in unknown if topic not in existing]
        if absent and context.fence is not None:
            _logger.warning("there are no topics %s that could be deleted", absent)
            await self._zk_client.deletions.delete_topic_deletions(absent, context.fence)
        if len(absent) < len(unknown):
            self._put(TopicDeletion())
        known = [topic for topic in marked if topic not in unknown]
        if known:
            await self._topic_deletion_manager.enqueue_topics_for_deletion(known)

    async def process_stop_replica_response(
        self, event: TopicDeletionStopReplicaResponseReceived
    ) -> None:
        """A broker has deleted some replicas, or could not."""
        failed, deleted = [], []
        for topic_partition, error in event.partition_errors.items():
            replica = PartitionAndReplica(topic_partition, event.replica_id)
            if error is ErrorCode.none:
                deleted.append(replica)
            else:
                _logger.warning("%s was not deleted: %s", replica, error.name)
                failed.append(replica)
        if failed:
            await self._topic_deletion_manager.fail_replica_deletion(failed)
        if deleted:
            await self._topic_deletion_manager.complete_replica_deletion(deleted)

    async def _assignments_of(self, topics: Sequence[str]) -> list[TopicAssignment]:
        """Those that exist and can be read, each with a topic id: without one a leader could not change its ISR."""
        assignments = await self._zk_client.topics.get_replica_assignments(topics)
        fence = self._context.fence
        for index, assignment in enumerate(assignments):
            if assignment.topic_id is None and fence is not None:
                topic_id = self._context.topic_ids.get(assignment.topic) or self._new_topic_id()
                _logger.info("%s has no id and gets %s", assignment.topic, topic_id)
                with suppress(
                    NoNodeError, ZnodeFormatError
                ):  # gone or replaced: an event tells of it
                    assignments[index] = await self._zk_client.topics.set_topic_id(
                        assignment.topic, topic_id, fence
                    )
        return assignments

    async def _on_new_partition_creation(self, partitions: Sequence[TopicPartition]) -> None:
        replicas = self._context.replicas_for_partitions(partitions)
        await self._partition_state_machine.handle_state_changes(partitions, PartitionState.NEW)
        await self._replica_state_machine.handle_state_changes(replicas, ReplicaState.NEW)
        await self._partition_state_machine.handle_state_changes(partitions, PartitionState.ONLINE)
        await self._replica_state_machine.handle_state_changes(replicas, ReplicaState.ONLINE)

    async def _restore_replica_assignment(self, topic: str) -> None:
        """Write the topic's znode as the controller knows it, without the partitions that were added."""
        context = self._context
        known = {tp.partition: context.assignment(tp) for tp in context.partitions_for_topic(topic)}
        if (fence := context.fence) is not None:
            await self._zk_client.topics.set_topic_assignment(
                TopicAssignment(topic, context.topic_ids.get(topic), known), fence
            )

    def _register_partition_modifications_handlers(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._zk_client.session.register_znode_change_handler(
                zk_data.topic_path(topic),
                lambda topic=topic: self._put(PartitionModifications(topic)),  # type: ignore[misc]
            )
