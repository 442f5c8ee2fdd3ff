"""How one partition gets from the replicas that it has to those that are asked for (KIP-455).

ORS are the original replicas, TRS the target ones, AR = TRS − ORS those to be added, RR = ORS − TRS those to be
removed.

* **U**, the assignment: ORS + TRS with AR and RR goes to the topic's znode, then to memory. From here on a controller
  that fails over goes on by itself. What a replaced reassignment was adding, and nobody wants any more, is stopped
  before.
* **A**, while TRS is not in the ISR: (1) a new leader epoch tells all replicas of the assignment; (2) AR become New and
  begin to fetch. Then nothing happens until the leader has them in the ISR.
* **B**, once it is: (1) AR are Online; (2) memory has TRS alone; (3) the leader is told, in a new epoch, or another one
  of TRS is elected; (4) RR go Offline and leave the ISR; (5) RR delete their logs and are forgotten; (6) the topic's
  znode has TRS alone; (7) what asked for it in ``/admin/reassign_partitions`` is taken out; (8) everybody learns of it.

Source: kafka.controller.KafkaController (onPartitionReassignment and what it calls).

Beyond Kafka: U stops what is not needed first, and elects if that was the leader; B waits until one of TRS could lead;
a partition that never had a leader is refused before anything is written. Limits: as in Kafka, nobody waits for what
removed replicas answer, so one that was down keeps its log until it is a replica of the partition again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from nemesis.reference.controller import election
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.controller_events import PartitionReassignmentIsrChange
from nemesis.reference.controller.errors import StateChangeError
from nemesis.reference.controller.leader_elections import PartitionLeaderElectionStrategy
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.controller.topic_deletion_manager import TopicDeletionManager
from nemesis.reference.controller.trace_columns import committed_state
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import BadVersionError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.partition_states import CommittedState
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch, ReplicaAssignment

_logger = logging.getLogger(__name__)

_REMOVAL = (
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)
"""The states that a replica passes which is taken away."""


class ReassignmentPhases:
    """See the module. Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion_manager: TopicDeletionManager,
        tracer: Tracer,
        put: Callable[[PartitionReassignmentIsrChange], None],
    ) -> None:
        """``put`` queues an event."""
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._topic_deletion_manager = topic_deletion_manager
        self._tracer = tracer
        self._put = put

    async def on_partition_reassignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Take the partition towards ``assignment`` as far as it goes now.

        Raises ``StateChangeError`` when the partition's state does not allow it, ``NoNodeError`` or
        ``ZnodeFormatError`` when one of its znodes is gone or foreign, and what all fenced writes raise.
        """
        if topic_partition not in self._context.leadership:
            raise StateChangeError("it never had a leader")
        await self._update_current_reassignment(topic_partition, assignment)
        if await self.is_complete(topic_partition, assignment):
            await self._complete(topic_partition, assignment)
        else:
            await self._start(topic_partition, assignment)

    async def is_complete(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> bool:
        """Whether ZooKeeper has all of TRS in the ISR, and one of them could lead; sets the watch of the state."""
        states = await self._zk_client.states.get_topic_partition_states([topic_partition])
        if not assignment.is_being_reassigned:
            return True
        state = states.get(topic_partition)
        target = assignment.target_replicas
        return (
            state is not None
            and set(target) <= set(state.leader_and_isr.isr)
            and any(self._context.is_replica_online(r, topic_partition) for r in target)
        )

    def unwatch(self, topic_partition: TopicPartition) -> None:
        """Call nobody any more when the partition's state is written."""
        self._zk_client.session.unregister_znode_change_handler(zk_data.state_path(topic_partition))

    async def _update_current_reassignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """U. An assignment that is the present one is being resumed: nothing is written."""
        context = self._context
        current = context.assignment(topic_partition)
        if current != assignment:
            _logger.info("%s: from %s towards %s", topic_partition, current, assignment)
            unneeded = [r for r in current.replicas if r not in assignment.replicas]
            if unneeded:
                await self._remove_unneeded_replicas(topic_partition, unneeded)
            await self._zk_client.topics.update_replica_assignment(
                topic_partition, assignment, self._context.required_fence()
            )
            context.assignments[topic_partition] = assignment
        self._zk_client.session.register_znode_change_handler(
            zk_data.state_path(topic_partition),
            lambda: self._put(PartitionReassignmentIsrChange(topic_partition)),
        )
        context.partitions_being_reassigned[topic_partition] = None

    async def _start(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """A. What is resumed has no replica that is still to become New."""
        await self._update_leader_epoch_and_send_request(topic_partition, assignment)
        added = _replicas(topic_partition, assignment.adding_replicas)
        await self._replica_state_machine.handle_state_changes(
            [r for r in added if self._context.replica_state(r) is ReplicaState.NON_EXISTENT],
            ReplicaState.NEW,
        )

    async def _complete(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """B."""
        context = self._context
        completed = ReplicaAssignment(assignment.target_replicas)
        await self._replica_state_machine.handle_state_changes(
            _replicas(topic_partition, assignment.adding_replicas), ReplicaState.ONLINE
        )
        context.assignments[topic_partition] = completed
        await self._move_leader_if_required(topic_partition, completed)
        await self._remove_replicas(topic_partition, assignment.removing_replicas)
        await self._zk_client.topics.update_replica_assignment(
            topic_partition, completed, self._context.required_fence()
        )
        await self._forget_reassignment(topic_partition, completed)
        self._request_batch.send_update_metadata(
            context.live_or_shutting_down_broker_ids, [topic_partition]
        )
        _logger.info("%s is reassigned to %s", topic_partition, list(completed.replicas))
        await self._topic_deletion_manager.resume_deletion_for_topics([topic_partition.topic])

    async def _move_leader_if_required(
        self, topic_partition: TopicPartition, completed: ReplicaAssignment
    ) -> None:
        """B3."""
        leader = self._context.leadership[topic_partition].leader_and_isr.leader
        if leader in completed.replicas and self._context.has_online_leader(topic_partition):
            await self._update_leader_epoch_and_send_request(topic_partition, completed)
        else:
            await self._partition_state_machine.handle_state_changes(
                [topic_partition], PartitionState.ONLINE, PartitionLeaderElectionStrategy.REASSIGN
            )

    async def _remove_replicas(
        self, topic_partition: TopicPartition, removed: Iterable[int]
    ) -> None:
        """B4 and B5: out of the ISR, stopped, deleted, forgotten."""
        replicas = _replicas(topic_partition, removed)
        for state in _REMOVAL if replicas else ():
            await self._replica_state_machine.handle_state_changes(replicas, state)

    async def _remove_unneeded_replicas(
        self, topic_partition: TopicPartition, unneeded: Sequence[int]
    ) -> None:
        """What a replaced reassignment was adding leaves the ISR while the topic's znode still has it.

        Kafka writes the znode first: a controller that then fails leaves members of the ISR, the leader perhaps, of
        which no later one knows. And a leader that was stopped is replaced at once; Kafka waits for the next election.
        """
        remaining = self._context.assignment(topic_partition)
        for replica in unneeded:
            remaining = remaining.remove_replica(replica)
        self._context.assignments[topic_partition] = remaining
        await self._remove_replicas(topic_partition, unneeded)
        if not self._context.has_online_leader(topic_partition):
            for state in (PartitionState.OFFLINE, PartitionState.ONLINE):
                await self._partition_state_machine.handle_state_changes([topic_partition], state)

    async def _forget_reassignment(
        self, topic_partition: TopicPartition, completed: ReplicaAssignment
    ) -> None:
        """B7."""
        self.unwatch(topic_partition)
        await self._zk_client.reassignment.remove_partitions(
            lambda tp, target: tp == topic_partition and target == completed.replicas,
            self._context.required_fence(),
        )
        del self._context.partitions_being_reassigned[topic_partition]

    async def _update_leader_epoch_and_send_request(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """A1 and B3: the leader takes over the assignment in a new epoch, its followers follow in it."""
        state = await self._update_leader_epoch(topic_partition)
        self._request_batch.new_batch()
        # Only a replica that is new may choose among the log directories while one of them is offline.
        for replicas, is_new in (
            (assignment.origin_replicas, False),
            (assignment.adding_replicas, True),
        ):
            self._request_batch.add_leader_and_isr_request_for_brokers(
                replicas, topic_partition, state, assignment, is_new=is_new
            )
        self._request_batch.send_requests_to_brokers(self._context.epoch)

    async def _update_leader_epoch(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch:
        """Raise the leader epoch of what ZooKeeper has, and nothing else; conflicts are tried again."""
        fence = self._context.required_fence()
        while True:
            states = await self._zk_client.states.get_topic_partition_states([topic_partition])
            state = states.get(topic_partition)
            if state is None:
                raise StateChangeError("it has no state in ZooKeeper")
            if state.controller_epoch > fence.controller_epoch:
                raise StateChangeError(
                    f"controller epoch {state.controller_epoch} wrote its state already"
                )
            raised = election.no_op_leader_election((), state.leader_and_isr).leader_and_isr
            assert raised is not None, "nobody is elected, so nobody can be missing"
            results = await self._zk_client.states.update_leader_and_isr(
                {topic_partition: raised}, fence
            )
            result = results[topic_partition]
            if isinstance(result, CommittedState):
                break
            if not isinstance(result, BadVersionError):
                raise result
            _logger.info("%s was changed meanwhile; raising its epoch again", topic_partition)
        self._tracer.event(
            Kind.LEADER_ELECTED,
            **committed_state(self._context, topic_partition, result),
            strategy=PartitionLeaderElectionStrategy.NO_OP.value,
        )
        self._context.leadership[topic_partition] = result.state
        return result.state


def _replicas(
    topic_partition: TopicPartition, broker_ids: Iterable[int]
) -> list[PartitionAndReplica]:
    return [PartitionAndReplica(topic_partition, broker_id) for broker_id in broker_ids]
