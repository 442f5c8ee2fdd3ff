"""For how long transactions were open in the log of a partition, from the traces of its replicas.

A transaction that ended was open from its first batch in a leader's log until the marker that ends it stands in the log
of any replica: a marker names the offset of that batch. What is cut from the leader's log, or is followed by another
first batch of its producer, counts as if it had never been there. A transaction is open at the end if it is in the log
of the last leader of the newest topic of this name: the leader epochs of a topic that is created again begin at 0.

The span begins with the first batch, whether or not the coordinator adds the partition later: a batch without a marker
holds the last stable offset until the producer's next transaction here has ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.transactions.markers import kept_below
from nemesis.history.events import Event, Kind

CUTS: Final = frozenset({Kind.TRUNCATE, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED})
KINDS: Final = frozenset(
    {
        *(Kind.TRANSACTION_OPENED, Kind.MARKER_APPENDED, Kind.TRANSACTION_PARTITION_ADDED),
        *CUTS,
        Kind.REPLICA_STOPPED,
        Kind.BECOME_LEADER,
    }
)
COLUMNS: Final = (
    *("topic", "topic_id", "partition", "node", "role", "offset", "first_offset", "producer_id"),
    *("leader_epoch", "log_start_offset", "log_end_offset", "timeout_ms", "step"),
)
_LEADER: Final = "leader"
_DELETES: Final = ("deleting", "delete")


class Open(NamedTuple):
    """A transaction that was open."""

    producer_id: int
    offset: int
    node: int
    row: int
    since: int
    """When it began, in ns."""
    timeout_ms: int | None
    ended: int | None = None
    """When it was ended, in ns; None: it is open at the end."""
    end_row: int | None = None
    leader: int = -1
    """The broker that appended the marker; of an open transaction the last leader."""


def opened_by_leaders(rows: Sequence[Row]) -> int:
    """Return how many transactions were opened; what followers copy is not counted again."""
    return sum(event.kind == Kind.TRANSACTION_OPENED and event.role == _LEADER for _, event in rows)


def ended(rows: Sequence[Row]) -> Iterator[Open]:
    """Yield the transactions that have ended."""
    opened: dict[int | None, Row] = {}
    added: dict[int | None, Event] = {}
    for row, event in rows:
        producer_id = event.producer_id
        if event.kind == Kind.TRANSACTION_PARTITION_ADDED:
            added[producer_id] = event
        elif event.kind == Kind.TRANSACTION_OPENED and event.role == _LEADER:
            opened[producer_id] = row, event
        elif event.kind == Kind.MARKER_APPENDED and producer_id in opened:
            if opened[producer_id][1].offset == event.first_offset:
                begun = opened.pop(producer_id)
                transaction = _open(begun, added.get(producer_id), event.node)
                yield transaction._replace(ended=event.time, end_row=row)
        elif event.kind in CUTS or (event.kind == Kind.REPLICA_STOPPED and event.step in _DELETES):
            end = kept_below(event) if event.kind in CUTS else 0
            opened = {key: item for key, item in opened.items() if not _is_cut(item, event, end)}


def _is_cut(opened: Row, event: Event, end: int) -> bool:
    return opened[1].node == event.node and (opened[1].offset or 0) >= end


def _open(opened: Row, added: Event | None, leader: int | None) -> Open:
    row, event = opened
    timeout_ms = None if added is None else added.timeout_ms
    producer_id = event.producer_id if event.producer_id is not None else -1
    offset, node = event.offset or 0, event.node or 0
    transaction = Open(producer_id, offset, node, row, event.time, timeout_ms)
    return transaction if leader is None else transaction._replace(leader=leader)


def open_at_end(rows: Sequence[Row]) -> Iterator[Open]:
    """Yield the transactions that are open in the log of the last leader."""
    last = _last_leader(rows)
    if last is None:
        return
    added = {
        event.producer_id: event
        for _, event in rows
        if event.kind == Kind.TRANSACTION_PARTITION_ADDED
    }
    for producer_id, opened in _open_in_log(rows, last).items():
        yield _open(opened, added.get(producer_id), last.node)


def _last_leader(rows: Sequence[Row]) -> Event | None:
    """Return the event with which the last leader of the newest topic of this name began to lead."""
    leaders = [event for _, event in rows if event.kind == Kind.BECOME_LEADER]
    firsts: dict[str | None, int] = {}
    for event in leaders:
        firsts[event.topic_id] = min(event.time, firsts.get(event.topic_id, event.time))
    return max(
        leaders,
        key=lambda event: (firsts[event.topic_id], event.leader_epoch or 0, event.time),
        default=None,
    )


def _open_in_log(rows: Sequence[Row], leader: Event) -> dict[int, Row]:
    """Return the first batches of the open transactions in the log of this leader, by producer."""
    steps: dict[int, list[Row]] = defaultdict(list)
    """By producer, the first batches and markers that the log has."""
    for row, event in rows:
        if event.node != leader.node or event.topic_id != leader.topic_id:
            continue
        if event.kind in (Kind.TRANSACTION_OPENED, Kind.MARKER_APPENDED):
            steps[event.producer_id if event.producer_id is not None else -1].append((row, event))
        elif event.kind in CUTS:
            end = kept_below(event)
            for producer_id, known in steps.items():
                steps[producer_id] = [item for item in known if (item[1].offset or 0) < end]
        elif event.kind == Kind.REPLICA_STOPPED and event.step in _DELETES:
            steps.clear()
    return {
        producer_id: known[-1]
        for producer_id, known in sorted(steps.items())
        if known and known[-1][1].kind == Kind.TRANSACTION_OPENED
    }
