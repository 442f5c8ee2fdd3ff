"""The words of a history: one flat record, its kinds, and which columns each kind fills.

Every event, whoever wrote it, is one ``Event``: a flat record of optional columns, so that JSON lines,
Arrow and a reader's eye all see the same names. A column that a kind does not use stays ``None`` and is
left out of the JSON line.

Time is ``CLOCK_MONOTONIC`` in nanoseconds (the simulator's clock in simulation). Inside a process the clock
is read *after* the effect and the event is written *before* anybody else can see the effect. Events of
ZooKeeper's transaction log carry ``time = -1``: their order is the zxid, never the clock.

Kinds and their columns (``tp`` = topic, topic_id, partition):

=========================  =========================================================================
Client operations (process ``producer-3``, ``consumer-0``, ``admin-0``, ``final-2``; Jepsen's types)
----------------------------------------------------------------------------------------------------
invoke, ok, fail, info     op (pairs them), f, tp; ``fail`` = certainly did not happen, ``info`` = unknown.
                           f=``send``: value, acks, key (of the record, if the topic is compacted); ok adds offset,
                           node (the broker that answered); fail/info add error. Of an idempotent producer, which
                           sends until it has an answer: role (``idempotent``), detail (producer id, epoch, sequence
                           number).
                           f=``init-producer-id``: ok adds value (the producer id).
                           f=``poll``: offset (the position asked for); ok adds offsets, values,
                           high_watermark, node; fail/info add error. A poll of the final reads has
                           the process ``final-*``.
                           f=``create-topic``, ``create-partitions``: topic, value (how many partitions it is
                           to have); f=``delete-topic``: topic.
                           f=``describe``: tp; ok adds replicas. f=``reassign``: tp, replicas (the target);
                           f=``cancel-reassign``, ``elect-leaders`` (the preferred one): tp.
                           f=``log-start``: tp; ok adds offset (a reader whose position was refused asks where the
                           log starts, and goes on from there). f=``delete-records``: tp, offset (delete what is
                           below); ok adds log_start_offset (of the replica that is furthest behind).
                           f=``alter-log-dir``: tp, node, path (the log directory to which the broker is to move its
                           replica; ok: it has begun to).
final-read                 tp, offset (position reached), high_watermark (the leader's), log_start_offset (where it
                           had to begin; 0 if at the beginning), error
Operations of other systems (process as it is named there; ``nemesis.history.foreign`` reads them)
----------------------------------------------------------------------------------------------------
invoke, ok, fail, info     as above, but for the workload that ``run.json`` names. key: which object (unset: there is
                           but one). Keys and values are never negative: what is no number from 0 to 2**62 − 1 was given
                           one from 2**62 on. error: why it ended so.
                           A register, f=``write``: value. f=``read``: ok adds value (unset: nil, the initial one).
                           f=``cas``: values (old, new); ok = it was done, fail = it was not.
                           A mutex, f=``acquire``, ``release``.
                           A set, f=``add``: value. f=``read``: ok adds values.
                           A queue, f=``enqueue``: value. f=``dequeue``: ok adds value (unset: it was empty).
                           f=``drain``: ok adds values.
                           A log, f=``send``, ``poll``: as of our own clients, topic = the log's name, partition 0; a
                           poll has no position that it asked for.
                           f=``txn``: values = its micro-operations, flat, one after the other: code (0 = r, 1 = append
                           or w), key, count, as many elements. An append or a w: the one element. An r, of a list:
                           the list read; of a register: the value, none for nil. count −1: not known what was read (of
                           an invoke, and of whatever has not ended ok). The ok tells all micro-operations again.
                           Any other f: detail (what it was about, as it was written).
Brokers (process ``broker-N``, node N, incarnation = one process life, grows with every start)
----------------------------------------------------------------------------------------------------
broker-started             start of a process life; the first event of the incarnation. detail: JSON of the
                           settings that checks depend on (``unclean.leader.election.enable``,
                           ``min.insync.replicas``)
broker-reconfigured        those settings have changed while the broker runs; detail as in broker-started
broker-registered          broker_epoch, session, zxid
session-state              session, detail (``connected``, ``suspended``, ``expired``)
controller-elected         controller_epoch, zk_version (of /controller_epoch), session, zxid
controller-failover        controller_epoch: onControllerFailover finished
controller-resigned        controller_epoch (that it had), detail (why)
leader-elected             tp, leader, leader_epoch, isr, partition_epoch, controller_epoch, zxid, replicas,
                           live (brokers alive in the controller's view), detail (strategy: ``new``,
                           ``offline``, ``offline-allow-unclean``, ``unclean``, ``reassign``, ``preferred``,
                           ``controlled-shutdown``, ``no-op``; offline-replica changes: ``remove-from-isr``).
                           Written once the state znode is committed, before anybody is told.
election-asked             tp, controller_epoch, detail: ``unclean`` when the controller begins to deal with an
                           ElectLeaders that demands an unclean election, ``answered`` when it has
znode-attempt              path, controller_epoch, detail: a controller's fenced write, or a leader's of its ISR, is
                           about to be sent
znode-outcome              path, controller_epoch, error (``NONE`` or the failure), zxid, zk_version
control-request-sent       api, peer, controller_epoch, broker_epoch (of the receiver, as carried); once per
                           attempt, before its bytes leave
control-request-handled    api, peer (controller id), controller_epoch (carried), broker_epoch (carried),
                           error (``NONE`` = accepted). Written before its effects are visible elsewhere.
alter-partition-handled    tp, peer (the leader that proposes), broker_epoch (the leader's, as carried),
                           leader_epoch and partition_epoch (as carried), isr (as proposed), isr_epochs (its members'
                           broker epochs in that order, −1 unknown), error (``NONE`` = the ISR is as proposed), zxid
                           (of the write; none where nothing was left to be written). The controller's, one per
                           partition of a request, before its answer.
transition                 tp or (tp, peer), detail ``partition New->Online`` / ``replica ...``; error if illegal
log-loaded                 tp, log_start_offset, log_end_offset, high_watermark: a log opened or created in
                           this incarnation
become-leader              tp, leader_epoch, partition_epoch, controller_epoch, isr, replicas, log_end_offset,
                           high_watermark, log_start_offset
become-follower            tp, leader, leader_epoch, partition_epoch, controller_epoch, log_end_offset,
                           high_watermark
append                     tp, role (``leader``/``follower``), leader_epoch (the batch's), offset (base),
                           last_offset, crc (the batch's CRC-32C), log_end_offset (after). One event per
                           record batch.
truncate                   tp, offset (asked for), log_end_offset (after), high_watermark, leader_epoch,
                           log_start_offset
log-start-offset           tp, log_start_offset (raised to), log_end_offset, high_watermark, detail (why:
                           ``segment-deletion``, ``client-record-deletion``, ``leader-offset-incremented``)
log-dir-changed            tp, path (the log directory in which the replica's log is from now on), log_start_offset,
                           log_end_offset, high_watermark of what is there
log-cleaned                tp, offset, last_offset (of the segments that were compacted, both included),
                           log_start_offset, log_end_offset, high_watermark (as it was when the cleaner chose them),
                           detail (bytes before and after). Of what was in there the records may be gone that a later
                           one of the same key supersedes. Written before the compacted segment takes the place of
                           the others, so perhaps for nothing.
batch-cleaned              tp, leader_epoch, offset (base), last_offset, crc: such a segment has a batch as it now is,
                           with fewer records or none; before its log-cleaned
high-watermark             tp, leader_epoch, high_watermark, log_end_offset, isr (committed), maximal_isr;
                           the leader's only, whenever it moves
isr-change-proposed        tp, leader_epoch, partition_epoch, isr (committed), maximal_isr, detail (shrink/expand)
isr-change-committed       tp, leader_epoch, partition_epoch, isr, maximal_isr
produce-acknowledged       tp, leader_epoch (of the leader when it answered), offset, last_offset, acks,
                           high_watermark, isr; only for error NONE and acks other than 0
replica-stopped            tp, detail (``stop``, or ``deleting`` before its log is deleted and ``delete`` after)
metadata-updated           controller_epoch, peer (controller id), detail (count)
ZooKeeper (process ``zookeeper``, time −1, ordered by (zxid, seq))
----------------------------------------------------------------------------------------------------
znode                      zxid, session, zk_op (create, setData, delete, check), path, data, zk_version
                           (after a setData: the new one; of a check: the version it demanded), ephemeral,
                           wall_ms; seq = index inside a multi. Parsed columns where the path is known:
                           ``/controller`` controller_id; ``/controller_epoch`` controller_epoch;
                           ``/brokers/ids/N`` node, broker_epoch; ``/brokers/topics/T`` topic, topic_id;
                           ``/brokers/topics/T/partitions/P/state`` tp, leader, leader_epoch, isr,
                           controller_epoch (topic_id as known at that zxid).
znode-refused              the same for each part of a failed multi, error = the ZooKeeper error: no effect
session-created            zxid, session, detail (time-out in ms)
session-closed             zxid, session, detail ``expired`` (by the server, cxid 0) or ``closed``; the
                           ephemerals that went with it follow as ``znode`` deletes of the same zxid
Nemesis (process ``nemesis``)
----------------------------------------------------------------------------------------------------
fault-invoke               fault_id, fault (its name), targets (resolved nodes), detail (JSON: the intent)
fault-applied              fault_id, fault, targets, effect (``measured`` or ``none``), detail (JSON: measured)
fault-skipped              fault_id, fault, error (why)
fault-healed               fault_id, fault, targets, effect (``verified`` or ``none``), detail
Harness (process ``harness``)
----------------------------------------------------------------------------------------------------
phase                      detail: warm-up, faults, heal, quiet, final-reads, convergence, end
convergence                detail (the check's name), error (``NONE`` or what is wrong), topic, partition, node;
                           offset = milliseconds it took from the heal
end-state                  what was seen once all was over. detail: who tells (``zookeeper``, ``metadata`` or ``logs``
                           of broker node). One with a tp for each partition told of (replicas, isr; of ``logs``
                           none), then one without: offset (how many there were), or error (why nobody could
                           look).
stored-log                 the log of a replica as its files have it once the broker is stopped: node, tp,
                           log_start_offset, log_end_offset, high_watermark (as checkpointed last), offset
                           (compaction may have removed records below it), error (``NONE``, or where the files are
                           damaged: what is behind that is not read), detail (``alive`` or ``dead``: the broker,
                           when the cluster was stopped). Without a tp: a broker whose files could not be read
                           (error), or how many logs it has (offset).
stored-batch               node, tp, offset (base), last_offset, leader_epoch, crc: one batch of such a log, whose
                           bytes have this CRC-32C
harness-lag                offset: scheduling lag of the harness's loop in milliseconds
=========================  =========================================================================
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

NO_ERROR: Final = "NONE"
IDEMPOTENT: Final = "idempotent"
"""The ``role`` of sends that stand in the log once, however often they were sent."""


class Kind(StrEnum):
    """What an event says; the module docstring lists the columns that each kind fills."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"
    FINAL_READ = "final-read"

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
    ALTER_PARTITION_HANDLED = "alter-partition-handled"
    TRANSITION = "transition"
    LOG_LOADED = "log-loaded"
    BECOME_LEADER = "become-leader"
    BECOME_FOLLOWER = "become-follower"
    APPEND = "append"
    TRUNCATE = "truncate"
    LOG_START_OFFSET = "log-start-offset"
    LOG_DIR_CHANGED = "log-dir-changed"
    LOG_CLEANED = "log-cleaned"
    BATCH_CLEANED = "batch-cleaned"
    HIGH_WATERMARK = "high-watermark"
    ISR_CHANGE_PROPOSED = "isr-change-proposed"
    ISR_CHANGE_COMMITTED = "isr-change-committed"
    PRODUCE_ACKNOWLEDGED = "produce-acknowledged"
    REPLICA_STOPPED = "replica-stopped"
    METADATA_UPDATED = "metadata-updated"

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
    END_STATE = "end-state"
    STORED_LOG = "stored-log"
    STORED_BATCH = "stored-batch"


