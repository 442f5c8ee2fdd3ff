"""The flat record in which every event of a history is stored, and the kinds of events.

Every event is one ``Event``: a flat record of optional columns, so that JSON lines, Arrow and a person see the same
names. Each column has one meaning, one type and one unit. Which columns an event has depends on its kind, and on its
function ``f`` if it is a client's operation: ``nemesis.history.vocabulary`` declares that, once for each kind. A column
that an event does not use stays ``None`` and is left out of the JSON line.

``time`` is ``CLOCK_MONOTONIC`` in nanoseconds, or the simulator's clock. A process reads the clock *after* the effect
and writes the event *before* any other process can see the effect. Events of ZooKeeper's transaction log have ``time``
−1: their order is the zxid, never the clock.
"""

from __future__ import annotations

from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

FORMAT_VERSION: Final = 14
"""The format of raw files and of Parquet files; ``nemesis.history.older_formats`` reads what older versions wrote."""
NO_ERROR: Final = "NONE"
"""The ``error`` of what succeeded."""
NO_ANSWER: Final = "CLIENT_TIMED_OUT"
"""The ``error`` of an operation whose last request had no answer when its client gave up."""
INITIAL_TOPICS: Final = "initial-topics"
"""The ``check`` of a cluster that was not ready before the first fault."""
READ_COMMITTED: Final = "read_committed"
"""The ``isolation`` of a read that leaves out what is aborted or not yet decided."""
IDEMPOTENT: Final = "idempotent"
"""The ``delivery`` of sends that are stored in the log once, however often they were sent."""
COMMIT: Final = "commit"
"""The ``outcome`` of a transaction whose records count."""
ABORT: Final = "abort"
"""The ``outcome`` of a transaction whose records do not count."""


class Kind(StrEnum):
    """What an event records; ``nemesis.history.vocabulary`` declares the columns of each kind."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"
    FINAL_READ = "final-read"
    FETCH_RECEIVED = "fetch-received"
    TRANSACTION_BEGUN = "transaction-begun"
    ASSIGNED = "assigned"
    REVOKED = "revoked"

    BROKER_STARTED = "broker-started"
    BROKER_RECONFIGURED = "broker-reconfigured"
    BROKER_REGISTERED = "broker-registered"
    SESSION_STATE = "session-state"
    CONTROLLER_ELECTED = "controller-elected"
    CONTROLLER_FAILOVER = "controller-failover"
    CONTROLLER_RESIGNED = "controller-resigned"
    LEADER_ELECTED = "leader-elected"
    ELECTION_ASKED = "election-asked"
    ZNODE_ATTEMPT = "znode-attempt"
    ZNODE_OUTCOME = "znode-outcome"
    CONTROL_REQUEST_SENT = "control-request-sent"
    CONTROL_REQUEST_HANDLED = "control-request-handled"
    CONTROL_REQUEST_ANSWERED = "control-request-answered"
    ALTER_PARTITION_HANDLED = "alter-partition-handled"
    BROKER_CHANGE_HANDLED = "broker-change-handled"
    CONTROLLED_SHUTDOWN_HANDLED = "controlled-shutdown-handled"
    TRANSITION = "transition"
    LOG_LOADED = "log-loaded"
    LOG_CLOSED = "log-closed"
    BECOME_LEADER = "become-leader"
    BECOME_FOLLOWER = "become-follower"
    APPEND = "append"
    TRANSACTION_OPENED = "transaction-opened"
    MARKER_APPENDED = "marker-appended"
    TRUNCATE = "truncate"
    LOG_START_OFFSET = "log-start-offset"
    SEGMENTS_DELETED = "segments-deleted"
    LOG_DIR_CHANGED = "log-dir-changed"
    LOG_DIR_FAILED = "log-dir-failed"
    LOG_CLEANED = "log-cleaned"
    BATCH_CLEANED = "batch-cleaned"
    FETCH_ANSWERED = "fetch-answered"
    FOLLOWER_EPOCH = "follower-epoch"
    HIGH_WATERMARK = "high-watermark"
    ISR_CHANGE_PROPOSED = "isr-change-proposed"
    ISR_CHANGE_COMMITTED = "isr-change-committed"
    PRODUCE_ACKNOWLEDGED = "produce-acknowledged"
    REPLICA_STOPPED = "replica-stopped"
    TRANSACTION_PARTITION_ADDED = "transaction-partition-added"
    TRANSACTION_COMPLETED = "transaction-completed"
    METADATA_UPDATED = "metadata-updated"
    PARTITION_METADATA = "partition-metadata"
    JOB_STARTED = "job-started"
    EXCEPTIONS_WATCHED = "exceptions-watched"
    UNFORESEEN_EXCEPTION = "unforeseen-exception"

    ZNODE = "znode"
    ZNODE_REFUSED = "znode-refused"
    SESSION_CREATED = "session-created"
    SESSION_CLOSED = "session-closed"

    FAULT_INVOKE = "fault-invoke"
    FAULT_APPLIED = "fault-applied"
    FAULT_SKIPPED = "fault-skipped"
    FAULT_HEALED = "fault-healed"

    PHASE = "phase"
    CONVERGENCE = "convergence"
    HARNESS_LAG = "harness-lag"
    MACHINE_LOAD = "machine-load"
    TIMEOUT_SETTING = "timeout-setting"
    BROKER_PROPERTY = "broker-property"
    END_STATE = "end-state"
    REPLICA_OFFSETS = "replica-offsets"
    REPLICA_SAMPLE = "replica-sample"
    QUORUM_SAMPLE = "quorum-sample"
    STORED_LOG = "stored-log"
    STORED_SEGMENT = "stored-segment"
    STORED_BATCH = "stored-batch"
    STORED_MARKER = "stored-marker"
    STORED_INDEX_ENTRY = "stored-index-entry"
    STORED_EPOCH = "stored-epoch"
    STORED_SNAPSHOT = "stored-snapshot"
    STORED_PRODUCER = "stored-producer"


class Unit(NamedTuple):
    """The unit of a column's numbers."""

    name: str


