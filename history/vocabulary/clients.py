"""Operations of our own clients, and what a final read reached.

Writer: the harness, for the clients of the workload (processes ``producer-3``, ``consumer-0``, ``admin-0``,
``final-2``) and for the faults that act as administrators (``administrator``). An operation is an ``invoke`` and then
exactly one of ``ok``, ``fail`` (it certainly had no effect) and ``info`` (unknown). The ``invoke`` has the columns of
the operation, the completions have them too, and ``fail`` and ``info`` have ``error``. Without
an answer (``CLIENT_TIMED_OUT``) they also have ``duration_ms``: since the client sent its last request.
"""

from __future__ import annotations

from nemesis.history.events import Kind, Milliseconds, Records, Word
from nemesis.history.vocabulary.declaring import (
    PartitionView,
    View,
    answers,
    declares,
    invokes,
)


class OperationView(View, frozen=True, kw_only=True):
    """An operation of a client."""

    op: int
    f: Word


class PartitionOperationView(PartitionView, frozen=True, kw_only=True):
    """An operation of a client on one partition."""

    op: int
    f: Word


@invokes("send")
class Send(PartitionOperationView, frozen=True, kw_only=True):
    """A producer sends a record.

    An idempotent producer repeats the send until it has an answer; only then are ``delivery``, ``producer_id``,
    ``producer_epoch`` and ``sequence`` set.
    Transactional producers also set ``transactional_id`` and ``transaction``.
    """

    value: int
    acks: int
    key: int | None = None
    tombstone: bool | None = None
    """`true` for a record without a value in a compacted topic; its number is in a header."""
    delivery: Word | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None
    transactional_id: Word | None = None
    transaction: int | None = None
    derived_from: int | None = None
    count: int | None = None
    """In completions, the size of the record's batch in bytes; only in workloads with administrators."""


@answers("send")
class SendOk(Send, frozen=True, kw_only=True):
    """The leader has acknowledged the record."""

    offset: Records = -1
    """The offset of the record; −1 if the answer has none."""


@invokes("init-producer-id")
class InitProducerId(OperationView, frozen=True, kw_only=True):
    """A producer requests an id; a transactional one an epoch, too, or the next one after its own (KIP-360)."""

    transactional_id: Word | None = None
    timeout_ms: Milliseconds | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None


@answers("init-producer-id")
class InitProducerIdOk(InitProducerId, frozen=True, kw_only=True):
    """The producer has its id."""

    producer_id: int
    producer_epoch: int | None = None
    """Only of transactional producers."""
    count: int | None = None
    """Unanswered requests, which may still arrive."""


@invokes("poll")
class Poll(PartitionOperationView, frozen=True, kw_only=True):
    """A consumer fetches records. A poll of the final reads has the process ``final-*``."""

    offset: Records
    """The position from which the consumer reads."""
    isolation: Word | None = None


@answers("poll")
class PollOk(Poll, frozen=True, kw_only=True):
    """The consumer has records, or the answer was empty."""

    offsets: list[Records]
    values: list[int]
    high_watermark: Records
    log_start_offset: Records | None = None
    """Where the log starts, as the answer states it."""
    last_offset: Records | None = None
    """The last offset of the last batch of the answer; unset if the answer has no batch."""
    last_stable_offset: Records | None = None
    aborted: list[int] | None = None


@invokes("log-start")
class LogStart(PartitionOperationView, frozen=True, kw_only=True):
    """A consumer whose position was refused asks where the log starts, and goes on from there."""


@answers("log-start")
class LogStartOk(LogStart, frozen=True, kw_only=True):
    """The leader has answered."""

    log_start_offset: Records


@invokes("earliest-offset", "latest-offset")
class OffsetQuery(PartitionOperationView, frozen=True, kw_only=True):
    """A client asks a broker, leader or not, for the first or the last offset of a partition (ListOffsets).

    Final readers (`final-*`) ask the leader for the last offset when a poll has returned nothing.
    """

    node: int
    leader_epoch: int | None = None
    """The leader epoch that the client states, if it states one (KIP-320)."""


@answers("earliest-offset", "latest-offset")
class OffsetQueryOk(OffsetQuery, frozen=True, kw_only=True):
    """The broker has answered."""

    offset: Records


@invokes("offset-by-time")
class OffsetByTime(OffsetQuery, frozen=True, kw_only=True):
    """A client asks a broker for the first record that is not older than a time (ListOffsets).

    At the end of a run every replica is asked, by `final-times-*`, as by a debugging client (replica id −2).
    """

    wall_ms: Milliseconds
    """The time, since 1970."""


