"""One replica of one partition on this broker: leader or follower, its log, the ISR and the high watermark.

The controller decides (``make_leader``, ``make_follower``); everything else follows from it until the next
leader epoch. As leader, the high watermark is the smallest log end offset of the maximal ISR and of those that
are about to join it, and the ISR changes by proposals: whoever decides on them is behind ``AlterPartitionSubmitter``.
As follower, the log is the leader's, the high watermark is the leader's bounded by one's own end.

Every method is synchronous: between two awaits of the event loop a state change is seen whole or not at all,
which is what Kafka's leaderIsrUpdateLock is for. Each step is traced after its effect and before
``on_progress`` lets waiting requests see it. Source: kafka.cluster.Partition of Kafka 3.9; KIP-101, 279, 320,
497.

Limits: no reassignment of its own; transactional batches are not verified with their coordinator (KIP-890).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.local_replica import LocalReplica
from nemesis.reference.cluster.partition_state import (
    AlterPartitionItem,
    AlterPartitionSubmitter,
    CommittedPartitionState,
    PartitionState,
    PendingPartitionState,
)
from nemesis.reference.cluster.replica import UNKNOWN_OFFSET, Replica
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    UNKNOWN_BROKER_EPOCH,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    TopicPartition,
)
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

# The controller says that the partition epoch is right and that the change was not made (KAFKA-14140).
_REVERTED = frozenset({ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica})
# The leader's view is out of date, or the request is; a LeaderAndIsr that settles it is on its way.
_LEFT_PENDING = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
    }
)


class Partition(LocalReplica):
    """A hosted replica. Refusals are raised as ``ReplicaError``; the log's own errors pass through."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        config: KafkaConfig,
        tracer: Tracer,
        log_manager: LogManager,
        alter_partition: AlterPartitionSubmitter,
        is_alive: Callable[[int], bool],
        broker_epoch: Callable[[], int],
        clock: Callable[[], float],
        on_progress: Callable[[TopicPartition], None],
    ) -> None:
        """``is_alive`` asks the metadata cache; ``on_progress`` re-examines what waits for this partition."""
        super().__init__(
            topic_partition,
            broker_id=config.broker_id,
            tracer=tracer,
            log_manager=log_manager,
            on_progress=on_progress,
        )
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.controller_epoch = 0
        self.replicas: tuple[int, ...] = ()
        self.state: PartitionState = CommittedPartitionState()
        self.remote_replicas: dict[int, Replica] = {}
        self._max_lag = config.replica_lag_time_max_ms / 1000
        self._alter_partition = alter_partition
        self._is_alive = is_alive
        self._broker_epoch = broker_epoch
        self._clock = clock

    @property
    def leader_log(self) -> Log:
        """The log, if this broker leads; raises NOT_LEADER_OR_FOLLOWER otherwise."""
        log = self.log
        if log is None or self.leader_id != self._local_id:
            raise ReplicaError(
                ErrorCode.not_leader_or_follower, f"{self.topic_partition} is not led here"
            )
        return log

    @property
    def effective_min_isr(self) -> int:
        """The topic's min.insync.replicas, but never more than there are replicas; only who leads is asked."""
        return min(self.leader_log.config.min_insync_replicas, max(len(self.replicas), 1))

    # The controller's decisions

    def make_leader(self, state: LeaderAndIsrPartitionState) -> None:
        """Lead in the state's epoch; raises InconsistentTopicIdError or KafkaStorageError, and nothing has changed.

        The caller has checked that the leader epoch is newer than the current one.
        """
        now = self._clock()
        log = self.create_log(state.topic_id, is_new=state.is_new)
        isr = frozenset(state.leader_and_isr.isr)
        start_offset = log.log_end_offset
        # Even without data: otherwise a follower could not learn where the epoch before ended (KAFKA-7415).
        log.maybe_assign_epoch_start_offset(state.leader_and_isr.leader_epoch, start_offset)
        self._take_over(state, isr)
        self.leader_epoch_start_offset = start_offset
        for replica in self.remote_replicas.values():
            replica.reset(now=now, in_isr=replica.broker_id in isr)
        self.trace(
            Kind.BECOME_LEADER,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            controller_epoch=self.controller_epoch,
            isr=sorted(isr),
            replicas=list(self.replicas),
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            producers_end=log.producers_end,
        )
        self.maybe_increment_leader_hw()
        self._on_progress(self.topic_partition)

    def make_follower(self, state: LeaderAndIsrPartitionState) -> None:
        """Follow the state's leader in its epoch; whoever waits for us as leader is told at once."""
        log = self.create_log(state.topic_id, is_new=state.is_new)
        self._take_over(state, frozenset())
        self.leader_epoch_start_offset = None
        self.trace(
            Kind.BECOME_FOLLOWER,
            leader=self.leader_id,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            controller_epoch=self.controller_epoch,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            producers_end=log.producers_end,
        )
        self._on_progress(self.topic_partition)

    def delete(self) -> None:
        """Forget everything; the logs are deleted by the caller."""
        self.log = self.future_log = None
        self.leader_id = None
        self.state = CommittedPartitionState()
        self.remote_replicas.clear()
        self._on_progress(self.topic_partition)

    def _take_over(self, state: LeaderAndIsrPartitionState, isr: frozenset[int]) -> None:
        decided = state.leader_and_isr
        self.leader_id = decided.leader
        self.leader_epoch = decided.leader_epoch
        self.partition_epoch = decided.partition_epoch
        self.controller_epoch = state.controller_epoch
        self.replicas = state.replicas
        # Whoever is in the ISR counts for the high watermark, a replica or not: a reassignment takes those that it
        # removes out of the assignment first and out of the ISR later, and until then they may be elected.
        members = dict.fromkeys((*state.replicas, *decided.isr))
        self.remote_replicas = {
            broker: self.remote_replicas.get(broker) or Replica(broker)
            for broker in members
            if broker != self._local_id
        }
        # A change in flight ends here: its answer, if it comes, finds another state (KAFKA-12686).
        self.state = CommittedPartitionState(isr)

    # Leading: appends and the high watermark

    def append_as_leader(
        self,
        records: bytes,
        acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Append a client's or a coordinator's batches; raises NOT_ENOUGH_REPLICAS before anything is written."""
        log = self.leader_log
        if acks == -1 and len(self.state.isr) < self.effective_min_isr:
            raise ReplicaError(
                ErrorCode.not_enough_replicas,
                f"{self.topic_partition}: {len(self.state.isr)} in sync, "
                f"{self.effective_min_isr} needed",
            )
        info = log.append_as_leader(records, self.leader_epoch, origin, guard)
        self._trace_append("leader", info)
        self.maybe_increment_leader_hw()
        self._on_progress(self.topic_partition)
        return info

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Return whether an acks=all append that ends at ``required_offset`` is settled, and how."""
        if self.log is None or not self.is_leader:
            return True, ErrorCode.not_leader_or_follower
        if self.log.high_watermark < required_offset:
            return False, ErrorCode.none
        if len(self.state.maximal_isr) < self.effective_min_isr:
            return True, ErrorCode.not_enough_replicas_after_append
        return True, ErrorCode.none

    def maybe_increment_leader_hw(self) -> bool:
        """Raise the high watermark if the replicas allow it; return whether it moved. It never falls here.

        It stays while the committed ISR is under min.insync.replicas (KAFKA-15583).
        """
        log = self.leader_log
        if len(self.state.isr) < self.effective_min_isr:
            return False
        candidate = self.leader_high_watermark_candidate()
        if candidate <= log.high_watermark:
            return False
        log.update_high_watermark(candidate)
        self.trace(
            Kind.HIGH_WATERMARK,
            leader_epoch=self.leader_epoch,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
            isr=sorted(self.state.isr),
            maximal_isr=sorted(self.state.maximal_isr),
        )
        return True

    def leader_high_watermark_candidate(self) -> int:
        """The smallest end offset of leader, maximal ISR, and live replicas that are caught up and so about to join.

        −1 while one of them has not fetched in this epoch.
        """
        candidate = end_offset = self.leader_log.log_end_offset
        now = self._clock()
        maximal_isr = self.state.maximal_isr
        for broker, replica in self.remote_replicas.items():
            if replica.log_end_offset < candidate and (
                broker in maximal_isr
                or (replica.is_caught_up(end_offset, now, self._max_lag) and self._is_alive(broker))
            ):
                candidate = replica.log_end_offset
        return candidate

    # Leading: followers' fetches and the ISR

    def update_follower_fetch_state(
        self, replica: Replica, *, fetch_offset: int, log_start_offset: int, broker_epoch: int
    ) -> None:
        """Take in a follower's fetch that succeeded: its end offset, then the ISR, then the high watermark."""
        previous_end_offset, previous_epoch = replica.log_end_offset, replica.broker_epoch
        previous_start_offset = replica.log_start_offset
        replica.update_fetch_state(
            fetch_offset=fetch_offset,
            log_start_offset=log_start_offset,
            leader_end_offset=self.leader_log.log_end_offset,
            now=self._clock(),
            broker_epoch=broker_epoch,
        )
        if broker_epoch != previous_epoch:
            self.trace(
                Kind.FOLLOWER_EPOCH,
                replica=replica.broker_id,
                leader_epoch=self.leader_epoch,
                broker_epoch=broker_epoch,
            )
        self._maybe_expand_isr(replica)
        is_raised = fetch_offset != previous_end_offset and self.maybe_increment_leader_hw()
        # A fetch that waits for an earlier life of the follower is refused from now on.
        is_restarted = replica.broker_epoch != previous_epoch
        if is_raised or is_restarted or log_start_offset != previous_start_offset:
            self._on_progress(self.topic_partition)

    def maybe_shrink_isr(self) -> None:
        """Propose the ISR without those that have lagged too long; called every half of replica.lag.time.max.ms.

        The high watermark is looked at as well: it may have waited for a replica that was about to join and did not.
        """
        if not self.is_leader or self.log is None:
            return
        if isinstance(self.state, CommittedPartitionState):
            lagging = self._out_of_sync_replicas(self.log.log_end_offset)
            if lagging:
                self._propose_isr(self.state, self.state.isr - lagging)
        if self.maybe_increment_leader_hw():
            self._on_progress(self.topic_partition)

    def _out_of_sync_replicas(self, leader_end_offset: int) -> frozenset[int]:
        now = self._clock()

        def is_out_of_sync(broker: int) -> bool:
            # Someone in the ISR who is not a replica cannot be in sync (KAFKA-9672).
            return broker not in self.replicas or not self.remote_replicas[broker].is_caught_up(
                leader_end_offset, now, self._max_lag
            )

        return frozenset(filter(is_out_of_sync, self.state.isr - {self._local_id}))

    def _maybe_expand_isr(self, replica: Replica) -> None:
        if (
            isinstance(self.state, CommittedPartitionState)
            and replica.broker_id not in self.state.isr
            and replica.broker_id in self.replicas
            and self._is_alive(replica.broker_id)
            and self.is_follower_in_sync(replica)
        ):
            self._propose_isr(self.state, self.state.isr | {replica.broker_id})

    def is_follower_in_sync(self, replica: Replica) -> bool:
        """Return whether the follower may join: at the high watermark, and into this leader's epoch (KAFKA-7128).

        A new leader's high watermark may lag behind what was committed before; its epoch's start does not.
        """
        start_offset = self.leader_epoch_start_offset
        return (
            start_offset is not None
            and replica.log_end_offset >= self.leader_log.high_watermark
            and replica.log_end_offset >= start_offset
        )

    def _propose_isr(self, committed: CommittedPartitionState, isr: frozenset[int]) -> None:
        proposed = PendingPartitionState(committed, isr)
        self.state = proposed
        self.trace(
            Kind.ISR_CHANGE_PROPOSED,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=sorted(proposed.isr),
            maximal_isr=sorted(proposed.maximal_isr),
            change=proposed.change,
        )
        self._submit(proposed)

    def _submit(self, proposed: PendingPartitionState) -> None:
        item = AlterPartitionItem(
            topic_partition=self.topic_partition,
            topic_id=self.topic_id,
            leader_epoch=self.leader_epoch,
            new_isr=tuple(
                (broker, self._epoch_of(broker)) for broker in sorted(proposed.proposed_isr)
            ),
            leader_recovery_state=proposed.last_committed.leader_recovery_state,
            partition_epoch=self.partition_epoch,
            controller_epoch=self.controller_epoch,
        )
        accepted = self._alter_partition.submit(
            item, lambda error, result: self._on_alter_partition(proposed, error, result)
        )
        if (
            not accepted
        ):  # one of an earlier epoch is still on its way: nothing was sent, ask again later
            self.state = proposed.last_committed

    def _epoch_of(self, broker: int) -> int:
        if broker == self._local_id:
            return self._broker_epoch()
        replica = self.remote_replicas.get(broker)
        return UNKNOWN_BROKER_EPOCH if replica is None else replica.broker_epoch

    def _known_end(self, broker: int) -> int:
        if broker == self._local_id and self.log is not None:
            return self.log.log_end_offset
        replica = self.remote_replicas.get(broker)
        return UNKNOWN_OFFSET if replica is None else replica.log_end_offset

    def _on_alter_partition(
        self, proposed: PendingPartitionState, error: ErrorCode, result: LeaderAndIsr | None
    ) -> None:
        if self.state is not proposed:
            return  # a LeaderAndIsr came first; what the answer says is out of date
        if result is not None:
            self._commit_isr(result)
        elif error in _REVERTED:
            _logger.info("%s: ISR change not made: %s", self.topic_partition, error.name)
            self.state = proposed.last_committed
        elif error in _LEFT_PENDING:
            _logger.info("%s: ISR change refused: %s", self.topic_partition, error.name)
        else:
            self._submit(proposed)

    def _commit_isr(self, result: LeaderAndIsr) -> None:
        # Equal partition epochs: the change had been made already, only its answer was lost (KAFKA-14144).
        if (
            result.leader_epoch != self.leader_epoch
            or result.partition_epoch < self.partition_epoch
        ):
            return
        self.state = CommittedPartitionState(frozenset(result.isr), result.leader_recovery_state)
        self.partition_epoch = result.partition_epoch
        self.trace(
            Kind.ISR_CHANGE_COMMITTED,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=sorted(self.state.isr),
            maximal_isr=sorted(self.state.maximal_isr),
            offsets=[self._known_end(broker) for broker in sorted(self.state.isr)],
        )
        self.maybe_increment_leader_hw()  # the one who held it back may be out now (KAFKA-13091)
        self._on_progress(self.topic_partition)