class Event(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One event of a history. Units: ``time`` in ns, ``wall_ms`` in ms since 1970, offsets in records.

    Events hold no references to each other, so the garbage collector need not walk the many that a run keeps.
    """

    time: int
    process: str
    kind: str
    seq: int = 0
    """Position in the writer's file (in its multi, for ZooKeeper): breaks ties of ``time``."""
    incarnation: int | None = None
    node: int | None = None

    op: int | None = None
    f: str | None = None
    key: int | None = None
    value: int | None = None
    values: list[int] | None = None
    offsets: list[int] | None = None
    acks: int | None = None

    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None

    controller_id: int | None = None
    controller_epoch: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    broker_epoch: int | None = None
    isr: list[int] | None = None
    isr_epochs: list[int] | None = None
    maximal_isr: list[int] | None = None
    replicas: list[int] | None = None
    live: list[int] | None = None

    role: str | None = None
    offset: int | None = None
    last_offset: int | None = None
    crc: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None

    api: str | None = None
    peer: int | None = None
    error: str | None = None

    session: int | None = None
    zxid: int | None = None
    zk_version: int | None = None
    zk_op: str | None = None
    path: str | None = None
    data: str | None = None
    ephemeral: bool | None = None
    wall_ms: int | None = None

    fault: str | None = None
    fault_id: int | None = None
    targets: list[str] | None = None
    effect: str | None = None

    detail: str | None = None
