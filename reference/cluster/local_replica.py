"""The replica that this broker holds: its log, what a follower does with it, and the traces of every change.

A follower's log is its leader's: batches are appended as they come, cut back where the leader's differs, and the
high watermark is the leader's bounded by one's own end. ``Partition`` adds what a leader does.

Whatever changes what a fetch may see (the log's end, the high watermark, the leader epoch, the role, whether there is a
log) is announced by ``on_progress``, after it was traced. Who waits relies on hearing of each change.

While the replica moves to another log directory (KIP-113) it has a future log besides, which is the current one's
follower and takes its place once both end at the same offset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.log.errors import InconsistentTopicIdError, KafkaStorageError
from nemesis.reference.log.future_logs import follow, has_caught_up
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import UNDEFINED_EPOCH, TopicPartition
from nemesis.reference.protocol.record_batch import HEADER_SIZE, read_header
from nemesis.reference.trace import ABORT, COMMIT, Kind, Tracer


class LocalReplica:
    """A log and who leads it. ``log`` is None until the first LeaderAndIsr and after deletion."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        broker_id: int,
        tracer: Tracer,
        log_manager: LogManager,
        on_progress: Callable[[TopicPartition], None],
    ) -> None:
        """``on_progress`` re-examines what waits for this partition."""
        self.topic_partition = topic_partition
        self.topic_id: UUID | None = None
        self.log: Log | None = None
        self.future_log: Log | None = None
        """Not None while the replica moves to another log directory."""
        self.future_may_differ = False
        """Whether the future log could not be cut with the current one: whoever copies has to, before anything else."""
        self.leader_id: int | None = None
        self.leader_epoch = UNDEFINED_EPOCH
        self._local_id = broker_id
        self._tracer = tracer
        self._log_manager = log_manager
        self._on_progress = on_progress
        self._identity = _identity(topic_partition, None)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self._local_id

    def create_log(self, topic_id: UUID | None, *, is_new: bool) -> Log:
        """Open the log unless it is; raises InconsistentTopicIdError or KafkaStorageError."""
        if self.topic_id is not None and topic_id is not None and self.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"{self.topic_partition} has topic id {self.topic_id}, not {topic_id}"
            )
        if self.log is None and topic_id is not None:
            self._delete_stray_log(topic_id)
        is_known = self._log_manager.get_log(self.topic_partition) is not None
        log = self._log_manager.get_or_create_log(self.topic_partition, topic_id, is_new=is_new)
        self.topic_id = log.topic_id
        self._identity = _identity(self.topic_partition, log.topic_id)
        self.log = log
        if not is_known:
            trace_log_loaded(self._tracer, log)
        return log

    def _delete_stray_log(self, topic_id: UUID) -> None:
        """Delete the log of an earlier topic of this name, of which nobody has told this process anything.

        It was left by a reassignment that took the replica away while this broker was down. The word that is being
        followed cannot be the older one: it carries this life's broker epoch, so it is of a controller that has seen
        this life begin, and knows the topic of now.
        """
        stray = self._log_manager.get_log(self.topic_partition)
        if stray is None or stray.topic_id in (None, topic_id):
            return
        identity = _identity(self.topic_partition, stray.topic_id)
        self._tracer.event(Kind.REPLICA_STOPPED, **identity, step="deleting")
        self._log_manager.delete_log(self.topic_partition)
        self._tracer.event(Kind.REPLICA_STOPPED, **identity, step="delete")

    def append_as_follower(
        self, records: bytes, leader_high_watermark: int, leader_log_start_offset: int = -1
    ) -> None:
        """Append the leader's batches, then follow its high watermark as far as the log reaches (it may fall), then
        the start of its log."""
        log = self._follower_log()
        high_watermark = log.high_watermark
        if records:
            self._trace_append("follower", self._append(log, records))
        if log.update_high_watermark(leader_high_watermark) != high_watermark or records:
            self._on_progress(self.topic_partition)
        if leader_log_start_offset > log.log_start_offset:
            log.maybe_increment_log_start_offset(
                leader_log_start_offset, LogStartOffsetIncrementReason.LEADER_OFFSET_INCREMENTED
            )

    def _append(self, log: Log, records: bytes) -> LogAppendInfo:
        """An empty log may have to begin before its start: the leader's may start within a batch."""
        if log.log_start_offset == log.log_end_offset and len(records) >= HEADER_SIZE:
            first = read_header(records, 0, 0)
            if first.base_offset < log.log_end_offset <= first.last_offset:
                self._log_manager.truncate_fully_and_start_at(
                    log, first.base_offset, log.log_start_offset
                )
        return log.append_as_follower(records)

    def truncate_to(self, offset: int) -> None:
        """Remove what the leader does not have, before its high watermark is looked at (KAFKA-14704)."""
        log = self._follower_log()
        high_watermark = log.high_watermark
        self._log_manager.truncate_to(log, offset)
        self._cut_future_log(lambda future: self._log_manager.truncate_to(future, offset))
        self._trace_truncation(log, offset, high_watermark)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Give up a log that ends before the leader's begins."""
        log = self._follower_log()
        high_watermark = log.high_watermark
        self._log_manager.truncate_fully_and_start_at(log, offset)
        self._cut_future_log(
            lambda future: self._log_manager.truncate_fully_and_start_at(future, offset)
        )
        self._trace_truncation(log, offset, high_watermark)

    def _cut_future_log(self, cut: Callable[[Log], None]) -> None:
        """If its medium fails, that is no matter of the log that is served: whoever copies will meet it, too."""
        if self.future_log is not None:
            try:
                cut(self.future_log)
            except KafkaStorageError:
                self.future_may_differ = True

    def maybe_create_future_replica(self, log_dir: str) -> bool:
        """Begin to move to the directory; False if the replica is there, or moves there already.

        Raises ReplicaError without a log, KafkaStorageError when the medium fails, or some directory is offline.
        """
        log = self._local_log()
        if log_dir in (log.log_dir, self.future_log and self.future_log.log_dir):
            return False
        self.remove_future_replica()
        self.future_log = self._log_manager.create_future_log(self.topic_partition, log_dir)
        return True

    def resume_future_replica(self) -> bool:
        """Go on with a move that an earlier life of the broker began; return whether the replica moves."""
        log, future = self.log, self._log_manager.get_future_log(self.topic_partition)
        if future is not None and log is not None and future.topic_id != log.topic_id:
            self._log_manager.delete_future_log(self.topic_partition)
            future = None
        self.future_log = None if log is None else future
        return self.future_log is not None

    def remove_future_replica(self) -> None:
        """Give up a move, if there is one."""
        if self.future_log is not None:
            self.future_log = None
            self._log_manager.delete_future_log(self.topic_partition)

    def forget_future_replica(self) -> None:
        """End a move whose directory has failed; what is there is left there."""
        self.future_log = None

    def truncate_future_replica(self, offset: int) -> None:
        """Remove what the current log does not have."""
        self._log_manager.truncate_to(self._local_future_log(), offset)

    def append_as_future_replica(self, max_bytes: int) -> int:
        """Copy a batch, or several of up to so many bytes, to the future log; return how many bytes it has grown.

        What else the current log says is followed as well: its start and its high watermark.
        """
        log, future = self._local_log(), self._local_future_log()
        if not log.log_start_offset <= future.log_end_offset <= log.log_end_offset:
            self._log_manager.truncate_fully_and_start_at(future, log.log_start_offset)
        records = log.read(
            future.log_end_offset, max_bytes, log.log_end_offset, min_one_message=True
        )
        if records:
            self._append(future, records)
        follow(future, log)
        return len(records)

    def maybe_replace_current_with_future_replica(self) -> bool:
        """Let the future log take the current one's place if it has caught up; return whether it has.

        After a KafkaStorageError the replica may be without a log: then its new one is in the directory that failed.
        """
        log, future = self._local_log(), self._local_future_log()
        if not has_caught_up(future, log):
            return False
        self._log_manager.complete_future_log(self.topic_partition)
        self.log = self.future_log = None
        self.log = moved = self._log_manager.replace_current_with_future_log(self.topic_partition)
        self.trace(
            Kind.LOG_DIR_CHANGED,
            log_dir=moved.log_dir,
            leader_epoch=moved.epoch_at_end,
            log_start_offset=moved.log_start_offset,
            log_end_offset=moved.log_end_offset,
            high_watermark=moved.high_watermark,
            producers_end=moved.producers_end,
        )
        self._on_progress(self.topic_partition)
        return True

    def _trace_truncation(self, log: Log, offset: int, high_watermark_before: int) -> None:
        self.trace(
            Kind.TRUNCATE,
            offset=offset,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            producers_end=log.producers_end,
            leader_epoch=self.leader_epoch,
            high_watermark_before=high_watermark_before,
        )
        self._on_progress(self.topic_partition)

    def _follower_log(self) -> Log:
        if self.log is None or self.is_leader:
            raise ReplicaError(
                ErrorCode.not_leader_or_follower, f"{self.topic_partition} is not followed here"
            )
        return self.log

    def _local_log(self) -> Log:
        if self.log is None:
            raise ReplicaError(
                ErrorCode.replica_not_available, f"{self.topic_partition} has no log here"
            )
        return self.log

    def _local_future_log(self) -> Log:
        if self.future_log is None:
            raise ReplicaError(
                ErrorCode.replica_not_available, f"{self.topic_partition} does not move here"
            )
        return self.future_log

    def trace(self, kind: Kind, **columns: Any) -> None:
        """Record an event about this partition."""
        self._tracer.event(kind, **self._identity, **columns)

    def _trace_append(self, role: str, info: LogAppendInfo) -> None:
        for batch in info.batches:
            self.trace(
                Kind.APPEND,
                role=role,
                leader_epoch=batch.leader_epoch,
                offset=batch.base_offset,
                last_offset=batch.last_offset,
                crc=batch.crc,
                log_end_offset=batch.last_offset + 1,
            )
        for opened in info.opened:
            self.trace(
                Kind.TRANSACTION_OPENED,
                role=role,
                offset=opened.first_offset,
                producer_id=opened.producer_id,
                producer_epoch=opened.producer_epoch,
            )
        for marker in info.markers:
            self.trace(
                Kind.MARKER_APPENDED,
                role=role,
                leader_epoch=marker.leader_epoch,
                offset=marker.offset,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                outcome=ABORT if marker.is_aborted else COMMIT,
                first_offset=marker.first_offset,
            )


def trace_log_loaded(tracer: Tracer, log: Log) -> None:
    """Record that a log was opened or created in this process life."""
    tracer.event(
        Kind.LOG_LOADED,
        **_identity(log.topic_partition, log.topic_id),
        log_dir=log.log_dir,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        producers_end=log.producers_end,
    )


def _identity(topic_partition: TopicPartition, topic_id: UUID | None) -> dict[str, Any]:
    return {
        "topic": topic_partition.topic,
        "topic_id": None if topic_id is None else str(topic_id),
        "partition": topic_partition.partition,
    }
