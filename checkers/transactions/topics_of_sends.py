"""To which topic an acknowledged send went, where several topics had its name one after the other.

A request to produce need not have the id of its topic. A producer that has not yet heard of a deletion writes to the
next topic of the name, and its history has the id of the former one. So:

* a record that a reader of committed records was given is of the topic that the reader named;
* an unread one is of the topic that its producer named if that is the last one of its name, or if it was acknowledged
  before any broker began to delete a log of it;
* of any other the topic is unknown. Its offset proves nothing, and counts as unknown.

The last topic of a name is the one that clients named last for the first time.
Limit: a topic counts only if a reader of committed records or a transactional producer named it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.transactions.markers import is_deleted
from nemesis.checkers.transactions.produced import Operation, Partition, Produced, partition_of
from nemesis.history.events import Kind

_UNKNOWN = -1


def settle_topics(known: Produced, rows: Iterable[Row]) -> int:
    """Correct the topic ids of acknowledged sends; return how many there are of which the topic is unknown."""
    rows = list(rows)
    last_ids = _last_ids(rows)
    if not last_ids:
        return 0
    homes: dict[int, str | None] = {}
    for poll in known.polls:
        for value in poll.event.values or ():
            homes.setdefault(value, poll.event.topic_id)
    deletions = _deletions(rows)
    return sum(
        _settle(send, homes, last_ids, deletions)
        for transaction in known.transactions.values()
        for send in transaction.sends
        if send.is_ok and send.event.topic in last_ids
    )


def _last_ids(rows: Iterable[Row]) -> dict[str | None, str]:
    """By topic, the last id of those that had several."""
    first_named: dict[str | None, dict[str, int]] = defaultdict(dict)
    for _, event in rows:
        if event.f is not None and event.topic is not None and event.topic_id:
            times = first_named[event.topic]
            times[event.topic_id] = min(event.time, times.get(event.topic_id, event.time))
    return {
        topic: max(times, key=lambda topic_id: times[topic_id])
        for topic, times in first_named.items()
        if len(times) > 1
    }


def _deletions(rows: Iterable[Row]) -> dict[Partition, int]:
    """When (ns) a broker first began to delete a log of a partition."""
    times: dict[Partition, int] = {}
    for _, event in rows:
        if event.kind == Kind.REPLICA_STOPPED and is_deleted(event):
            partition = partition_of(event)
            times[partition] = min(event.time, times.get(partition, event.time))
    return times


def _settle(
    send: Operation,
    homes: dict[int, str | None],
    last_ids: dict[str | None, str],
    deletions: dict[Partition, int],
) -> bool:
    """Correct one send; return whether its topic is unknown."""
    assert send.completed is not None
    row, event = send.completed
    if event.value in homes:
        send.completed = row, replace(event, topic_id=homes[event.value])
        return False
    if event.topic_id == last_ids[event.topic]:
        return False
    if event.time < deletions.get(partition_of(event), _UNKNOWN):
        return False
    send.completed = row, replace(event, offset=_UNKNOWN)
    return True