@answers("offset-by-time")
class OffsetByTimeOk(OffsetByTime, frozen=True, kw_only=True):
    """The broker has answered."""

    offset: Records
    """The offset of the record; −1: no record is as young."""


@invokes("metadata")
class MetadataQuery(PartitionOperationView, frozen=True, kw_only=True):
    """A client asks a broker what it knows of a partition (Metadata)."""

    node: int


@answers("metadata")
class MetadataQueryOk(MetadataQuery, frozen=True, kw_only=True):
    """The broker has answered."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


@invokes("epoch-end")
class EpochEndQuery(PartitionOperationView, frozen=True, kw_only=True):
    """A client asks a broker where a leader epoch ends in its log (OffsetForLeaderEpoch)."""

    node: int
    leader_epoch: int
    """The requested leader epoch."""


@answers("epoch-end")
class EpochEndQueryOk(PartitionOperationView, frozen=True, kw_only=True):
    """The broker has answered."""

    node: int
    leader_epoch: int
    """The largest leader epoch of the log that is at most the requested one; −1: the broker knows none."""
    offset: Records
    """The offset behind the last record of that leader epoch; −1: the broker knows none."""


@invokes("delete-records")
class DeleteRecords(PartitionOperationView, frozen=True, kw_only=True):
    """An administrator deletes the records below an offset."""

    offset: Records
    """The records below this offset are to be deleted; −1 is all up to the high watermark."""


@answers("delete-records")
class DeleteRecordsOk(DeleteRecords, frozen=True, kw_only=True):
    """The leader has answered."""

    log_start_offset: Records
    """The first offset of the replica that is furthest behind."""


@invokes("alter-log-dir")
@answers("alter-log-dir")
class AlterLogDir(PartitionOperationView, frozen=True, kw_only=True):
    """An administrator moves a broker's replica to another log directory; ``ok``: the broker has begun to."""

    log_dir: Word


@invokes("create-topic", "create-partitions")
@answers("create-topic", "create-partitions")
class CreateTopic(OperationView, frozen=True, kw_only=True):
    """An administrator creates a topic, or adds partitions to it."""

    topic: Word
    partition_count: int


@invokes("delete-topic")
@answers("delete-topic")
class DeleteTopic(OperationView, frozen=True, kw_only=True):
    """An administrator deletes a topic."""

    topic: Word


@invokes("describe")
class Describe(PartitionOperationView, frozen=True, kw_only=True):
    """An administrator asks for the replicas of a partition."""


@answers("describe")
class DescribeOk(Describe, frozen=True, kw_only=True):
    """A broker has answered."""

    replicas: list[int]


@invokes("reassign")
@answers("reassign")
class Reassign(PartitionOperationView, frozen=True, kw_only=True):
    """An administrator requests other replicas for a partition."""

    replicas: list[int]
    """The requested replicas."""
    path: str | None = None
    """The znode of the request, if any."""


@invokes("cancel-reassign", "elect-leaders")
@answers("cancel-reassign", "elect-leaders")
class PartitionRequest(PartitionOperationView, frozen=True, kw_only=True):
    """An administrator cancels the reassignment of a partition, or has its preferred leader elected."""


@invokes("alter-config")
@answers("alter-config")
class AlterConfig(OperationView, frozen=True, kw_only=True):
    """An administrator changes a setting of a topic."""

    topic: Word
    setting: Word
    value: int
    """The new value; −1: the topic has no setting of its own any more."""


@declares(Kind.FETCH_RECEIVED)
class FetchReceived(View, frozen=True, kw_only=True):
    """A consumer has the answer to a fetch in a session, or one that names other partitions."""

    node: int
    fetch_session: int
    fetch_epoch: int
    asked: list[str]
    forgotten: list[str]
    answered: list[str]
    failed: list[str]
    error: Word
    duration_ms: Milliseconds
    """Throttle time."""


@declares(Kind.FINAL_READ)
class FinalRead(PartitionView, frozen=True, kw_only=True):
    """A reader of the final reads has ended."""

    offset: Records
    """The position that the reader reached."""
    high_watermark: Records
    """The high watermark of the leader; −1 if the leader did not answer."""
    log_start_offset: Records
    """The offset at which the reader began."""
    error: Word
    """`NONE`: the reader reached the end that the leader answers to ListOffsets. `NO_RECORDS`: the leader answered the
    last poll without an error and without records, though the end lies beyond; `END_UNKNOWN`: the same, and the leader
    did not answer ListOffsets. `LEADER_UNKNOWN`: the metadata name no leader. `CLIENT_TIMED_OUT`: the last poll failed,
    or the time ended while records still came."""
