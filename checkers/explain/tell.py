"""What an event says, as a clause in plain words: who did what, with the values that properties speak about.

One small function for each kind of event that can prove something. A kind without one is told by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.foreign_operations import FUNCTIONS, client, error, foreign_operation
from nemesis.checkers.explain.producer_requests import (
    is_producer_request,
    producer_request,
    transaction,
    transaction_begun,
)
from nemesis.checkers.explain.words import (
    HARNESS,
    brokers,
    counted,
    duration,
    listed,
    offsets,
    tp,
    zxid,
)
from nemesis.checkers.framework.event_list import succeeded
from nemesis.history.events import INITIAL_TOPICS, Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM
from nemesis.history.vocabulary.controller import Transition

_MAX_READ: Final = 8
"""More offsets than this are told by the first and the last."""


def tell(event: Event) -> str:
    """Return the clause, in the past tense, without a capital letter or a full stop."""
    if event.topic is None and event.f in FUNCTIONS:
        return foreign_operation(event)
    if is_producer_request(event):
        return producer_request(event)
    return _CLAUSES.get(event.kind, _by_name)(event)


def since(earlier: Event, later: Event) -> str:
    """Return how long after the other one an event came; nothing if nobody can know, or the clause says when."""
    if later.kind in (Kind.END_STATE, Kind.REPLICA_OFFSETS):
        return ""
    if min(earlier.time, later.time) >= 0:
        apart = later.time - earlier.time
        if apart == 0:
            return "at the same moment"
        return f"{duration(abs(apart))} {'later' if apart > 0 else 'earlier'}"
    if later.zxid and earlier.zxid and later.time < 0 and earlier.time < 0:
        log = "the metadata log's" if later.process == QUORUM else "ZooKeeper's"
        return f"after that in {log} order" if later.zxid > earlier.zxid else ""
    return ""


def _by_name(event: Event) -> str:
    return f"{event.process} recorded {event.kind.replace('-', ' ')}"


def _of(event: Event) -> str:
    """The partition or topic that it is about."""
    return "everything" if event.topic is None else tp(event.topic, event.partition)


def _actor(event: Event) -> str:
    return f"broker {event.node}" if event.node is not None else event.process


# -- ZooKeeper


def _znode(event: Event) -> str:
    session, stamp = f"session {event.session or 0:#x}", f"({zxid(event.zxid)})"
    if event.process == QUORUM:
        session, stamp = "the quorum", f"(offset {event.zxid})"
    if event.zk_op == "delete":
        return f"{session} deleted {event.path} {stamp}"
    did = "created" if event.zk_op == "create" else "set"
    if event.controller_epoch is not None and event.path == "/controller_epoch":
        return f"{session} {did} /controller_epoch to {event.controller_epoch} {stamp}"
    if event.leader_epoch is not None:
        return f"{session} wrote the state of {_of(event)}: {_state(event)} {stamp}"
    if event.path == "/controller_epoch":
        return f"{session} {did} /controller_epoch to {event.data!r} {stamp}"
    return f"{session} {did} {event.path} {stamp}"


def _state(event: Event) -> str:
    leader = "no leader" if event.leader in (None, -1) else f"leader {event.leader}"
    epoch = f", leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    return f"{leader}{epoch}{f', ISR {event.isr}' if event.isr is not None else ''}"


# -- controllers


def _controller_elected(event: Event) -> str:
    return f"{_actor(event)} won controller epoch {event.controller_epoch}"


def _controller_failover(event: Event) -> str:
    live = f", with {brokers(event.live)} alive" if event.live is not None else ""
    return f"{_actor(event)} finished its failover as controller of epoch {event.controller_epoch}{live}"


def _controller_resigned(event: Event) -> str:
    return (
        f"{_actor(event)} resigned from controller epoch {event.controller_epoch}: {event.reason}"
    )


def _settings(event: Event) -> str:
    did = "started" if event.kind == Kind.BROKER_STARTED else "continued"
    return f"{_actor(event)} {did} with min.insync.replicas={event.min_insync_replicas}"


def _broker_change(event: Event) -> str:
    return f"controller {event.node} finished handling a change of brokers, with {brokers(event.live)} alive"


def _controlled_shutdown(event: Event) -> str:
    answer = f"that it leads {event.count} partitions" if succeeded(event) else f"{event.error}"
    return f"controller {event.node} answered broker {event.peer}, which shuts down, {answer}"


def _partition_metadata(event: Event) -> str:
    epoch = f"partition epoch {event.partition_epoch}"
    return f"{_actor(event)} stored the metadata of {_of(event)}: {_state(event)}, {epoch}"


def _sent(event: Event) -> str:
    request = f"{_actor(event)} sent {event.api or 'a control request'} to broker {event.peer}"
    epoch = event.controller_epoch
    as_whom = f" as controller of epoch {epoch}" if epoch is not None else ""
    return f"{request}{as_whom}{_for_epoch(event)}"


def _handled(event: Event) -> str:
    did = "accepted" if succeeded(event) else f"refused ({event.error})"
    of = f" of controller epoch {event.controller_epoch}" if event.controller_epoch else ""
    return f"{_actor(event)} {did} {event.api or 'a control request'}{of}{_for_epoch(event)}"


def _answered(event: Event) -> str:
    version = "" if event.partition_epoch is None else f", partition epoch {event.partition_epoch}"
    state = "" if event.leader is None else f": {_state(event)}{version}"
    step = "" if event.step is None else f" ({event.step})"
    return f"{_actor(event)} answered {event.error} to {event.api} for {_of(event)}{state}{step}"


def _stopped(event: Event) -> str:
    did = {
        "stop": "stopped the replica of",
        "deleting": "began to delete the log of",
        "delete": "deleted the log of",
    }.get(event.step or "", "stopped the replica of")
    return f"{_actor(event)} {did} {_of(event)}"


def _fetch_answered(event: Event) -> str:
    fetches = f"its fetches of {_of(event)} in leader epoch {event.leader_epoch}"
    return f"{_actor(event)} received {event.error} from broker {event.peer} for {fetches}"


def _for_epoch(event: Event) -> str:
    return f", meant for its broker epoch {event.broker_epoch}" if event.broker_epoch else ""


def _registered(event: Event) -> str:
    return f"{_actor(event)} registered with broker epoch {event.broker_epoch}"


def _leader_elected(event: Event) -> str:
    how = f" ({event.strategy})" if event.strategy else ""
    live = f", while it saw {brokers(event.live)} alive" if event.live is not None else ""
    return f"controller {event.node} elected for {_of(event)}{how}: {_state(event)}{live}"


def _alter_partition(event: Event) -> str:
    epochs = f" with the broker epochs {event.isr_epochs}" if event.isr_epochs else ""
    by = f" by broker {event.peer} of broker epoch {event.broker_epoch}"
    did = "committed" if succeeded(event) else f"refused ({event.error})"
    return (
        f"controller {event.node} {did} ISR {event.isr or []}{epochs} of {_of(event)}, proposed{by}"
    )


def _transition(event: Event) -> str:
    moved = Transition.of(event)
    if moved is None:
        return f"controller {event.node} traced a transition of {_of(event)} without its states"
    subject = _of(event)
    if moved.replica is not None:
        subject = f"the replica of {subject} on broker {moved.replica}"
    states = f"from {moved.from_state} to {moved.to_state}"
    return f"controller {event.node} of epoch {moved.controller_epoch} changed {subject} {states}"


# -- replicas


def _become_leader(event: Event) -> str:
    log = (
        f", with a log that ended at {event.log_end_offset}"
        if event.log_end_offset is not None
        else ""
    )
    known = _producers(event)
    return f"{_actor(event)} became leader of {_of(event)} in leader epoch {event.leader_epoch}{log}{known}"


def _become_follower(event: Event) -> str:
    whom = f" of broker {event.leader}" if event.leader is not None else ""
    epoch = f" in leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    log = (
        f", with a log that ended at {event.log_end_offset}"
        if event.log_end_offset is not None
        else ""
    )
    return (
        f"{_actor(event)} became a follower{whom} for {_of(event)}{epoch}{log}{_producers(event)}"
    )


def _append(event: Event) -> str:
    batch = f"{offsets(event.offset, event.last_offset)} of {_of(event)}"
    by = "as leader " if event.role == "leader" else ""
    epoch = f"leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    crc = f"CRC {event.crc}" if event.crc is not None else ""
    known = ", ".join(filter(None, (epoch, crc)))
    return (
        f"{_actor(event)} appended {batch} {by}({known})"
        if known
        else f"{_actor(event)} appended {batch}"
    )


def _acknowledged(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {_of(event)}"
    asked = "acks=all" if event.acks == -1 else f"acks={event.acks}"
    return (
        f"{_actor(event)} acknowledged {records} with {asked} as leader of epoch {event.leader_epoch}; its high "
        f"watermark was {event.high_watermark}"
    )


def _high_watermark(event: Event) -> str:
    counted = event.isr if event.maximal_isr is None else event.maximal_isr
    return (
        f"leader {event.node} (leader epoch {event.leader_epoch}) set the high watermark of {_of(event)} to "
        f"{event.high_watermark}, with {brokers(counted)} in sync"
    )


def _isr_change_proposed(event: Event) -> str:
    isrs = f"committed {event.isr or []}, maximal {event.maximal_isr or []}"
    return f"leader {event.node} of leader epoch {event.leader_epoch} proposed another ISR of {_of(event)} ({isrs})"


def _isr_change_committed(event: Event) -> str:
    known = (
        f", and knew that the logs of its members ended at {event.offsets}" if event.offsets else ""
    )
    return (
        f"leader {event.node} of {_of(event)} received the committed ISR {event.isr or []}{known}"
    )


def _transaction_opened(event: Event) -> str:
    return f"{_actor(event)} appended the first batch of {_transaction(event)} at offset {event.offset} of {_of(event)}"


def _marker_appended(event: Event) -> str:
    began = (
        f", which began at offset {event.first_offset}" if (event.first_offset or 0) >= 0 else ""
    )
    return (
        f"{_actor(event)} appended the marker of coordinator epoch {event.coordinator_epoch} at offset {event.offset} "
        f"of {_of(event)}: {event.outcome} of {_transaction(event)}{began}"
    )


def _transaction_partition_added(event: Event) -> str:
    return (
        f"the coordinator on broker {event.node} added {_of(event)} to {_transaction(event)}, whose time-out is "
        f"{event.timeout_ms} ms"
    )


def _transaction_completed(event: Event) -> str:
    return (
        f"the coordinator on broker {event.node}, of epoch {event.coordinator_epoch}, completed {_transaction(event)} "
        f"in {_of(event)}: {event.outcome}"
    )


def _stored_marker(event: Event) -> str:
    return (
        f"the files of broker {event.node} hold the marker of coordinator epoch {event.coordinator_epoch} at offset "
        f"{event.offset} of {_of(event)}: {event.outcome} of {_transaction(event)}"
    )


def _transaction(event: Event) -> str:
    return f"a transaction of producer {event.producer_id}, epoch {event.producer_epoch}"


def _truncate(event: Event) -> str:
    own = f"; its own high watermark was {event.high_watermark}" if event.high_watermark else ""
    before = event.high_watermark_before
    if before is not None and before != event.high_watermark:
        own = f"; its own high watermark was {before} before and {event.high_watermark} after"
    end = f"{event.log_end_offset}{own}{_producers(event)}"
    return f"{_actor(event)} truncated its log of {_of(event)} to {end}"


def _log_loaded(event: Event) -> str:
    return f"{_actor(event)} opened its log of {_of(event)}, which {_extent(event)}"


def _log_dir_changed(event: Event) -> str:
    latest = (
        f"; its latest leader epoch was {event.leader_epoch}"
        if event.leader_epoch is not None and event.leader_epoch >= 0
        else ""
    )
    return f"{_actor(event)} moved {_of(event)} to another log directory, where the log {_extent(event)}{latest}"


def _extent(event: Event) -> str:
    starts = f"started at {event.log_start_offset} and " if event.log_start_offset else ""
    return f"{starts}ended at {event.log_end_offset}{_producers(event)}"


def _producers(event: Event) -> str:
    """A clause about the producers that a log remembers, where that is more than the log holds."""
    known, end = event.producers_end, event.log_end_offset
    if known is None or end is None or known <= end:
        return ""
    return f", and remembered producers up to offset {known - 1}"


def _log_start(event: Event) -> str:
    why = f" ({event.reason})" if event.reason else ""
    return f"{_actor(event)} raised the start of its log of {_of(event)} to {event.log_start_offset}{why}"


def _log_cleaned(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {_of(event)}"
    return f"{_actor(event)} compacted {records}; its high watermark was {event.high_watermark}"


def _segments_deleted(event: Event) -> str:
    segments = f"the segments of {_of(event)} from offset {event.offset} to {event.last_offset}"
    return f"broker {event.node} deleted {segments}"


def _job_started(event: Event) -> str:
    return f"broker {event.node} started a run of {event.step}"


def _log_dir_failed(event: Event) -> str:
    return f"broker {event.node} reported that its log directory {event.log_dir} failed ({event.error})"


def _stored_log(event: Event) -> str:
    if event.topic is None:
        return f"the files of broker {event.node} could not be read ({event.error})"
    damage = "" if succeeded(event) else f", and are damaged there: {event.error}"
    checkpointed = event.high_watermark
    mark = (
        f" and its checkpointed high watermark was {checkpointed}"
        if checkpointed is not None
        else ""
    )
    return f"in the files of broker {event.node} {_of(event)} ended at {event.log_end_offset}{mark}{damage}"


def _stored_segment(event: Event) -> str:
    segment = (
        f"a segment of {_of(event)} from offset {event.offset} on, {event.count or 0:,} bytes long"
    )
    return f"the files of broker {event.node} had {segment}"


def _stored_batch(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {_of(event)}"
    return (
        f"the files of broker {event.node} held {records} as a batch of leader epoch {event.leader_epoch}, CRC "
        f"{event.crc}"
    )


def _stored_index_entry(event: Event) -> str:
    entry = f"offset {event.offset} at byte {event.position}"
    if event.position is None:
        entry = f"time {event.max_timestamp} at offset {event.offset}"
    segment = f"the segment of {_of(event)} from offset {event.segment_offset} on"
    return f"the files of broker {event.node} had an index of {segment} with {entry}"


def _stored_epoch(event: Event) -> str:
    epoch = f"leader epoch {event.leader_epoch} begins at offset {event.offset}"
    return f"by the files of broker {event.node} {epoch} of {_of(event)}"


def _stored_snapshot(event: Event) -> str:
    snapshot = f"a snapshot of the producers of {_of(event)} below offset {event.offset}"
    return f"the files of broker {event.node} had {snapshot}"


def _stored_producer(event: Event) -> str:
    batch = (
        f"whose last batch ends at offset {event.last_offset} and sequence number {event.sequence}"
    )
    return f"{_stored_snapshot(event)} with producer {event.producer_id}, {batch}"


# -- clients


def _in_group(event: Event, *, by: str = "") -> str:
    """The request of a member of a group; ``by`` names the member where the sentence does not."""
    request = event.f or "a request"
    if event.f == "commit-offset":
        request = f"commit of offset {event.offset} of {_of(event)} (commit {event.value})"
    elif event.f == "fetch-offset":
        request = f"question for the committed offset of {_of(event)}"
    generation = f" in generation {event.generation}" if event.generation is not None else ""
    return f"the {request}{by}{generation} of group {event.group}"


def _group_answer(event: Event) -> str:
    if event.f == "join-group":
        answer = f"is in generation {event.generation} of group {event.group} as {event.member}"
        return f"broker {event.node} answered {event.process} that it {answer}"
    if event.f == "fetch-offset":
        offset = "no offset" if event.offset == -1 else f"offset {event.offset}"
        number = "" if event.offset == -1 else f" (commit {event.value})"
        answer = f"{offset} of {_of(event)} is committed in group {event.group}{number}"
        return f"broker {event.node} answered {event.process} that {answer}"
    return f"broker {event.node} accepted {_in_group(event, by=_by(event))}"


def _by(event: Event) -> str:
    return f" of {event.process}"


def _assigned(event: Event) -> str:
    where = f"in generation {event.generation} of group {event.group}"
    did = "was assigned" if event.kind == Kind.ASSIGNED else "gave up"
    return f"{event.process} {did} {_of(event)} {where} as {event.member}"


def _invoked(event: Event) -> str:
    if event.f == "send":
        within = "" if event.transaction is None else f" in {transaction(event)}"
        return f"{client(event)} sent value {event.value} to {_of(event)}{within}"
    if event.group is not None:
        return f"{event.process} sent broker {event.node} {_in_group(event)}"
    return f"{client(event)} requested {_operation(event)}"


def _ok(event: Event) -> str:
    if event.group is not None:
        return _group_answer(event)
    if event.f == "send":
        position = f"offset {event.offset} of {_of(event)}"
        return f"{client(event)} received the answer that value {event.value} is at {position}"
    if event.f == "poll":
        where = "" if event.offset is None else f" from {event.offset}"
        return f"{client(event)} polled {_of(event)}{where} and received {_read(event)}"
    if event.f == "log-start":
        return f"{client(event)} received the answer that {_of(event)} starts at {event.log_start_offset}"
    if event.f in ("earliest-offset", "latest-offset"):
        answer = f"the {event.f} of {_of(event)} is {event.offset}"
        return f"broker {event.node} answered {client(event)} that {answer}"
    if event.f == "epoch-end":
        answer = f"leader epoch {event.leader_epoch} of {_of(event)} ends at {event.offset}"
        return f"broker {event.node} answered {client(event)} that {answer}"
    if event.f == "describe":
        return (
            f"{client(event)} received the answer that {_of(event)} is on {brokers(event.replicas)}"
        )
    return f"{client(event)} received the answer that {_operation(event)} had succeeded"


def _read(event: Event) -> str:
    read_offsets = event.offsets or []
    if not read_offsets:
        if event.log_start_offset is None:
            return "nothing"
        stated = f"high watermark {event.high_watermark}, log start {event.log_start_offset}"
        return f"nothing from broker {event.node} ({stated})"
    if len(read_offsets) > _MAX_READ:
        return f"{len(read_offsets)} records, offsets {read_offsets[0]} to {read_offsets[-1]}"
    word = "offset" if len(read_offsets) == 1 else "offsets"
    return f"{word} {listed(read_offsets)} (value{'s' * (len(read_offsets) > 1)} {listed(event.values or [])})"


def _failed(event: Event) -> str:
    if event.f == "send":
        return f"the send of value {event.value} to {_of(event)} by {client(event)} certainly failed{error(event)}"
    if event.group is not None:
        return f"{_in_group(event, by=_by(event))} was refused{error(event)}"
    return f"{_operation(event)} by {client(event)} failed{error(event)}"


def _unknown(event: Event) -> str:
    if event.group is not None:
        return f"the outcome of {_in_group(event, by=_by(event))} is unknown{error(event)}"
    if event.f == "send":
        return (
            f"the outcome of the send of value {event.value} to {_of(event)} by {client(event)} is "
            f"unknown{error(event)}"
        )
    return f"the outcome of {_operation(event)} by {client(event)} is unknown{error(event)}"


def _operation(event: Event) -> str:
    argument = ""
    if event.partition_count is not None:
        argument = f" ({counted(event.partition_count, 'partition')})"
    elif event.value is not None:
        argument = f" (value {event.value})"
    elif event.values is not None and len(event.values) <= _MAX_READ:
        argument = f" (values {listed(event.values)})"
    target = f" to {brokers(event.replicas)}" if event.replicas is not None else ""
    return f"{event.f} of {_of(event)}{argument}{target}"


def _final_read(event: Event) -> str:
    how = "" if succeeded(event) else f", and ended with {event.error}"
    return (
        f"the final reader {event.process} read {_of(event)} up to offset {event.offset}, with high watermark "
        f"{event.high_watermark}{how}"
    )


# -- harness


def _end_state(event: Event) -> str:
    whose = "ZooKeeper" if event.node is None else f"the {event.source} of broker {event.node}"
    if not succeeded(event):
        return f"at the end {whose} could not be observed ({event.error})"
    if event.topic is None:
        return f"at the end {whose} had {event.count} partitions"
    replicas = f" on {brokers(event.replicas)}" if event.replicas else ""
    return f"at the end {whose} had {_of(event)}{replicas}"


def _replica_offsets(event: Event) -> str:
    if event.topic is None:
        if not succeeded(event):
            return f"at rest no replica could be asked ({event.error})"
        return f"at rest {event.count} replicas were asked"
    whose = "leader" if event.node == event.leader else "replica"
    about = f"at rest {whose} {event.node} of {_of(event)}"
    if not succeeded(event):
        return f"{about} did not answer ({event.error})"
    return (
        f"{about} answered log start {event.log_start_offset}, high watermark {event.high_watermark}, log end "
        f"{event.log_end_offset}"
    )


def _replica_sample(event: Event) -> str:
    about = f"{'leader' if event.node == event.leader else 'replica'} {event.node} of {_of(event)}"
    if event.high_watermark is not None:
        return f"{about} answered the high watermark {event.high_watermark}"
    return f"{about} answered the log end {event.log_end_offset}"


def _quorum_sample(event: Event) -> str:
    about = (
        f"voter {event.node} answered that it leads the quorum in epoch {event.controller_epoch}"
    )
    if event.high_watermark is None:
        return about
    return f"{about}, with the high watermark {event.high_watermark}"


def _convergence(event: Event) -> str:
    check = f"the check {event.check!r}"
    if event.topic is not None or event.node is not None:
        check += f" of {_of(event) if event.topic is not None else f'broker {event.node}'}"
    when = "" if event.duration_ms is None else f" after {event.duration_ms:,} ms"
    if when and event.check != INITIAL_TOPICS:
        when = f" {event.duration_ms:,} ms after the faults were undone"
    if succeeded(event):
        return f"{check} succeeded{when}"
    error = event.error or ""
    if error.startswith(HARNESS):
        return f"{check} could not be made: {error.removeprefix(HARNESS)}"
    return f"{check} still failed{when}: {error}"


def _phase(event: Event) -> str:
    return f"the phase {event.phase} of the run began"


def _harness_lag(event: Event) -> str:
    return f"nemesis itself was {event.duration_ms} ms late, because the machine was busy"


def _machine_load(event: Event) -> str:
    return f"the machine was busy for up to {event.duration_ms} ms"


def _timeout_setting(event: Event) -> str:
    return f"{event.setting} is {event.duration_ms} ms"


def _unforeseen_exception(event: Event) -> str:
    return f"{_actor(event)} caught an unexpected exception, {event.error}"


def _fault(event: Event) -> str:
    on = f" on {', '.join(event.targets)}" if event.targets else ""
    did = {
        Kind.FAULT_INVOKE: "began",
        Kind.FAULT_APPLIED: f"was applied, with effect {event.effect}",
        Kind.FAULT_SKIPPED: f"was skipped: {event.error}",
        Kind.FAULT_HEALED: f"was undone, with effect {event.effect}",
    }[Kind(event.kind)]
    return f"{event.fault}{on} {did}"


_CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.ZNODE: _znode,
        Kind.CONTROLLER_ELECTED: _controller_elected,
        Kind.CONTROLLER_FAILOVER: _controller_failover,
        Kind.CONTROLLER_RESIGNED: _controller_resigned,
        Kind.BROKER_STARTED: _settings,
        Kind.BROKER_RECONFIGURED: _settings,
        Kind.BROKER_CHANGE_HANDLED: _broker_change,
        Kind.CONTROLLED_SHUTDOWN_HANDLED: _controlled_shutdown,
        Kind.PARTITION_METADATA: _partition_metadata,
        Kind.CONTROL_REQUEST_SENT: _sent,
        Kind.CONTROL_REQUEST_HANDLED: _handled,
        Kind.CONTROL_REQUEST_ANSWERED: _answered,
        Kind.BROKER_REGISTERED: _registered,
        Kind.LEADER_ELECTED: _leader_elected,
        Kind.ALTER_PARTITION_HANDLED: _alter_partition,
        Kind.TRANSITION: _transition,
        Kind.BECOME_LEADER: _become_leader,
        Kind.BECOME_FOLLOWER: _become_follower,
        Kind.APPEND: _append,
        Kind.PRODUCE_ACKNOWLEDGED: _acknowledged,
        Kind.FETCH_ANSWERED: _fetch_answered,
        Kind.HIGH_WATERMARK: _high_watermark,
        Kind.ISR_CHANGE_PROPOSED: _isr_change_proposed,
        Kind.ISR_CHANGE_COMMITTED: _isr_change_committed,
        Kind.TRANSACTION_OPENED: _transaction_opened,
        Kind.MARKER_APPENDED: _marker_appended,
        Kind.TRANSACTION_PARTITION_ADDED: _transaction_partition_added,
        Kind.TRANSACTION_COMPLETED: _transaction_completed,
        Kind.TRUNCATE: _truncate,
        Kind.LOG_LOADED: _log_loaded,
        Kind.LOG_DIR_CHANGED: _log_dir_changed,
        Kind.REPLICA_STOPPED: _stopped,
        Kind.LOG_START_OFFSET: _log_start,
        Kind.LOG_CLEANED: _log_cleaned,
        Kind.LOG_DIR_FAILED: _log_dir_failed,
        Kind.JOB_STARTED: _job_started,
        Kind.SEGMENTS_DELETED: _segments_deleted,
        Kind.STORED_LOG: _stored_log,
        Kind.STORED_SEGMENT: _stored_segment,
        Kind.STORED_BATCH: _stored_batch,
        Kind.STORED_MARKER: _stored_marker,
        Kind.STORED_INDEX_ENTRY: _stored_index_entry,
        Kind.STORED_EPOCH: _stored_epoch,
        Kind.STORED_SNAPSHOT: _stored_snapshot,
        Kind.STORED_PRODUCER: _stored_producer,
        Kind.INVOKE: _invoked,
        Kind.OK: _ok,
        Kind.FAIL: _failed,
        Kind.INFO: _unknown,
        Kind.FINAL_READ: _final_read,
        Kind.TRANSACTION_BEGUN: transaction_begun,
        Kind.ASSIGNED: _assigned,
        Kind.REVOKED: _assigned,
        Kind.END_STATE: _end_state,
        Kind.REPLICA_OFFSETS: _replica_offsets,
        Kind.REPLICA_SAMPLE: _replica_sample,
        Kind.QUORUM_SAMPLE: _quorum_sample,
        Kind.CONVERGENCE: _convergence,
        Kind.UNFORESEEN_EXCEPTION: _unforeseen_exception,
        Kind.PHASE: _phase,
        Kind.HARNESS_LAG: _harness_lag,
        Kind.MACHINE_LOAD: _machine_load,
        Kind.TIMEOUT_SETTING: _timeout_setting,
        Kind.FAULT_INVOKE: _fault,
        Kind.FAULT_APPLIED: _fault,
        Kind.FAULT_SKIPPED: _fault,
        Kind.FAULT_HEALED: _fault,
    }
)
