"""Events of the harness: phases, convergence, the final state, the logs in the files of stopped brokers.

Writer: the harness (process ``harness``).
"""

from __future__ import annotations

from typing import Final

from nemesis.history.events import Bytes, Kind, Milliseconds, Records, Word
from nemesis.history.vocabulary.declaring import View, declares

TICK: Final = "tickTime"
"""ZooKeeper's own setting, under its own name."""
SESSION_TIMEOUT: Final = "zookeeper.session.timeout.ms"
LAG_TIME: Final = "replica.lag.time.max.ms"
FETCH_TIMEOUT: Final = "replica.socket.timeout.ms"
FETCH_BACKOFF: Final = "replica.fetch.backoff.ms"
FETCH_WAIT: Final = "replica.fetch.wait.max.ms"
CONTROL_TIMEOUT: Final = "controller.socket.timeout.ms"
CONTROL_BACKOFF: Final = "controller.retry.backoff.ms"
MEMBER_SESSION: Final = "session.timeout.ms"
"""Of the members of groups, as their consumers call it."""
MEMBER_REBALANCE: Final = "max.poll.interval.ms"
"""The rebalance time-out of the members of groups, as their consumers call it."""
ABORT_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
GROUP_DELAY: Final = "group.initial.rebalance.delay.ms"
STORE_TIMEOUT: Final = "offsets.commit.timeout.ms"
RETENTION_BYTES: Final = "log.retention.bytes"
RETENTION_MS: Final = "log.retention.ms"
RETENTION_INTERVAL: Final = "log.retention.check.interval.ms"
BALANCE_ENABLED: Final = "auto.leader.rebalance.enable"
BALANCE_INTERVAL: Final = "leader.imbalance.check.interval.seconds"
BALANCE_PERCENTAGE: Final = "leader.imbalance.per.broker.percentage"
UNCLEAN_ELECTIONS: Final = "unclean.leader.election.enable"
SEGMENT_BYTES: Final = "log.segment.bytes"
CLEANUP_POLICY: Final = "log.cleanup.policy"
ROLLS: Final = (
    *("log.roll.ms", "log.roll.hours", "log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.index.size.max.bytes",
)
"""What else rolls segments. Recorded where it is configured: no run reaches the defaults."""
MARK_INTERVAL: Final = "replica.high.watermark.checkpoint.interval.ms"
RECOVERY_POINT_INTERVAL: Final = "log.flush.offset.checkpoint.interval.ms"
LOG_START_INTERVAL: Final = "log.flush.start.offset.checkpoint.interval.ms"
CLEANER_BACKOFF: Final = "log.cleaner.backoff.ms"
CLEANABLE_PERCENTAGE: Final = "log.cleaner.min.cleanable.ratio"
"""Recorded in percent."""
CLEANER_ENABLED: Final = "log.cleaner.enable"
COMPACTION_LAG: Final = "log.cleaner.min.compaction.lag.ms"
DELETE_RETENTION: Final = "log.cleaner.delete.retention.ms"
MOVE_QUOTA: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


@declares(Kind.PHASE)
class Phase(View, frozen=True, kw_only=True):
    """A phase of the run begins.

    The phases are `start`, `warm-up`, `faults`, `heal`, `quiet`, `final-reads`, `convergence` and `end`.
    """

    phase: Word
    wall_ms: Milliseconds | None = None
    """The time of day by the harness's clock; histories of older versions lack it."""


@declares(Kind.CONVERGENCE)
class Convergence(View, frozen=True, kw_only=True):
    """A convergence check ended, for the whole cluster, a partition or a broker."""

    check: Word
    error: Word
    """`NONE`, or what is still wrong; with the prefix `HARNESS: ` what kept the harness from looking."""
    duration_ms: Milliseconds
    """The time from the last heal, or from the begin of the check if no fault was applied, until the check succeeded or
    was given up."""
    topic: Word | None = None
    partition: int | None = None


@declares(Kind.HARNESS_LAG)
class HarnessLag(View, frozen=True, kw_only=True):
    """The harness's own event loop was late."""

    duration_ms: Milliseconds
    """The largest delay since the last such event."""


@declares(Kind.MACHINE_LOAD)
class MachineLoad(View, frozen=True, kw_only=True):
    """What the machine did that may explain why a cluster was late. It is left out where that cannot be measured."""

    duration_ms: Milliseconds
    """Since the last such event: the processor time of all processors, and the time in which some task waited for a
    processor, a disk or memory. In simulation 0."""


@declares(Kind.TIMEOUT_SETTING)
class TimeoutSetting(View, frozen=True, kw_only=True):
    """A time-out or an interval on which the time of a recovery depends, as the run configures it."""

    setting: Word
    duration_ms: Milliseconds


@declares(Kind.BROKER_PROPERTY)
class BrokerProperty(View, frozen=True, kw_only=True):
    """A property of all brokers on which background work or elections depend, as the run configures it."""

    setting: Word
    count: int
    """The value, in the unit that the setting's name states; a truth value is 0 or 1."""


@declares(Kind.END_STATE)
class EndState(View, frozen=True, kw_only=True):
    """What a source reports after the run has ended.

    One event for each partition that the source reports (with ``topic``), then one event for the source as a whole:
    with ``count``, or with ``error`` if the source did not answer.
    """

    source: Word
    topic: Word | None = None
    partition: int | None = None
    topic_id: Word | None = None
    leader: int | None = None
    replicas: list[int] | None = None
    isr: list[int] | None = None
    count: int | None = None
    """The number of partitions that the source reported."""
    error: Word | None = None


@declares(Kind.REPLICA_OFFSETS)
class ReplicaOffsets(View, frozen=True, kw_only=True):
    """What a replica answered about its log after the run had ended, to requests such as consumers send.

    One event for each replica that ZooKeeper assigns to a broker of the cluster (with `topic`), then one event for
    all of them: with `count`, or with `error` if ZooKeeper did not answer. The harness asks again until the replicas
    agree, and records the last answers; replicas that do not agree are given more than the time that follows from the
    configuration.
    """

    error: Word
    """`NONE`, or why the replica did not answer. Every request names the leader epoch that ZooKeeper has."""
    topic: Word | None = None
    partition: int | None = None
    topic_id: Word | None = None
    leader: int | None = None
    """The leader in ZooKeeper; so are `leader_epoch`, `replicas` and `isr`."""
    leader_epoch: int | None = None
    replicas: list[int] | None = None
    isr: list[int] | None = None
    log_start_offset: Records | None = None
    """As a Fetch answered, which followers answer, too (KIP-392)."""
    high_watermark: Records | None = None
    """As the same Fetch answered."""
    log_end_offset: Records | None = None
    """As ListOffsets answered before and after that Fetch."""
    duration_ms: Milliseconds | None = None
    """For how long the partition's state in ZooKeeper and the start and the end of the leader's log have been the same
    in every answer."""
    count: int | None = None
    """The number of replicas that were asked."""


@declares(Kind.REPLICA_SAMPLE)
class ReplicaSample(View, frozen=True, kw_only=True):
    """An offset that a replica answered during the run, where brokers write no traces.

    In each look the harness first asks every leader for its high watermark, then reads ZooKeeper, then asks the members
    of every ISR where their logs end. Each event is recorded before the next requests are sent, so the events of the
    harness are in the order of the answers. A replica that refused, or did not answer, has no event.
    """

    topic: Word
    partition: int
    topic_id: Word | None = None
    leader: int
    """The leader in ZooKeeper; with a high watermark, before the answer and afterwards."""
    leader_epoch: int
    """That of the leader in ZooKeeper. Every request names it, and a replica in another one refuses."""
    broker_epoch: int
    """The broker epoch with which the leader is registered."""
    isr: list[int]
    """In ZooKeeper, before a log end was asked for."""
    high_watermark: Records | None = None
    """Of the leader, as ListOffsets answers a consumer."""
    log_end_offset: Records | None = None
    """Of a member of the ISR, as ListOffsets answers a debugging client."""


@declares(Kind.QUORUM_SAMPLE)
class QuorumSample(View, frozen=True, kw_only=True):
    """A voter of a KRaft quorum answered during the run that it leads the quorum.

    Voters that do not hold themselves for the leader refuse, and have no event.
    """

    node: int
    """The voter, by its node id."""
    controller_epoch: int
    """The epoch of the quorum in which the voter leads."""
    high_watermark: Records | None = None
    """Of the metadata log. Left out while the leader does not know it."""


@declares(Kind.STORED_LOG)
class StoredLog(View, frozen=True, kw_only=True):
    """The log of a replica, as its files hold it once the broker is stopped; without a topic, a broker's files.

    With ``topic``: one log. Without: ``count`` logs were read, or ``error`` says why the files could not be read.
    """

    alive: bool
    error: Word
    """`NONE`; or where the log is damaged: nothing was read from there on."""
    topic: Word | None = None
    topic_id: Word | None = None
    partition: int | None = None
    log_start_offset: Records | None = None
    log_end_offset: Records | None = None
    high_watermark: Records | None = None
    """The high watermark in the last checkpoint."""
    cleaner_offset: Records | None = None
    recovery_point: Records | None = None
    """The recovery point in the last checkpoint; 0 if there was none."""
    superseded_offset: Records | None = None
    """Unset if no such record exists, or if the records cannot be read."""
    count: int | None = None
    """The number of logs of the broker."""


@declares(Kind.STORED_SEGMENT)
class StoredSegment(View, frozen=True, kw_only=True):
    """A segment of such a log that is not deleted."""

    topic: Word
    partition: int
    offset: Records
    """The offset in its name."""
    count: int
    """The size of its file of records, in bytes."""
    topic_id: Word | None = None
    max_timestamp: Milliseconds | None = None
    """The largest of its batches, −1 without any; histories of older versions lack it."""


@declares(Kind.STORED_BATCH)
class StoredBatch(View, frozen=True, kw_only=True):
    """A batch of such a log."""

    topic: Word
    partition: int
    offset: Records
    """The first offset of the batch."""
    last_offset: Records
    leader_epoch: int
    crc: int
    topic_id: Word | None = None
    segment_offset: Records | None = None
    """Histories of formats before 7 lack it and the following ones."""
    position: Bytes | None = None
    max_timestamp: Milliseconds | None = None
    producer_id: int | None = None
    """−1: the producer is not idempotent, or it is a control batch."""
    producer_epoch: int | None = None
    sequence: int | None = None
    """The sequence number of the first record."""
    delete_horizon_ms: Milliseconds | None = None
    """Unset if no compaction has set it; before format 13 unset."""


@declares(Kind.STORED_MARKER)
class StoredMarker(View, frozen=True, kw_only=True):
    """The marker in a control batch of such a log."""

    topic: Word
    partition: int
    offset: Records
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    outcome: Word
    first_offset: Records
    topic_id: Word | None = None


@declares(Kind.STORED_INDEX_ENTRY)
class StoredIndexEntry(View, frozen=True, kw_only=True):
    """An entry of the offset index (with a position) or of the time index (with a time) of a segment of such a log."""

    topic: Word
    partition: int
    segment_offset: Records
    offset: Records
    """The offset of the entry, no longer relative to the segment's."""
    position: Bytes | None = None
    max_timestamp: Milliseconds | None = None
    """The time of the entry."""
    topic_id: Word | None = None


@declares(Kind.STORED_EPOCH)
class StoredEpoch(View, frozen=True, kw_only=True):
    """A leader epoch of such a log, as `leader-epoch-checkpoint` has it."""

    topic: Word
    partition: int
    leader_epoch: int
    offset: Records
    """Where the leader epoch begins."""
    topic_id: Word | None = None


@declares(Kind.STORED_SNAPSHOT)
class StoredSnapshot(View, frozen=True, kw_only=True):
    """A snapshot of the producers that had written to such a log below an offset."""

    topic: Word
    partition: int
    offset: Records
    """The offset in its name."""
    topic_id: Word | None = None


@declares(Kind.STORED_PRODUCER)
class StoredProducer(View, frozen=True, kw_only=True):
    """A producer in such a snapshot, and its last batch."""

    topic: Word
    partition: int
    offset: Records
    """The offset in the name of the snapshot."""
    producer_id: int
    producer_epoch: int
    sequence: int
    """The sequence number of the last record."""
    last_offset: Records
    topic_id: Word | None = None