class Repeated(NamedTuple):
    """Marks texts that repeat often, so that they are stored in a dictionary."""


Word = Annotated[str, Repeated()]
Nanoseconds = Annotated[int, Unit("ns")]
Milliseconds = Annotated[int, Unit("ms")]
Bytes = Annotated[int, Unit("bytes")]
Records = Annotated[int, Unit("records")]
"""An offset, or a number of records."""


class Event(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One event of a history.

    Events hold no references to each other, so the garbage collector need not walk the many that a run keeps.
    """

    # Every event
    time: Nanoseconds
    """When it happened, by the clock of the machine; −1 in ZooKeeper's transaction log."""
    process: Word
    """The process that recorded the event: `broker-2`, `producer-0`, `zookeeper`, `nemesis`, `harness`."""
    kind: Word
    """What the event records."""
    seq: int = 0
    """Position in the file of the process, or inside a multi of ZooKeeper: it orders events of equal time."""
    incarnation: Nanoseconds | None = None
    """The start of the broker's process: it tells the processes apart that ran one after the other."""
    node: int | None = None
    """The broker that the event is about, or that answered the client."""

    # Operations of clients
    op: int | None = None
    """The number of the operation: it pairs an invocation with its completion."""
    f: Word | None = None
    """The function of the operation: `send`, `poll`, `create-topic`, …"""
    key: int | None = None
    """The key of the record in a compacted topic; in the history of another system the key of the object."""
    value: int | None = None
    """The value that was written or read."""
    tombstone: bool | None = None
    """Whether the record has no value in the log; unset if it has one."""
    values: list[int] | None = None
    """The values that were read, in order; of a compare-and-set the old and the new value."""
    micro_operations: list[int] | None = None
    """The micro-operations of a transaction, one after the other: code (0 is r, 1 is append or w), key, count, and
    as many elements. Count −1: it is unknown what was read."""
    offsets: list[Records] | None = None
    """The offsets of the records that were read, in the order of `values`."""
    acks: int | None = None
    """The acknowledgements that the producer requested; −1 is all of the ISR."""
    delivery: Word | None = None
    """`idempotent` for a send whose record is stored once, however often it was sent."""
    producer_id: int | None = None
    """The id that the cluster gave to an idempotent or a transactional producer."""
    producer_epoch: int | None = None
    """The epoch of that producer id."""
    sequence: int | None = None
    """The sequence number of the batch among those of its producer, epoch and partition."""

    # Fetches of clients
    fetch_session: int | None = None
    """The id of the fetch session that a request names; 0: none."""
    fetch_epoch: int | None = None
    """The number of a fetch in its session; 0 and −1: a full request."""
    asked: list[str] | None = None
    """The partitions that a request names, each as `<topic id>-<number>`."""
    forgotten: list[str] | None = None
    """The partitions that a request removes from the fetch session, in the form of `asked`."""
    answered: list[str] | None = None
    """The partitions that an answer names, in the form of `asked`."""
    failed: list[str] | None = None
    """The partitions of `answered` that have an error."""

    # Transactions
    transactional_id: Word | None = None
    """The id that a transactional producer keeps when its process starts again."""
    transaction: int | None = None
    """The number of a transaction of our own producers, which no other transaction of the run has."""
    isolation: Word | None = None
    """`read_committed` if a read leaves out what is aborted or not yet decided; unset if it does not."""
    last_stable_offset: Records | None = None
    """The offset below which every transaction is decided, as the answer states it."""
    aborted: list[int] | None = None
    """The aborted transactions of an answer, one after the other: the producer's id and the first offset."""
    derived_from: int | None = None
    """The value of the record from which the record was derived."""
    coordinator_epoch: int | None = None
    """The epoch of the transaction coordinator that decided a transaction: the leader epoch of its log."""
    outcome: Word | None = None
    """How a transaction ends: `commit` or `abort`."""
    first_offset: Records | None = None
    """The first offset of a transaction in a log; −1: the log holds none of its data."""

    # Groups of consumers
    group: Word | None = None
    """The id of a group of consumers."""
    member: Word | None = None
    """The id that the coordinator has given to a member of the group."""
    generation: int | None = None
    """The generation of the group."""
    instance: Word | None = None
    """The instance id of a static member, which outlives its process (`group.instance.id`)."""
    assignor: Word | None = None
    """How the leader of the group assigns partitions: `range` or `cooperative-sticky`."""
    subscribed: list[str] | None = None
    """The topics to which a member subscribes."""

    # The topic and its partition
    topic: Word | None = None
    """The name of the topic."""
    topic_id: Word | None = None
    """The id of the topic, if the process knows it. A topic that is created again has another id."""
    partition: int | None = None
    """The number of the partition."""
    partition_count: int | None = None
    """The number of partitions that the topic is to have."""
    count: int | None = None
    """The number of things; the kind says of which."""

    # The controller and its decisions
    controller_id: int | None = None
    """The broker that `/controller` names."""
    controller_epoch: int | None = None
    """The epoch of the controller."""
    leader: int | None = None
    """The leader of the partition; −1: no leader."""
    leader_epoch: int | None = None
    """The epoch of the leader; of a batch the epoch in which it was appended."""
    partition_epoch: int | None = None
    """The version of the partition's state, which is the version of its znode."""
    broker_epoch: int | None = None
    """The epoch of a broker: the zxid of its registration."""
    isr: list[int] | None = None
    """The in-sync replicas."""
    isr_epochs: list[int] | None = None
    """The broker epochs of the members of `isr`, in that order; −1 is unknown."""
    maximal_isr: list[int] | None = None
    """The committed ISR and the members that the leader has proposed to add."""
    replicas: list[int] | None = None
    """The assigned replicas; the first is the preferred leader."""
    live: list[int] | None = None
    """The brokers that the controller considered alive."""
    strategy: Word | None = None
    """How the leader was chosen: `new`, `offline`, `offline-allow-unclean`, `unclean`, `reassign`, `preferred`,
    `controlled-shutdown`; or what else changed the state: `remove-from-isr`, `no-op`."""
    step: Word | None = None
    """Which step of several this is; the kind names them."""
    from_state: Word | None = None
    """The state that a state machine left."""
    to_state: Word | None = None
    """The state that a state machine reached."""
    replica: int | None = None
    """The broker of the replica that a transition is about; unset if it is about the partition."""
    change: Word | None = None
    """How the proposed ISR differs from the committed one: `shrink` or `expand`."""
    reason: Word | None = None
    """Why it happened."""

    # Logs
    role: Word | None = None
    """As what the broker appended: `leader` or `follower`."""
    offset: Records | None = None
    """An offset of the log; the kind says which."""
    last_offset: Records | None = None
    """The last offset of a batch or of a range, included."""
    crc: int | None = None
    """The CRC-32C of the batch."""
    high_watermark: Records | None = None
    """The high watermark, exclusive."""
    high_watermark_before: Records | None = None
    """The high watermark before the event."""
    log_start_offset: Records | None = None
    """The first offset of the log."""
    log_end_offset: Records | None = None
    """The offset behind the last record of the log."""
    producers_end: Records | None = None
    """The offset behind the last batch of which the log remembers the producer; 0: the log remembers no producer."""
    cleaner_offset: Records | None = None
    """Below this offset compaction may have removed records."""
    recovery_point: Records | None = None
    """Below this offset the log was synced."""
    superseded_offset: Records | None = None
    """The first record of the compacted part of a log that a later one of its key in that part supersedes."""
    segment_offset: Records | None = None
    """The base offset of a segment, which is in the names of its files."""
    position: Bytes | None = None
    """Where a batch begins in the file of its segment."""
    delete_horizon_ms: Milliseconds | None = None
    """From this time on, since 1970, compaction may remove the tombstones of the batch; unset if it is not set."""
    max_timestamp: Milliseconds | None = None
    """The largest time of a record, since 1970, as its producer or leader wrote it; −1: no record has a time."""
    bytes_before: Bytes | None = None
    """The size of the segments before compaction."""
    bytes_after: Bytes | None = None
    """The size of the segments after compaction."""
    log_dir: Word | None = None
    """The path of a log directory."""
    alive: bool | None = None
    """Whether the broker was alive when the cluster was stopped."""

    # Requests between brokers
    api: Word | None = None
    """The name of the request."""
    peer: int | None = None
    """The broker at the other end: the receiver of a request that was sent, the sender of one that was handled.
"""
    error: Word | None = None
    """What went wrong: the name of an error, or a sentence; `NONE` if nothing did."""

    # Settings of brokers
    unclean_leader_election_enable: bool | None = None
    """The broker's `unclean.leader.election.enable`."""
    min_insync_replicas: int | None = None
    """The broker's `min.insync.replicas`."""

    # ZooKeeper
    session: int | None = None
    """The id of a ZooKeeper session."""
    session_state: Word | None = None
    """The state of the broker's session as the broker knows it: `connected`, `suspended` or `expired`."""
    timeout_ms: Milliseconds | None = None
    """The time-out of the session, or of a producer's transactions."""
    zxid: int | None = None
    """The id of a transaction of ZooKeeper."""
    zk_version: int | None = None
    """The version of a znode: after a write the new one, in a check the one that it requires."""
    zk_op: Word | None = None
    """The operation on a znode: `create`, `setData`, `delete` or `check`."""
    path: str | None = None
    """The path of a znode."""
    data: str | None = None
    """The data of a znode."""
    ephemeral: bool | None = None
    """Whether the znode is ephemeral."""
    wall_ms: Milliseconds | None = None
    """The wall clock of ZooKeeper's leader, since 1970."""

    # Faults
    fault: Word | None = None
    """The name of the fault."""
    fault_id: int | None = None
    """The number of the fault in the run: all events of one fault share it."""
    targets: list[str] | None = None
    """The nodes that the fault's selector resolved to."""
    effect: Word | None = None
    """Whether the effect was `measured`, its end `verified`, or neither: `none`."""
    detail: str | None = None
    """What the fault intends, or what was measured of it: a JSON object."""

    # The harness
    phase: Word | None = None
    """The phase that begins."""
    check: Word | None = None
    """The name of a convergence check."""
    source: Word | None = None
    """Where a final state was read: `zookeeper`, `metadata` of a broker, or `logs` of a broker."""
    duration_ms: Milliseconds | None = None
    """How long it took, how late it was, or how long it is set to be."""
    setting: Word | None = None
    """The name of a setting, as the configuration has it."""

    # Histories of other systems
    original: str | None = None
    """The value and other entries of an operation that no check reads, as written: EDN."""
    part_of: Word | None = None
    """The micro-operation that a send or a poll was part of: `txn#2` is number 2 of a transaction."""


def plain(hint: Any) -> Any:
    """Return a column's type without its marks and without ``None``."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif get_origin(hint) in (UnionType, Union):
            (hint,) = (part for part in get_args(hint) if part is not NoneType)
        else:
            return hint


def marks(hint: Any) -> list[Any]:
    """Return the marks of a column's type, those of its elements too."""
    collected = list(getattr(hint, "__metadata__", ()))
    for argument in get_args(hint):
        if not isinstance(argument, Unit | Repeated):
            collected += marks(argument)
    return collected
