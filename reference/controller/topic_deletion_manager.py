"""Deletes topics: first at the brokers, replica by replica, then in ZooKeeper.

A topic that is queued goes through these steps:

1. its partitions become Offline, then NonExistent; every broker learns by UpdateMetadata (leader −2) that the topic is
   gone and serves it no longer;
2. its replicas on live brokers become Offline, then DeletionStarted: StopReplica, then StopReplica with delete;
3. each answer comes back as an event: DeletionSuccessful or DeletionIneligible;
4. when all are DeletionSuccessful they become NonExistent, and the topic's znodes and its mark are deleted.

The deletion halts (the topic is *ineligible*) while a replica is on a dead broker or a failed disk, and while a
partition is being reassigned. It is taken up when the broker comes back or the reassignment is over
(``resume_deletion_for_topics``). All of it rests on the mark in ``/admin/delete_topics`` and on the states of replicas,
so a new controller begins again at step 1, which is harmless. A deletion that has begun is not called off.
Source: kafka.controller.TopicDeletionManager of Kafka 3.9.

Differences: no illegal transition is tried (Kafka logs some): a replica that was deleted before its broker died stays
DeletionSuccessful and does not halt the topic, one that is online goes offline before it becomes ineligible.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

_S = ReplicaState


class TopicDeletionManager:
    """Runs in the event task; what it knows is in the context."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        delete_topic_enable: bool,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._is_delete_topic_enabled = delete_topic_enable

    async def init(self) -> None:
        """At failover, once the context is filled: queue what is marked, halt what cannot be deleted now."""
        context = self._context
        marked = await self._zk_client.deletions.get_topic_deletions()
        if not self._is_delete_topic_enabled:
            await self._refuse(marked)
            return
        _logger.info("topics to be deleted: %s", marked)
        context.queue_topic_deletion(marked)
        halted = [topic for topic in marked if self._has_offline_replica(topic)]
        self.mark_topic_ineligible_for_deletion(halted, "a replica is offline")
        self._halt_those_being_reassigned()

    async def enqueue_topics_for_deletion(self, topics: Sequence[str]) -> None:
        """Queue topics that are marked in ZooKeeper and begin with those that can be deleted."""
        if not self._is_delete_topic_enabled:
            await self._refuse(topics)
            return
        self._context.queue_topic_deletion(topics)
        self._halt_those_being_reassigned()
        await self.try_topic_deletion()

    async def resume_deletion_for_topics(self, topics: Iterable[str]) -> None:
        """What halted these topics may be over: try again."""
        resumed = [t for t in topics if self._context.is_topic_queued_up_for_deletion(t)]
        if not resumed:
            return
        for topic in resumed:
            self._context.topics_ineligible_for_deletion.pop(topic, None)
        self._halt_those_being_reassigned()
        await self.try_topic_deletion()

    def mark_topic_ineligible_for_deletion(self, topics: Iterable[str], reason: str) -> None:
        """Halt those of the topics that are queued."""
        for topic in topics:
            if self._context.is_topic_queued_up_for_deletion(topic):
                self._context.topics_ineligible_for_deletion[topic] = None
                _logger.info("the deletion of %s halts: %s", topic, reason)

    async def complete_replica_deletion(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """Brokers have deleted these replicas."""
        deleted = [r for r in self._queued(replicas) if self._is_in(r, _S.DELETION_STARTED)]
        await self._replica_state_machine.handle_state_changes(deleted, _S.DELETION_SUCCESSFUL)
        await self.try_topic_deletion()

    async def fail_replica_deletion(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """These replicas cannot be deleted now: their broker is dead, or says so. Their topics halt.

        One that a reassignment took away is nobody's any more, and its broker's answer may come late.
        """
        failed = [
            replica
            for replica in self._queued(replicas)
            if not self._is_in(
                replica, _S.DELETION_SUCCESSFUL, _S.DELETION_INELIGIBLE, _S.NON_EXISTENT
            )
        ]
        if not failed:
            return
        online = [replica for replica in failed if self._is_in(replica, _S.NEW, _S.ONLINE)]
        await self._replica_state_machine.handle_state_changes(online, _S.OFFLINE)
        await self._replica_state_machine.handle_state_changes(failed, _S.DELETION_INELIGIBLE)
        self.mark_topic_ineligible_for_deletion(_topics_of(failed), "a replica cannot be deleted")
        await self.try_topic_deletion()

    async def try_topic_deletion(self) -> None:
        """Finish what is deleted at all brokers, begin or begin again with what is eligible."""
        context = self._context
        retried: list[PartitionAndReplica] = []
        eligible: list[str] = []
        for topic in list(context.topics_to_be_deleted):
            if context.are_all_replicas_in_state(topic, _S.DELETION_SUCCESSFUL):
                await self._complete_delete_topic(topic)
            elif not context.is_any_replica_in_state(topic, _S.DELETION_STARTED):
                retried += context.replicas_in_state(topic, _S.DELETION_INELIGIBLE)
                if topic not in context.topics_ineligible_for_deletion:
                    eligible.append(topic)
        if retried:
            await self._replica_state_machine.handle_state_changes(retried, _S.OFFLINE)
        if eligible:
            await self._on_topic_deletion(eligible)

    async def _on_topic_deletion(self, topics: Sequence[str]) -> None:
        context = self._context
        unseen = [topic for topic in topics if topic not in context.topics_with_deletion_started]
        partitions = [tp for topic in unseen for tp in context.partitions_for_topic(topic)]
        if unseen:
            _logger.info("deleting topics %s", unseen)
            for state in (PartitionState.OFFLINE, PartitionState.NON_EXISTENT):
                await self._partition_state_machine.handle_state_changes(partitions, state)
            context.topics_with_deletion_started.update(dict.fromkeys(unseen))
        gone = [tp for topic in topics for tp in context.partitions_for_topic(topic)]
        self._request_batch.send_update_metadata(context.live_or_shutting_down_broker_ids, gone)
        await self._on_partition_deletion(topics)

    async def _on_partition_deletion(self, topics: Sequence[str]) -> None:
        """Let the live brokers delete; replicas that are not online halt their topic."""
        remaining = [
            replica
            for topic in topics
            for replica in self._context.replicas_for_topic(topic)
            if not self._is_in(replica, _S.DELETION_SUCCESSFUL)
        ]
        alive = [replica for replica in remaining if self._is_online(replica)]
        dead = [replica for replica in remaining if not self._is_online(replica)]
        machine = self._replica_state_machine
        await machine.handle_state_changes(
            [replica for replica in dead if self._is_in(replica, _S.NEW, _S.ONLINE)], _S.OFFLINE
        )
        await machine.handle_state_changes(dead, _S.DELETION_INELIGIBLE)
        await machine.handle_state_changes(alive, _S.OFFLINE)
        await machine.handle_state_changes(alive, _S.DELETION_STARTED)
        self.mark_topic_ineligible_for_deletion(_topics_of(dead), "a replica is offline")

    async def _complete_delete_topic(self, topic: str) -> None:
        """No broker has anything of it: forget it here and in ZooKeeper."""
        # Else the change of its znode would be seen before that of its parent, if the name comes back at once.
        self._zk_client.session.unregister_znode_change_handler(zk_data.topic_path(topic))
        replicas = self._context.replicas_for_topic(topic)
        await self._replica_state_machine.handle_state_changes(replicas, _S.NON_EXISTENT)
        if (fence := self._context.fence) is not None:
            await self._zk_client.deletions.delete_topic(topic, fence)
            self._context.remove_topic(topic)
            _logger.info("topic %s is deleted", topic)

    async def _refuse(self, topics: Sequence[str]) -> None:
        fence: ControllerFence | None = self._context.fence
        if topics and fence is not None:
            _logger.warning("not deleting %s: delete.topic.enable is false", list(topics))
            await self._zk_client.deletions.delete_topic_deletions(topics, fence)

    def _halt_those_being_reassigned(self) -> None:
        moving = dict.fromkeys(tp.topic for tp in self._context.partitions_being_reassigned)
        self.mark_topic_ineligible_for_deletion(moving, "a partition is being reassigned")

    def _has_offline_replica(self, topic: str) -> bool:
        return not all(map(self._is_online, self._context.replicas_for_topic(topic)))

    def _is_online(self, replica: PartitionAndReplica) -> bool:
        return self._context.is_replica_online(replica.replica, replica.topic_partition)

    def _is_in(self, replica: PartitionAndReplica, *states: ReplicaState) -> bool:
        return self._context.replica_state(replica) in states

    def _queued(self, replicas: Iterable[PartitionAndReplica]) -> list[PartitionAndReplica]:
        return [
            replica
            for replica in replicas
            if self._context.is_topic_queued_up_for_deletion(replica.topic_partition.topic)
        ]


def _topics_of(replicas: Iterable[PartitionAndReplica]) -> list[str]:
    return list(dict.fromkeys(replica.topic_partition.topic for replica in replicas))
