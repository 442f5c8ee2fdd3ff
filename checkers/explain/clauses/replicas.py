"""What brokers did with their replicas: roles, appends, fetches, ISRs, log directories and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import actor, of
from nemesis.checkers.explain.words import brokers, offsets
from nemesis.history.events import Event, Kind


def _become_leader(event: Event) -> str:
    log = (
        f", with a log that ended at {event.log_end_offset}"
        if event.log_end_offset is not None
        else ""
    )
    known = _producers(event)
    return f"{actor(event)} became leader of {of(event)} in leader epoch {event.leader_epoch}{log}{known}"


def _become_follower(event: Event) -> str:
    whom = f" of broker {event.leader}" if event.leader is not None else ""
    epoch = f" in leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    log = (
        f", with a log that ended at {event.log_end_offset}"
        if event.log_end_offset is not None
        else ""
    )
    return f"{actor(event)} became a follower{whom} for {of(event)}{epoch}{log}{_producers(event)}"


def _append(event: Event) -> str:
    batch = f"{offsets(event.offset, event.last_offset)} of {of(event)}"
    by = "as leader " if event.role == "leader" else ""
    epoch = f"leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    crc = f"CRC {event.crc}" if event.crc is not None else ""
    known = ", ".join(filter(None, (epoch, crc)))
    return (
        f"{actor(event)} appended {batch} {by}({known})"
        if known
        else f"{actor(event)} appended {batch}"
    )


def _acknowledged(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {of(event)}"
    asked = "acks=all" if event.acks == -1 else f"acks={event.acks}"
    return (
        f"{actor(event)} acknowledged {records} with {asked} as leader of epoch {event.leader_epoch}; its high "
        f"watermark was {event.high_watermark}"
    )


def _high_watermark(event: Event) -> str:
    counted = event.isr if event.maximal_isr is None else event.maximal_isr
    return (
        f"leader {event.node} (leader epoch {event.leader_epoch}) set the high watermark of {of(event)} to "
        f"{event.high_watermark}, with {brokers(counted)} in sync"
    )


def _isr_change_proposed(event: Event) -> str:
    isrs = f"committed {event.isr or []}, maximal {event.maximal_isr or []}"
    return f"leader {event.node} of leader epoch {event.leader_epoch} proposed another ISR of {of(event)} ({isrs})"


def _isr_change_committed(event: Event) -> str:
    known = (
        f", and knew that the logs of its members ended at {event.offsets}" if event.offsets else ""
    )
    return f"leader {event.node} of {of(event)} received the committed ISR {event.isr or []}{known}"


def _follower_epoch(event: Event) -> str:
    fetch = f"a fetch of broker {event.replica} with broker epoch {event.broker_epoch}"
    return (
        f"leader {event.node} of leader epoch {event.leader_epoch} of {of(event)} took in {fetch}"
    )


def _fetch_answered(event: Event) -> str:
    fetches = f"its fetches of {of(event)} in leader epoch {event.leader_epoch}"
    return f"{actor(event)} received {event.error} from broker {event.peer} for {fetches}"


def _stopped(event: Event) -> str:
    did = {
        "stop": "stopped the replica of",
        "deleting": "began to delete the log of",
        "delete": "deleted the log of",
    }.get(event.step or "", "stopped the replica of")
    return f"{actor(event)} {did} {of(event)}"


def _truncate(event: Event) -> str:
    own = f"; its own high watermark was {event.high_watermark}" if event.high_watermark else ""
    before = event.high_watermark_before
    if before is not None and before != event.high_watermark:
        own = f"; its own high watermark was {before} before and {event.high_watermark} after"
    end = f"{event.log_end_offset}{own}{_producers(event)}"
    return f"{actor(event)} truncated its log of {of(event)} to {end}"


def _log_loaded(event: Event) -> str:
    return f"{actor(event)} opened its log of {of(event)}, which {_extent(event)}"


def _log_closed(event: Event) -> str:
    mark = f"; its high watermark was {event.high_watermark}"
    return f"{actor(event)} closed its log of {of(event)} in a clean stop, where it {_extent(event)}{mark}"


def _log_dir_changed(event: Event) -> str:
    latest = (
        f"; its latest leader epoch was {event.leader_epoch}"
        if event.leader_epoch is not None and event.leader_epoch >= 0
        else ""
    )
    return f"{actor(event)} moved {of(event)} to another log directory, where the log {_extent(event)}{latest}"


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
    return f"{actor(event)} raised the start of its log of {of(event)} to {event.log_start_offset}{why}"


def _log_cleaned(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {of(event)}"
    return f"{actor(event)} compacted {records}; its high watermark was {event.high_watermark}"


def _segments_deleted(event: Event) -> str:
    segments = f"the segments of {of(event)} from offset {event.offset} to {event.last_offset}"
    return f"broker {event.node} deleted {segments}"


def _job_started(event: Event) -> str:
    return f"broker {event.node} started a run of {event.step}"


def _log_dir_failed(event: Event) -> str:
    return f"broker {event.node} reported that its log directory {event.log_dir} failed ({event.error})"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.BECOME_LEADER: _become_leader,
        Kind.BECOME_FOLLOWER: _become_follower,
        Kind.APPEND: _append,
        Kind.PRODUCE_ACKNOWLEDGED: _acknowledged,
        Kind.FETCH_ANSWERED: _fetch_answered,
        Kind.FOLLOWER_EPOCH: _follower_epoch,
        Kind.HIGH_WATERMARK: _high_watermark,
        Kind.ISR_CHANGE_PROPOSED: _isr_change_proposed,
        Kind.ISR_CHANGE_COMMITTED: _isr_change_committed,
        Kind.TRUNCATE: _truncate,
        Kind.LOG_LOADED: _log_loaded,
        Kind.LOG_CLOSED: _log_closed,
        Kind.LOG_DIR_CHANGED: _log_dir_changed,
        Kind.REPLICA_STOPPED: _stopped,
        Kind.LOG_START_OFFSET: _log_start,
        Kind.LOG_CLEANED: _log_cleaned,
        Kind.LOG_DIR_FAILED: _log_dir_failed,
        Kind.JOB_STARTED: _job_started,
        Kind.SEGMENTS_DELETED: _segments_deleted,
    }
)
